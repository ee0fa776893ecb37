"""A query that joins two inputs in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from gpu_windows.functions.interval_join import IntervalJoinSpec
from gpu_windows.planning.kinds.pairs import PairsQuery
from gpu_windows.planning.plan import (
    Execution,
    QueryPlan,
    Strategy,
    build_plan,
    check_no_reference,
    check_partials_option,
    check_watermarks_move,
)
from gpu_windows.planning.result_times import ResultTimes


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
