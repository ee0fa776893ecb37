"""Projections in subqueries: the columns that it selects, by their new names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.syntax.statement import Statement
from gpu_windows.sql.tables.inputs import Columns, Input
from gpu_windows.sql.tables.results import result_column


def project(statement: Statement, table: Input) -> Input:
    """Return a table with the columns that a subquery selects.

    Raises
    ------
    SqlError
        If two columns have the same name, or one is computed from columns of a window.
    """
    columns: dict[str, str] = {}
    windows: dict[str, str] = {}
    computed = Columns(table)
    for name, node in _items_by_name(statement, table):
        if name.lower() in {each.lower() for each in (*columns, *windows)}:
            raise sql_error(node, "two columns have the same name: rename one with AS", name)
        window_column = table.window_column(node)
        if window_column is not None:
            windows[name] = window_column
        else:
            columns[name] = computed.name(node, name)
    with errors_at(statement.select):
        window = None if table.window is None else replace(table.window, columns=windows)
        return replace(table, stream=computed.stream, window=window, columns=columns)


def _items_by_name(statement: Statement, table: Input) -> Iterator[tuple[str, exp.Expr]]:
    """Yield the items of SELECT with their names, ``*`` expanded."""
    for item in statement.items:
        if table.is_star(item.node):
            yield from ((n, result_column(n)) for n in (*table.names.names, *table.window_names))
            continue
        if item.alias is None and not isinstance(item.node, exp.Column):
            raise sql_error(item.node, "an expression needs a name: add AS")
        yield item.alias or item.node.name, item.node
