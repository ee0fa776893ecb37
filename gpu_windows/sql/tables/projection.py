"""Projections in subqueries: the columns that it selects, by their new names."""

from __future__ import annotations

from dataclasses import replace

from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.syntax.statement import Statement, names_of
from gpu_windows.sql.tables.inputs import Columns, Input


def project(statement: Statement, table: Input) -> Input:
    """Return a table with the columns that a subquery selects.

    Raises
    ------
    SqlError
        If names of two columns differ in case alone, or one is computed from columns of a window.
    """
    columns: dict[str, str] = {}
    windows: dict[str, str] = {}
    processing_times: dict[str, int] = {}
    computed = Columns(table)
    names = [*table.all_names]
    for name, position in table.processing_times.items():
        names.insert(position, name)
    items = table.expand_star(statement.items, names)
    for name, node in zip(names_of(items), (item.node for item in items), strict=True):
        if name.lower() in {each.lower() for each in (*columns, *windows, *processing_times)}:
            rule = "names of two columns differ in case alone: rename one with AS"
            raise sql_error(node, rule, name)
        if table.is_processing_time(node):
            processing_times[name] = len(columns) + len(processing_times)
            continue
        window_column = table.window_column(node)
        if window_column is not None:
            windows[name] = window_column
        else:
            columns[name] = computed.name(node, name)
    with errors_at(statement.select):
        window = None if table.window is None else replace(table.window, columns=windows)
        return replace(
            table,
            stream=computed.stream,
            window=window,
            columns=columns,
            processing_times=processing_times,
        )
