"""Build a plan of any kind: with its order of arrival, which a shuffle on Spark loses."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_windows.aggregates.argument_types import is_sortable
from gpu_windows.errors import ColumnTypeError
from gpu_windows.functions.two_inputs import SIDE
from gpu_windows.planning.execution import SLOW_CROSSING, Execution
from gpu_windows.planning.own_columns import NO_TIME
from gpu_windows.planning.plan import ARRIVAL, BATCHES_PER_SCAN, Q, QueryPlan, Strategy
from gpu_windows.planning.query import Query

#: Strategies whose operators scan all state of the keys of a call, so larger calls pay off.
_SCANNING = (
    Strategy.BUFFER, Strategy.INTERVAL_JOIN, Strategy.TEMPORAL_JOIN, Strategy.OVER, Strategy.TOP,
    Strategy.MATCH,
)  # fmt: skip
_PAIRS = "each pair goes to the function, in Python"


def build_plan(
    query: Q,
    strategy: Strategy,
    reasons: Sequence[str],
    execution: Execution,
    *,
    crosses: bool = True,
) -> QueryPlan[Q]:
    """Return the plan of a query by a strategy.

    ``reasons``: for the strategy; those for its execution are added. ``crosses``: whether rows go
    to Python on Spark.
    """
    reasons = [*reasons, *(() if query.pair_process is None else (_PAIRS,))]
    order: tuple[str, ...] = (ARRIVAL,)
    warnings: tuple[str, ...] = ()
    if execution.spark:
        if crosses and not (execution.crosses_quickly or execution.reads_in_task):
            reasons.append(SLOW_CROSSING)
        order = _choose_order(query, bounded=execution.bounded)
        warnings = _warn_of_order(query, order, bounded=execution.bounded)
    return QueryPlan(
        query=query,
        strategy=strategy,
        order=order,
        reasons=tuple(reasons),
        warnings=warnings,
        bounded=execution.bounded,
        batches_per_call=BATCHES_PER_SCAN if strategy in _SCANNING else 1,
    )


def _choose_order(query: Query, *, bounded: bool) -> tuple[str, ...]:
    """Return the columns that give the order of arrival on Spark."""
    if not (query.is_always_ordered or query.order_dependent(bounded=bounded)):
        return ()
    for name in query.arrival_order:
        if not _is_sortable(query, name):
            rule = "arrival_order takes numbers, times, strings and binary"
            raise ColumnTypeError(rule, value=str(query.schema.field(name).type), column=name)
    first = (SIDE,) if query.broadcasts else ()  # false: the rows that go everywhere
    if query.arrival_order:
        return (*first, *query.arrival_order)
    used = [name for name in query.order_columns if _is_sortable(query, name)]
    if used and not query.has_time:
        return tuple(dict.fromkeys([*first, *used]))
    return tuple(dict.fromkeys([*first, query.time, *used]))


def _is_sortable(query: Query, name: str) -> bool:
    return is_sortable(query.schema.field(name).type)


def _warn_of_order(query: Query, order: tuple[str, ...], *, bounded: bool) -> tuple[str, ...]:
    """Return a warning if results depend on an order that the user did not name."""
    parts = query.order_dependent(bounded=bounded)
    if not parts or query.arrival_order or not order:
        return ()
    depend = "depends" if len(parts) == 1 else "depend"
    if order == (NO_TIME,):
        order = ("no column",)
    return (
        f"{', '.join(parts)} {depend} on the order of arrival, which a shuffle loses: rows are "
        f"ordered by {', '.join(order)}; name the columns of the "
        "true order with arrival_order",
    )
