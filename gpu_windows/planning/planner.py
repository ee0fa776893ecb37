"""The planner: chooses how a query is evaluated, or refuses it with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.planning.kinds.match import MatchQuery, plan_match
from gpu_windows.planning.kinds.over import OverQuery, plan_over
from gpu_windows.planning.kinds.pairs import (
    IntervalJoinQuery,
    TemporalJoinQuery,
    plan_interval_join,
    plan_temporal_join,
)
from gpu_windows.planning.kinds.process import ProcessQuery, plan_process
from gpu_windows.planning.kinds.select import SelectQuery, plan_select
from gpu_windows.planning.kinds.top import TopQuery, plan_top
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_plan import plan_windows
from gpu_windows.planning.plan import Execution, Q, QueryPlan
from gpu_windows.planning.query import Query

#: The planner of each kind of query; a kind that is missing here is a KeyError.
_PLANNERS: Mapping[type[Query], Callable[[Any, Execution], QueryPlan[Any]]] = {
    WindowQuery: plan_windows,
    IntervalJoinQuery: plan_interval_join,
    TemporalJoinQuery: plan_temporal_join,
    ProcessQuery: plan_process,
    OverQuery: plan_over,
    TopQuery: plan_top,
    MatchQuery: plan_match,
    SelectQuery: plan_select,
}


def plan(
    query: Q,
    *,
    bounded: bool,
    spark: bool = False,
    crosses_quickly: bool = False,
    reads_in_task: bool = False,
) -> QueryPlan[Q]:
    """Plan a query.

    Parameters
    ----------
    query : Query
    bounded : bool
        Whether the whole input comes before the watermark moves, so that no row is late.
    spark : bool
        Whether it runs on Spark, where a shuffle loses the order of arrival.
    crosses_quickly : bool
        Whether rows cross to Python quickly with Spark's settings.
    reads_in_task : bool
        Whether Spark's tasks read the rows themselves, so that none crosses.

    Returns
    -------
    QueryPlan
        Of the query's type: a `WindowPlan` of a `WindowQuery`, and so on.

    Raises
    ------
    QueryError
        If parts of the query do not fit together.
    UnsupportedQueryError
        If it cannot be evaluated there; with the reason.
    """
    if query.options.partials == "spark" and not bounded:
        raise UnsupportedQueryError("partials='spark' is not possible: streams are not batches")
    execution = Execution(
        bounded=bounded, spark=spark, crosses_quickly=crosses_quickly, reads_in_task=reads_in_task
    )
    return _PLANNERS[type(query)](query, execution)
