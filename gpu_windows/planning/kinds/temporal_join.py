"""A query that joins rows with the version of their key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from gpu_windows.functions.temporal_join import TemporalJoinSpec
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
