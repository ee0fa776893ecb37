"""Functions of windows over two inputs: their rows in one list, a column says which is whose.

As in Flink, a window join and a co-group are windows over both inputs together, so that assigner,
trigger, evictor and lateness mean what they mean over one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.errors import InvalidOptionError, QueryError
from gpu_windows.functions.checked_results import checked_column, checked_rows
from gpu_windows.functions.window import (
    Found,
    RowsAs,
    VectorWindowFunction,
    WindowBatch,
    check_declared,
)
from gpu_windows.triggers.base import Row

Ints = NDArray[np.int64]

#: Name of the column that says whether a row is of the left input, and of the time of both.
SIDE, TIME = "is_left", "event_time"
#: Name of a column that is true in every row of a side, and so null in those of the other.
HERE = "__here"

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
        sides = _Sides(batch)
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


class _Sides:
    """The rows of each side of a batch.

    Attributes
    ----------
    left, right : int64[n], int64[m]
        Their places in the batch, one window after the other.
    places : int64[n + m]
        The window of every row of the batch.
    """

    def __init__(self, batch: WindowBatch) -> None:
        is_left = batch.rows.column(SIDE).to_numpy()
        self.left, self.right = np.flatnonzero(is_left), np.flatnonzero(~is_left)
        self.places = batch.places
        self._windows = batch.windows
        self._counts = [
            np.bincount(self.places[side], minlength=len(batch)) for side in (self.left, self.right)
        ]

    @property
    def counts(self) -> list[Ints]:
        """The number of left and of right rows of every window."""
        return self._counts

    def pairs(self, most: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield the pairs, about ``most`` at a time: numbers among the left and the right rows."""
        rights = np.where(self._has_null_key(), 0, self._counts[1])
        begins = np.cumsum(self._counts[1]) - self._counts[1]
        window = self.places[self.left]
        ends = np.cumsum(rights[window])
        total = int(ends[-1]) if len(ends) else 0
        for begin in range(0, total, most):
            number = np.arange(begin, min(begin + most, total))
            i = np.searchsorted(ends, number, side="right")
            j = begins[window[i]] + number - (ends[i] - rights[window[i]])
            yield i, j

    def _has_null_key(self) -> NDArray[np.bool_]:
        keys = self._windows.columns[:-2]  # then come the bounds
        nulls = [key.is_null().to_numpy() for key in keys]
        found: NDArray[np.bool_] = np.logical_or.reduce(nulls)
        return found


@dataclass(frozen=True)
class CoGroupBatch:
    """Many windows that fired, and the rows of both sides.

    Parameters
    ----------
    windows : pyarrow.Table
        n rows: the key columns, ``window_start`` and ``window_end`` (int64 ticks; null for the
        global window).
    left, right : pyarrow.Table
        The rows of a side of all windows, one window after the other, each in order of arrival.
    left_offsets, right_offsets : int64[n + 1]
        The left rows of window i are ``left[left_offsets[i] : left_offsets[i + 1]]``.
    """

    windows: pa.Table
    left: pa.Table
    right: pa.Table
    left_offsets: Ints
    right_offsets: Ints

    def __len__(self) -> int:
        return len(self.windows)


class VectorCoGroupFunction(ABC):
    """Gets the rows of both sides of many windows at once, as Arrow; keeps no state."""

    @abstractmethod
    def co_group(self, batch: CoGroupBatch) -> Found:
        """Return the declared output columns: a row for each window, in their order.

        Or any number of rows, and for each the place of its window in the batch (int64[m],
        ascending).
        """

    @property
    def called(self) -> str:
        """What errors call it."""
        return type(self).__name__


class CoGroupFunction(ABC):
    """Gets the rows of both sides of one window (Flink: CoGroupFunction); keeps no state."""

    @abstractmethod
    def co_group(
        self, key: Row, window: Row, left: Any, right: Any
    ) -> Iterable[Mapping[str, object]]:
        """Return the result rows of a window, each a mapping of the declared output columns.

        ``window`` has ``window_start`` and ``window_end`` (ticks). ``left`` and ``right`` are
        pyarrow.Tables, or pandas.DataFrames where that was asked for, in order of arrival; either
        may have no row.
        """


@dataclass(frozen=True)
class SplitSides(VectorWindowFunction):
    """Gives both sides of windows to a function.

    Parameters
    ----------
    function : VectorCoGroupFunction
    left, right : mapping of str to str
        The name of a column to what the function shall see.
    """

    function: VectorCoGroupFunction
    left: Mapping[str, str]
    right: Mapping[str, str]

    def describe(self) -> str:
        """Return what is computed."""
        return "co-group"

    @property
    def called(self) -> str:
        """What errors call the user's function."""
        return self.function.called

    def process(self, batch: WindowBatch) -> Found:
        """Call the function."""
        sides = _Sides(batch)
        tables, edges = [], []
        for places, names, counts in zip(
            (sides.left, sides.right), (self.left, self.right), sides.counts, strict=True
        ):
            rows = batch.rows.select([*names]).take(pa.array(places))
            tables.append(rows.rename_columns([*names.values()]))
            edges.append(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]))
        return self.function.co_group(CoGroupBatch(batch.windows, *tables, *edges))


@dataclass(frozen=True)
class WindowByWindow(VectorCoGroupFunction):
    """Calls a function for one window after the other, in Python.

    Parameters
    ----------
    function : CoGroupFunction
    output : pyarrow.Schema
    rows : {"arrow", "pandas"}
    """

    function: CoGroupFunction
    output: pa.Schema
    rows: RowsAs = "arrow"

    def __post_init__(self) -> None:
        check_declared(self.output, self.rows)

    @property
    def called(self) -> str:
        """What errors call the user's function."""
        return type(self.function).__name__

    def co_group(self, batch: CoGroupBatch) -> Found:
        """Call the function for every window."""
        found: list[Mapping[str, object]] = []
        places: list[int] = []
        names = batch.windows.column_names
        for i, window in enumerate(batch.windows.to_pylist()):
            key = {name: window[name] for name in names[:-2]}
            bounds = {name: window[name] for name in names[-2:]}
            rows = [
                self._shown(side.slice(edges[i], edges[i + 1] - edges[i]))
                for side, edges in (
                    (batch.left, batch.left_offsets),
                    (batch.right, batch.right_offsets),
                )
            ]
            given = self.function.co_group(key, bounds, *rows)
            for row in checked_rows(given, self.output, self.called):
                found.append(row)
                places.append(i)
        columns = [
            checked_column([row[field.name] for row in found], field, self.called)
            for field in self.output
        ]
        return pa.Table.from_arrays(columns, schema=self.output), np.array(places, np.int64)

    def _shown(self, rows: pa.Table) -> Any:
        return rows.to_pandas() if self.rows == "pandas" else rows


@dataclass(frozen=True)
class CollectSides(VectorCoGroupFunction):
    """The rows of both sides of a window: a list for each column.

    Parameters
    ----------
    left, right : tuple of str
        Names of the columns of each side.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]

    def co_group(self, batch: CoGroupBatch) -> Found:
        """Return a row for each window."""
        return pa.table(
            {
                **_lists(batch.left, self.left, batch.left_offsets),
                **_lists(batch.right, self.right, batch.right_offsets),
            }
        )


def _lists(rows: pa.Table, names: Sequence[str], edges: Ints) -> dict[str, pa.Array]:
    whole = pa.array(edges.astype(np.int32))
    return {
        name: pa.ListArray.from_arrays(whole, rows.column(name).combine_chunks()) for name in names
    }
