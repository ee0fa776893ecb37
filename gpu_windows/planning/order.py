"""The order of arrival on Spark, where a shuffle loses it."""

from __future__ import annotations

from gpu_windows.aggregates.argument_types import is_sortable
from gpu_windows.errors import ColumnTypeError
from gpu_windows.functions.two_inputs import SIDE
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.query import NO_TIME, Query


def order_of(query: Query, *, bounded: bool) -> tuple[str, ...]:
    """Return the columns that give the order of arrival on Spark, where a shuffle loses it."""
    is_of_windows = isinstance(query, WindowQuery)
    if not is_of_windows and not query.order_dependent(bounded=bounded):
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
    dtype = query.schema.field(name).type
    return is_sortable(dtype)


def order_warnings(query: Query, order: tuple[str, ...], *, bounded: bool) -> tuple[str, ...]:
    """Return what a user should know of an order that was not named."""
    parts = query.order_dependent(bounded=bounded)
    if not parts or query.arrival_order or not order:
        return ()
    depend = "depends" if len(parts) == 1 else "depend"
    if order == (NO_TIME,):
        order = ("no column",)
    return (
        f"{', '.join(parts)} {depend} on the order of arrival, which a shuffle loses: rows are "
        f"taken in order of {', '.join(order)}; name the columns of the "
        "true order with arrival_order",
    )
