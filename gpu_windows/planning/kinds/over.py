"""A query that computes, for each row, aggregates over a frame of the rows of its key."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from gpu_windows.aggregates.collations import compared_columns, with_collations_of
from gpu_windows.aggregates.partials import Combine, Partial
from gpu_windows.errors import (
    InvalidFrameError,
    QueryError,
    UnsupportedAggregateError,
)
from gpu_windows.functions.over import Lateness, Over, OverColumn
from gpu_windows.planning.query import Query
from gpu_windows.planning.result_times import ResultTimes
from gpu_windows.rules import LONG_MAX


def _check_aggregate(column: OverColumn) -> None:
    partials = column.partials
    if column.made.needs_rows or any(each.combine.is_sketch for each in partials):
        rule = "lists, quantiles and sketches are not there over frames"
        raise UnsupportedAggregateError(rule, value=column.bound.describe())
    if column.of_different_values and not all(map(_once, partials)):
        rule = (
            "over frames different values are counted, summed or averaged where they are integers "
            "or decimals"
        )
        raise UnsupportedAggregateError(rule, value=column.bound.describe())


def _once(partial: Partial) -> bool:
    """Whether it is made of different values: of others a minimum is the same."""
    if partial.combine is Combine.ADD:
        return partial.lane == "int64"
    return partial.combine in (Combine.MIN, Combine.MAX)


@dataclass(frozen=True, kw_only=True)
class OverQuery(Query):
    """Aggregates over frames. A result is a row with its time. Other parameters: see `Query`.

    Parameters
    ----------
    over : Over
    """

    over: Over

    def _check_own(self) -> None:
        over = self.over
        if not over.columns:
            raise QueryError("over needs at least one aggregate, such as total=gw.sum('amount')")
        for column in over.columns:
            _check_aggregate(column)
        if over.usable_ticks[0] >= over.usable_ticks[1]:
            rule = "a frame must leave times that fit 64 bits with it"
            raise InvalidFrameError(rule, value=over.describe())

    @property
    def used_columns(self) -> tuple[str, ...]:
        """What stands in results, and what aggregates read."""
        return tuple(dict.fromkeys((*self.over.carried, *self.over.arguments)))

    def without(self, names: Container[str]) -> OverQuery | None:
        """Return the query without some results, if aggregates are left."""
        over = self.over
        columns = tuple(each for each in over.columns if each.bound.name not in names)
        carried = tuple(name for name in over.carried if name not in names)
        return (
            replace(self, over=replace(over, columns=columns, carried=carried)) if columns else None
        )

    def begun(self, since: Mapping[str, int]) -> OverQuery:
        """Return the query whose aggregates of some names have rows from a start on."""
        columns = tuple(
            replace(each, bound=each.bound.begun(since[each.bound.name]))
            if each.bound.name in since
            else each
            for each in self.over.columns
        )
        return replace(self, over=replace(self.over, columns=columns))

    @property
    def carried_columns(self) -> frozenset[str]:
        """What stands in results, and no aggregate compares."""
        aggregates = (column.bound.aggregate for column in self.over.columns)
        compared = {name for each in aggregates for name in compared_columns(each)}
        return frozenset(self.used_columns) - compared

    @property
    def bound_fields(self) -> tuple[pa.Field, ...]:
        """The row's time."""
        return (pa.field(self.time, pa.int64(), nullable=False),)

    @property
    def clash_rule(self) -> str:
        """What is said where two columns of the result have one name."""
        return (
            "keys, time, columns of the row and aggregates must have different names: name the "
            "columns that results have, over(...).aggregate(['a', 'b'], total=...)"
        )

    @property
    def has_windows(self) -> bool:
        """Whether results are of windows: they are of rows."""
        return False

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """The row's columns, then the aggregates."""
        carried = (self.schema.field(n).with_nullable(True) for n in self.over.carried)
        bound = [column.bound for column in self.over.columns]
        plain = ((each, pa.field(each.name, each.result_type)) for each in bound)
        made = (with_collations_of(f, each.aggregate, self.schema) for each, f in plain)
        return (*carried, *made)

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """Those for which frames and clean-up fit."""
        return self.over.usable_ticks

    @property
    def results_in_time(self) -> ResultTimes:
        """The times of their rows; they come when the rows of their frames to come have come."""
        ends = (frame.upper for frame in self.over.frames if frame.in_time)
        return ResultTimes(self.time, behind=max((e for e in ends if 0 < e < LONG_MAX), default=0))

    @property
    def needs_time(self) -> bool:
        """Whether a row needs a time: always."""
        return True

    @property
    def timed_part(self) -> str:
        """The frames."""
        return self.over.describe()

    @property
    def ends_with_time(self) -> bool:
        """Whether the end of time clears what is kept: no row comes after it."""
        return True

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return the results that depend on the order of rows of the same time.

        And which late rows are taken, where Flink's clean-up timers tell.
        """
        by_timers = not bounded and self.over.lateness is Lateness.LAST_TIMER
        return (*self.over.ordered, *(("which late rows are taken",) if by_timers else ()))

    @property
    def order_columns(self) -> tuple[str, ...]:
        """All columns that are used; none where rows of the same time may come in any order."""
        return self.used_columns if self.over.ordered else ()

    def describe(self) -> Mapping[str, str]:
        """Return what is computed, part by part."""
        return {
            "over": self.over.describe(),
            "time": self.shown_time,
            "key": ", ".join(self.keys),
        }

    @property
    def parts(self) -> Mapping[str, object]:
        """The aggregates and their frames."""
        return {"over": self.over}
