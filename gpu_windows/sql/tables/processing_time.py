"""PROCTIME() as the time of rows: on a stream the time at which they arrive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.syntax.statement import Statement
from gpu_windows.sql.tables.inputs import Input
from gpu_windows.vocabulary.watermarks import ClockWatermarks

_BOUNDED = (
    "PROCTIME() of a bounded table depends on when it is read, because all its rows arrive at "
    "once: name a column with a time; it is the time of arrival of streams, and for lookups, FOR "
    "SYSTEM_TIME AS OF it"
)
_RESULTS = (
    "PROCTIME() is a time of tables: put PROCTIME() AS p into the subquery that reads the stream"
)


def in_time_of(table: Input, nodes: Iterable[exp.Expr]) -> Input:
    """Return a table whose time is ingestion time if one of the nodes is its ``PROCTIME()``.

    Raises
    ------
    SqlError
        If the table is bounded: a result would depend on when it is computed.
    """
    for node in nodes:
        if isinstance(node, exp.Column) and table.is_processing_time(node):
            return table if table.window is not None else in_ingestion_time(table, node)
    return table


def in_ingestion_time(table: Input, node: exp.Expr) -> Input:
    """Return a table whose time is ingestion time; its columns ``PROCTIME()`` are that time.

    Raises
    ------
    SqlError
        If the table is bounded, at the node.
    """
    if not table.is_streaming:
        raise sql_error(node, _BOUNDED)
    if table.is_results:
        raise sql_error(node, _RESULTS)
    with errors_at(node):
        stream = table.stream.call("ingestion_time")
    columns = [*table.columns_by_name.items()]
    for name, position in table.processing_times.items():
        columns.insert(position, (name, stream.value.time))
    return replace(table, stream=stream, columns=dict(columns), processing_times={})


def is_in_ingestion_time(table: Input) -> bool:
    """Whether the time of a table is the time at which rows arrive."""
    return isinstance(table.timed_stream.watermarks, ClockWatermarks)


def order_columns(statement: Statement, calls: Iterable[exp.Window]) -> list[exp.Expr]:
    """Return the first columns of ORDER BY of calls with OVER."""
    orders = (statement.window(call).args.get("order") for call in calls)
    return [order.expressions[0].this for order in orders if order is not None]
