"""Pairs of rows of two inputs: join types, conditions, the window join.

As in Flink, a window join is a window over both inputs together, so that assigner, trigger, evictor
and lateness mean what they mean over one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, get_args

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.errors import InvalidOptionError, QueryError
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.vectorised import BatchFunction
from gpu_windows.vocabulary.rich_functions import RichFunction

JoinType = Literal["inner", "left", "right", "full", "semi", "anti"]
#: Join types that emit left rows, and right rows, without a match.
KEEPS_LEFT, KEEPS_RIGHT = ("left", "full"), ("right", "full")
#: Join types that emit left rows alone, each once.
LEFT_ALONE = ("semi", "anti")


#: Spark's other names of join types, in small letters and without underscores.
_SPARK_NAMES: dict[str, JoinType] = {
    "outer": "full",
    "fullouter": "full",
    "leftouter": "left",
    "rightouter": "right",
    "leftsemi": "semi",
    "leftanti": "anti",
}


def join_type(how: str) -> JoinType:
    """Return the join type of a name, Spark's names included.

    Raises
    ------
    InvalidOptionError
        If there is no such join type.
    """
    kinds: dict[str, JoinType] = {**{each: each for each in get_args(JoinType)}, **_SPARK_NAMES}
    kind = kinds.get(str(how).lower().replace("_", ""))
    if kind is None:
        raise InvalidOptionError(f"how is one of {', '.join(get_args(JoinType))}", value=repr(how))
    return kind


def joined_schema(
    schema: pa.Schema, left: Sequence[str], right: Sequence[str], how: JoinType
) -> pa.Schema:
    """Return the result columns of a join, all nullable."""
    lefts = [schema.field(name).with_nullable(True) for name in left]
    rights = [schema.field(name).with_nullable(True) for name in right]
    return pa.schema(lefts if how in LEFT_ALONE else [*lefts, *rights])


def check_condition(condition: pc.Expression | None, schema: pa.Schema) -> None:
    """Raise `QueryError` unless a condition is a boolean expression over these columns."""
    if condition is None:
        return
    if not isinstance(condition, pc.Expression):
        rule = (
            "a condition is an expression of pyarrow.compute over the columns of both sides, such "
            "as pyarrow.compute.field('right_v') > 3"
        )
        raise QueryError(rule, value=type(condition).__name__)
    try:
        schema.empty_table().filter(condition)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        rule = f"a condition is true or false, over {', '.join(schema.names)}"
        raise QueryError(rule, value=f"{condition} ({error})") from error


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
        What must also hold for a pair.
    null_safe : bool
        Whether keys with nulls match equal keys; else they match nothing.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    how: JoinType = "inner"
    condition: pc.Expression | None = field(default=None, compare=False)
    null_safe: bool = False
    _condition_text: str = field(init=False, repr=False)  # compared in place of the expression

    def __post_init__(self) -> None:
        object.__setattr__(self, "_condition_text", str(self.condition))

    def describe_terms(self) -> str:
        """Describe what pairs must meet, other than equal keys."""
        where = "" if self.condition is None else f" where {self.condition}"
        return f"{where}{', null keys too' if self.null_safe else ''}"

    def table(self, left: pa.Table, at_left: Any, right: pa.Table, at_right: Any) -> pa.Table:
        """Return pairs by the row indices of each side, null for no row."""
        lefts = left.select(self.left).take(at_left)
        rights = right.select(self.right).take(at_right)
        names = [*self.left, *self.right]
        return pa.Table.from_arrays([*lefts.columns, *rights.columns], names=names)


def describe_target(process: PairProcess | None) -> str:
    """Describe the user's function that pairs go to, if there is one."""
    return "" if process is None else f", pairs for {process.describe()}"


@dataclass(frozen=True)
class WindowJoin(BatchFunction):
    """Every left row of a window with every right row (Flink: JoinFunction).

    A window whose key has a null joins nothing, unless pairs are null-safe.

    Parameters
    ----------
    pair : Pair
    columns : tuple of str
        The side's column, and those of `pair`.
    output : pyarrow.Schema
        Columns of the pairs.
    process : PairProcess, optional
        A user's function of the pairs; its results are then those of the join.
    """

    pair: Pair
    columns: tuple[str, ...]
    output: pa.Schema
    process: PairProcess | None = None
    #: Pairs may be too many for one batch.
    in_pieces = True

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        columns, pairs_to = ", ".join(self.columns), describe_target(self.process)
        return f"{self.pair.how} join{self.pair.describe_terms()}({columns}){pairs_to}"

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """All, where a condition may compare them."""
        return () if self.pair.condition is None else self.columns

    def output_fields(self, schema: pa.Schema) -> tuple[pa.Field, ...]:
        """Return the columns of the pairs, or those that the function declares."""
        del schema
        return tuple(self.output if self.process is None else self.process.output)

    @property
    def user_function(self) -> RichFunction | None:
        """The user's function of the pairs, if there is one."""
        return None if self.process is None else self.process.function

    @property
    def pair_process(self) -> PairProcess | None:
        """The user's function that the pairs go to, if there is one."""
        return self.process

    @property
    def without_process(self) -> Self:
        """The join without the user's function."""
        return replace(self, process=None)
