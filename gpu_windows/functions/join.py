"""Pairs of rows of two inputs: join types, conditions, the window join.

As in Flink, a window join is a window over both inputs together, so that assigner, trigger, evictor
and lateness mean what they mean over one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.errors import InvalidOptionError, QueryError
from gpu_windows.functions.two_inputs import Sides
from gpu_windows.functions.vectorised import Found, VectorWindowFunction, WindowBatch

Ints = NDArray[np.int64]

JoinType = Literal["inner", "left", "right", "full", "semi", "anti"]
#: Join types that keep left rows, and right rows, that found no partner.
KEEPS_LEFT, KEEPS_RIGHT = ("left", "full"), ("right", "full")
#: Join types that give left rows alone, each once.
LEFT_ALONE = ("semi", "anti")

#: Pairs that are made at once.
PAIRS = 1 << 20


def check_join_type(how: str) -> None:
    """Raise `InvalidOptionError` unless it is a `JoinType`."""
    if how not in get_args(JoinType):
        raise InvalidOptionError(f"how is one of {', '.join(get_args(JoinType))}", value=how)


def joined_schema(
    schema: pa.Schema, left: Sequence[str], right: Sequence[str], how: JoinType
) -> pa.Schema:
    """Return the columns that a join gives: of a side that may have no row they are nullable."""
    lefts = [schema.field(name).with_nullable(True) for name in left]
    rights = [schema.field(name).with_nullable(True) for name in right]
    return pa.schema(lefts if how in LEFT_ALONE else [*lefts, *rights])


def check_condition(condition: pc.Expression | None, schema: pa.Schema) -> None:
    """Raise `QueryError` unless a condition is a boolean expression over these columns."""
    if condition is None:
        return
    if not isinstance(condition, pc.Expression):
        rule = "a condition is an expression of pyarrow.compute over the columns of both sides"
        raise QueryError(rule, value=type(condition).__name__)
    try:
        schema.empty_table().filter(condition)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        rule = f"a condition is true or false, over {', '.join(schema.names)}"
        raise QueryError(rule, value=f"{condition} ({error})") from error


def holds(condition: pc.Expression | None, pairs: pa.Table) -> NDArray[np.int64] | None:
    """Return the places of the pairs for which a condition is true; None if all."""
    if condition is None:
        return None
    numbered = pairs.append_column("__place", pa.array(np.arange(len(pairs))))
    places: NDArray[np.int64] = numbered.filter(condition)["__place"].to_numpy()
    return np.sort(places)  # a filter keeps the order, but does not promise it


@dataclass(frozen=True)
class Pair:
    """Left and right rows side by side.

    Parameters
    ----------
    left, right : tuple of str
        Columns of each side.
    how : str
        A `JoinType`.
    condition : pyarrow.compute.Expression, optional
        What must hold for a pair besides.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    how: JoinType = "inner"
    condition: pc.Expression | None = field(default=None, compare=False)
    _shown: str = field(init=False, repr=False)  # what is compared in place of an expression

    def __post_init__(self) -> None:
        object.__setattr__(self, "_shown", str(self.condition))

    def table(self, left: pa.Table, at_left: Any, right: pa.Table, at_right: Any) -> pa.Table:
        """Return pairs: places in the tables of the sides, null for no row."""
        ours = left.select(self.left).take(at_left)
        its = right.select(self.right).take(at_right)
        return pa.Table.from_arrays([*ours.columns, *its.columns], names=[*self.left, *self.right])


@dataclass(frozen=True)
class JoinSides(VectorWindowFunction):
    """Every left row of a window with every right row (Flink: JoinFunction).

    A window whose key has a null joins nothing.

    Parameters
    ----------
    pair : Pair
    """

    order_free: ClassVar[bool] = True

    pair: Pair

    def describe(self) -> str:
        """Return what is computed."""
        condition = self.pair.condition
        return f"{self.pair.how} join" + ("" if condition is None else f" where {condition}")

    def process(self, batch: WindowBatch) -> Found:
        """Return all pairs at once."""
        pieces = [*self.pieces(batch)]
        tables, places = zip(*pieces, strict=True)
        whole, of = pa.concat_tables(tables), np.concatenate(places)
        order = np.argsort(of, kind="stable")
        return whole.take(pa.array(order)), of[order]

    def pieces(self, batch: WindowBatch) -> Iterator[tuple[pa.Table, Ints]]:
        """Yield some `PAIRS` pairs at a time, then the rows that found no partner."""
        sides = Sides(batch)
        how, left, right = self.pair.how, sides.left, sides.right
        met_left, met_right = np.zeros(len(left), np.bool_), np.zeros(len(right), np.bool_)
        for i, j in sides.pairs(PAIRS):
            pairs = self._table(batch, left[i], right[j])
            held = holds(self.pair.condition, pairs)
            if held is not None:
                i, j, pairs = i[held], j[held], pairs.take(pa.array(held))
            met_left[i] = met_right[j] = True
            if how not in LEFT_ALONE:
                yield pairs, sides.places[left[i]]
        none = np.empty(0, np.int64)
        if how in LEFT_ALONE:
            alone = left[met_left if how == "semi" else ~met_left]
            yield batch.rows.select(self.pair.left).take(pa.array(alone)), sides.places[alone]
            return
        alone_left = left[~met_left] if how in KEEPS_LEFT else none
        alone_right = right[~met_right] if how in KEEPS_RIGHT else none
        i = np.concatenate([alone_left, np.full(len(alone_right), -1)])
        j = np.concatenate([np.full(len(alone_left), -1), alone_right])
        order = np.argsort(sides.places[np.maximum(i, j)], kind="stable")
        i, j = i[order], j[order]
        yield self._table(batch, i, j), sides.places[np.maximum(i, j)]

    def _table(self, batch: WindowBatch, i: Ints, j: Ints) -> pa.Table:
        rows = batch.rows
        return self.pair.table(rows, pa.array(i, mask=i < 0), rows, pa.array(j, mask=j < 0))
