"""Queries that pair the rows of two inputs by their times: they have no windows."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import pyarrow as pa

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.functions.interval_join import IntervalJoinSpec
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.temporal_join import TemporalJoinSpec
from gpu_windows.functions.two_inputs import MARKS
from gpu_windows.planning.own_columns import RESULT_TIME, ResultTimes
from gpu_windows.planning.plan import (
    Execution,
    QueryPlan,
    Strategy,
    build_plan,
    check_no_reference,
    check_partials_option,
    check_watermarks_move,
)
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.rich_functions import Openable, opens


@dataclass(frozen=True, kw_only=True)
class PairsQuery(Query):
    """Pairs of rows of two inputs, which are united with a column for the side of a row.

    Results come with its rows, or with the watermark. Other parameters: see `Query`.

    Parameters
    ----------
    join : IntervalJoinSpec or TemporalJoinSpec
    """

    join: IntervalJoinSpec | TemporalJoinSpec
    needs_time = True

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Columns of both sides, and the one with the side of a row."""
        return tuple(dict.fromkeys(self.join.columns))

    def without(self, names: Container[str]) -> Self | None:
        """Return the query without some columns of pairs; None for results of a function."""
        join = self.join
        left, right = (
            tuple(name for name in side if name not in names)
            for side in (join.pair.left, join.pair.right)
        )
        rest = [field for field in join.output if field.name not in names]
        if join.process is not None or not rest:
            return None
        pair = replace(join.pair, left=left, right=right)
        return replace(self, join=replace(join, pair=pair, output=pa.schema(rest)))

    @property
    def carried_columns(self) -> frozenset[str]:
        """All columns, unless a condition may compare them."""
        return frozenset(self.used_columns if self.join.pair.condition is None else ())

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """The selected columns of pairs, or those that the function declares."""
        process = self.join.process
        return tuple(self.join.output if process is None else process.output)

    @property
    def pair_process(self) -> PairProcess | None:
        """The user's function that the pairs go to, if there is one."""
        return self.join.process

    @property
    def without_process(self) -> Self:
        """The join without the user's function."""
        return replace(self, join=replace(self.join, process=None))

    @property
    def rich_parts(self) -> tuple[Openable, ...]:
        """The function, if it is to be opened."""
        process = self.join.process
        return () if process is None or not opens(process.function) else (process.function,)

    @property
    def declared_sides(self) -> Mapping[str, pa.Schema]:
        """Side outputs of the function."""
        return {} if self.join.process is None else self.join.process.function.side_outputs

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """The times for which the bounds of matching rows fit int64 ticks."""
        return self.join.usable_ticks

    @property
    def results_in_time(self) -> ResultTimes:
        """The greater time of both rows; results of a function of pairs have no time."""
        if self.join.process is not None:
            rule = (
                "results of a function of pairs have no time: continue from the pairs that "
                "select(...) returns, or use a KeyedProcessFunction"
            )
            raise UnsupportedQueryError(rule, value=self.join.process.describe())
        sides = tuple(name for name in MARKS if name in self.join.output.names)
        return ResultTimes(RESULT_TIME, sides=sides)

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return descriptions of the matches that depend on the order of arrival."""
        return self.join.order_dependent(bounded=bounded)

    def describe(self) -> Mapping[str, str]:
        """Return a description of each part, by its name."""
        return {
            "join": self.join.describe(),
            **self.sides_description,
            "time": self.time_description,
            "key": ", ".join(self.display_keys) or "none: all rows together",
        }

    @property
    def parts(self) -> Mapping[str, object]:
        """The join."""
        return {"join": self.join}


@dataclass(frozen=True, kw_only=True)
class IntervalJoinQuery(PairsQuery):
    """Pairs of rows of two inputs that are near in time. Other parameters: see `PairsQuery`.

    Parameters
    ----------
    join : IntervalJoinSpec
    """

    join: IntervalJoinSpec
    #: Rows of the last tick stay.
    ends_with_time = False

    @property
    def results_in_time(self) -> ResultTimes:
        """The greater time of the rows of a pair: it comes with the later row (Flink).

        A row without a match comes after its time, when none can arrive any longer. So may a left
        row whose nearest match is not decided yet, and a late row that is joined. Then the
        watermark is held back, as Flink's SQL does.
        """
        times, join = super().results_in_time, self.join
        at_once = join.pair.how == "inner" and join.nearest is None and not join.joins_late
        return times if at_once else replace(times, behind=max(0, *join.retention) + 1)


#: How two inputs are joined in time.
IntervalJoinPlan: TypeAlias = QueryPlan[IntervalJoinQuery]

_IN_COLUMNS = (
    "interval join: the rows of both sides sorted by key and time, the partners of a row found as "
    "a range; pairs are made in chunks"
)
_ONE_SHARD = "there is no key, so all rows go to one shard: one task joins them"


def plan_interval_join(query: IntervalJoinQuery, execution: Execution) -> IntervalJoinPlan:
    """Plan a join in time."""
    check_no_reference(query, "an interval join")
    check_partials_option(query, _IN_COLUMNS, execution)
    reasons = [_IN_COLUMNS]
    if execution.spark and not query.has_key:
        reasons.append(_ONE_SHARD)
    plan = build_plan(query, Strategy.INTERVAL_JOIN, reasons, execution)
    check_watermarks_move(
        query, "an interval join on streams would store all rows for ever", execution
    )
    return plan


def planned_join(plan: IntervalJoinPlan) -> IntervalJoinSpec:
    """Return what is joined; a bounded input has no late rows that join."""
    return replace(plan.query.join, joins_late=False) if plan.bounded else plan.query.join


@dataclass(frozen=True, kw_only=True)
class TemporalJoinQuery(PairsQuery):
    """Left rows with the version of their key as of the left row's time (Flink).

    That is the greater time of both. A row on time is joined when the watermark reaches it.
    Other parameters: see `PairsQuery`.

    Parameters
    ----------
    join : TemporalJoinSpec
    """

    join: TemporalJoinSpec
    #: No later row can match it.
    ends_with_time = True


#: How rows are joined with versions.
TemporalJoinPlan: TypeAlias = QueryPlan[TemporalJoinQuery]

_NEWEST = (
    "temporal join: the left rows that the watermark has reached and the versions of their keys "
    "sorted by key and time; the newest version of each key stays in state"
)


def plan_temporal_join(query: TemporalJoinQuery, execution: Execution) -> TemporalJoinPlan:
    """Plan a join with versions."""
    check_no_reference(query, "a temporal join")
    check_partials_option(query, _NEWEST, execution)
    check_watermarks_move(query, "a temporal join on streams would emit no row", execution)
    return build_plan(query, Strategy.TEMPORAL_JOIN, [_NEWEST], execution)
