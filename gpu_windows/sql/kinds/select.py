"""Rows without windows: columns and expressions of a table, and a condition."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from gpu_windows.errors import QueryError
from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.syntax.statement import Item, Statement
from gpu_windows.sql.tables.inputs import Input, result_column
from gpu_windows.sql.tables.processing_time import in_ingestion_time
from gpu_windows.sql.tables.results import (
    Results,
    Settings,
    items_by_name,
    select_arguments,
)

_NO_AGGREGATE = (
    "an aggregate needs windows: a window function in FROM and GROUP BY window_start, window_end; "
    "or OVER"
)


def read_select(statement: Statement, table: Input, settings: Settings) -> Results:
    """Return the rows of a table, selected and filtered.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    if statement.having is not None:
        raise sql_error(statement.having, "HAVING needs GROUP BY: filter rows with WHERE")
    if statement.has_aggregates:
        raise sql_error(statement.select, _NO_AGGREGATE)
    settings.check_selects(statement.select)
    rows = table.where(statement.where)
    for item in statement.items if rows.processing_times else ():
        if rows.is_star(item.node) or rows.is_processing_time(item.node):
            rows = in_ingestion_time(rows, item.node)
            break
    items = items_by_name(_expand(statement, rows), rows.with_fields)
    if not items:
        raise sql_error(statement.select, "* needs FROM: there are no columns")
    texts = {name: _text(rows, name, node) for name, node in items.items()}
    times = frozenset(
        name
        for name, node in items.items()
        if isinstance(node, exp.Column) and rows.column(node) == rows.time
    )
    return _select(statement, rows, texts, items, times)


def _expand(statement: Statement, rows: Input) -> tuple[Item, ...]:
    """Return the list of SELECT with ``*`` expanded."""
    items: list[Item] = []
    for item in statement.items:
        if rows.is_star(item.node):
            items += (Item(result_column(name), None) for name in rows.names.names)
        else:
            items.append(item)
    return tuple(items)


def _text(rows: Input, name: str, node: exp.Expr) -> str | None:
    """Return an item as Spark SQL; None if it is the column of this name."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column) and rows.column(node) == name:
        return None
    with errors_at(node):
        return rows.spark_text(node)


def _select(
    statement: Statement,
    rows: Input,
    texts: Mapping[str, str | None],
    items: Mapping[str, exp.Expr],
    times: frozenset[str],
) -> Results:
    columns, last = select_arguments(texts)
    try:
        with errors_at(statement.select):
            outputs = rows.stream.call("select", *columns, **last)
    except QueryError:
        for name, text in texts.items():  # one alone has a position of its own
            if text is not None:
                with errors_at(items[name]):
                    rows.stream.call("select", {name: text})
        raise
    return Results(outputs, tuple(texts), delays=dict.fromkeys(times, (0, 0)))
