"""A query that computes, for each row, aggregates over a frame of the rows of its key."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from gpu_windows.aggregates.partials import Combine, Partial
from gpu_windows.errors import (
    InvalidFrameError,
    QueryError,
    UnsupportedAggregateError,
    UnsupportedQueryError,
)
from gpu_windows.functions.over import Lateness, Over, OverColumn
from gpu_windows.planning.own_columns import ResultTimes
from gpu_windows.planning.plan import (
    Execution,
    QueryPlan,
    Strategy,
    build_plan,
    check_no_reference,
    check_partials_option,
)
from gpu_windows.planning.query import Query
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.frames import Frame


def _check_aggregate(column: OverColumn) -> None:
    partials = column.partials
    if column.combined_aggregate.needs_rows or any(each.combine.is_sketch for each in partials):
        rule = "lists, quantiles and sketches are not supported over frames"
        raise UnsupportedAggregateError(rule, value=column.bound.describe())
    if column.of_different_values and not all(map(_allows_distinct, partials)):
        rule = (
            "over frames different values are counted, summed or averaged where they are integers "
            "or decimals"
        )
        raise UnsupportedAggregateError(rule, value=column.bound.describe())


def _allows_distinct(partial: Partial) -> bool:
    """Whether a partial may be made of each different value once."""
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
    clash_message = (
        "keys, time, columns of the row and aggregates must have different names: name the "
        "columns that results have, over(...).aggregate(['a', 'b'], total=...)"
    )
    has_windows = False
    needs_time = True
    #: No row comes after the end of time.
    ends_with_time = True

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
        """Columns that results carry, and those that aggregates read."""
        return tuple(dict.fromkeys((*self.over.carried, *self.over.arguments)))

    def without(self, names: Container[str]) -> OverQuery | None:
        """Return the query without some results; None if no aggregate is left."""
        over = self.over
        columns = tuple(each for each in over.columns if each.bound.name not in names)
        carried = tuple(name for name in over.carried if name not in names)
        return (
            replace(self, over=replace(over, columns=columns, carried=carried)) if columns else None
        )

    def with_rows_since(self, since: Mapping[str, int]) -> OverQuery:
        """Return the query whose aggregates of some names cover only rows since a start."""
        columns = tuple(
            replace(each, bound=each.bound.with_rows_since(since[each.bound.name]))
            if each.bound.name in since
            else each
            for each in self.over.columns
        )
        return replace(self, over=replace(self.over, columns=columns))

    @property
    def carried_columns(self) -> frozenset[str]:
        """Columns that results carry, and no aggregate compares."""
        aggregates = (column.bound.aggregate for column in self.over.columns)
        compared = {name for each in aggregates for name in each.compared_columns}
        return frozenset(self.used_columns) - compared

    @property
    def bound_fields(self) -> tuple[pa.Field, ...]:
        """The row's time."""
        return (pa.field(self.time, pa.int64(), nullable=False),)

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """The row's columns, then the aggregates."""
        carried = (self.schema.field(n).with_nullable(True) for n in self.over.carried)
        made = (column.bound.result_field(self.schema) for column in self.over.columns)
        return (*carried, *made)

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """The times for which bounds of frames and clean-up timers fit int64 ticks."""
        return self.over.usable_ticks

    @property
    def results_in_time(self) -> ResultTimes:
        """The time of the row; its result comes when the following rows of its frames are there."""
        ends = (frame.upper for frame in self.over.frames if frame.in_time)
        return ResultTimes(self.time, behind=max((e for e in ends if 0 < e < LONG_MAX), default=0))

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return the results that depend on the order of rows of the same time.

        And which late rows are accepted, if Flink's clean-up timers decide that.
        """
        parts = self.over.order_dependent
        by_timers = not bounded and self.over.lateness is Lateness.LAST_TIMER
        return (*parts, "which late rows are accepted") if by_timers else parts

    @property
    def order_columns(self) -> tuple[str, ...]:
        """All columns that are used; none if rows of the same time may come in any order."""
        return self.used_columns if self.over.order_dependent else ()

    def describe(self) -> Mapping[str, str]:
        """Return a description of each part, by its name."""
        return {
            "over": self.over.describe(),
            "time": self.time_description,
            "key": ", ".join(self.keys),
        }

    @property
    def parts(self) -> Mapping[str, object]:
        """The aggregates and their frames."""
        return {"over": self.over}


#: How aggregates over frames are evaluated.
OverPlan: TypeAlias = QueryPlan[OverQuery]

_IN_FRAMES = (
    "over: the rows sorted by key and time, the frame of a row found as a range, and combined from "
    "two scans of blocks that are as long as the frame, at a cost that does not depend on how long"
)


def plan_over(query: OverQuery, execution: Execution) -> OverPlan:
    """Plan aggregates over frames.

    Raises
    ------
    UnsupportedQueryError, UnsupportedAggregateError
        If streams cannot have the frames.
    """
    check_no_reference(query, "aggregates over frames")
    check_partials_option(query, _IN_FRAMES, execution)
    if not execution.bounded:
        _check_stream(query, spark=execution.spark)
    return build_plan(query, Strategy.OVER, [_IN_FRAMES], execution)


def _check_stream(query: OverQuery, *, spark: bool) -> None:
    """Refuse frames that streams cannot have."""
    for frame in query.over.frames:
        reason = _why_not_on_stream(frame)
        if reason is not None:
            raise UnsupportedQueryError(reason, value=frame.describe())
    for column in query.over.columns:
        if column.frame.is_unbounded_before and column.counts_once:
            rule = "on streams DISTINCT over all rows of a key would store all values for ever"
            raise UnsupportedAggregateError(rule, value=column.describe())
    if spark and not query.watermarks.moves:
        rule = "over emits a row when the watermark has passed it: a stream needs watermarks"
        raise UnsupportedQueryError(rule, value=query.watermarks.describe())


def _why_not_on_stream(frame: Frame) -> str | None:
    """Return why a stream cannot have a frame, or None."""
    if frame.upper == LONG_MAX:
        return "on a stream a key has no last row: following must have an end"
    if not frame.in_time and frame.upper > 0:
        return "on streams frames of rows end with the row or before: later rows have not come yet"
    if frame.is_unbounded_before and frame.upper < (-1 if frame.in_time else 0):
        return "on streams a frame from the first row on ends with the row, or just before its time"
    return None
