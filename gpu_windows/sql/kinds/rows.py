"""Projections: rows of a table, with the windows of a window function, or columns of results."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.syntax.statement import Statement, conjunction, conjuncts
from gpu_windows.sql.tables.columns import Columns
from gpu_windows.sql.tables.inputs import WINDOW_COLUMNS, Input, result_column
from gpu_windows.sql.tables.processing_time import in_ingestion_time
from gpu_windows.sql.tables.results import (
    Results,
    Settings,
    call_select,
    items_by_name,
    rewrite_over_results,
    select_from_results,
)
from gpu_windows.sql.translator import Translator

_NOT_IN_RESULT = "results can have columns of the row, and of its window"
_NO_AGGREGATE = (
    "an aggregate needs windows: a window function in FROM and GROUP BY window_start, window_end; "
    "or OVER"
)


def read_rows(statement: Statement, table: Input | Results, translator: Translator) -> Results:
    """Return rows, with their windows if there are any, or a selection of results.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    if isinstance(table, Results):
        return select_from_results(statement, table, statement.where)
    if table.window is None:
        return _read_select(statement, table, translator.settings)
    return _WindowRows(statement, table, translator.settings).results()


def _read_select(statement: Statement, table: Input, settings: Settings) -> Results:
    """Return the rows of a table without windows, selected and filtered."""
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
    items = items_by_name(rows.expand_star(statement.items), rows.with_fields)
    if not items:
        raise sql_error(statement.select, "* needs FROM: there are no columns")
    texts = {name: _text(rows, name, node) for name, node in items.items()}
    times = [
        name
        for name, node in items.items()
        if isinstance(node, exp.Column) and rows.column(node) == rows.time
    ]
    with errors_at(statement.select):
        outputs = call_select(rows.stream, texts, items)
    return Results(outputs, tuple(texts), delays=dict.fromkeys(times, (0, 0)))


def _text(rows: Input, name: str, node: exp.Expr) -> str | None:
    """Return an item as Spark SQL; None if it is the column of this name."""
    node = node.unnest()
    if isinstance(node, exp.Column) and rows.column(node) == name:
        return None
    with errors_at(node):
        return rows.spark_text(node)


class _WindowRows:
    """Reads a projection of the rows of a window function."""

    def __init__(self, statement: Statement, table: Input, settings: Settings) -> None:
        self._statement, self._settings = statement, settings.for_inputs(table)
        conditions = conjuncts(statement.where)
        self._window_conditions = [each for each in conditions if table.has_window_columns(each)]
        self._table = table.where(
            conjunction([each for each in conditions if each not in self._window_conditions])
        )
        self._columns = Columns(self._table)
        self._used: dict[str, None] = {}

    def results(self) -> Results:
        """Return the results."""
        statement = self._statement
        if statement.having is not None:
            raise sql_error(statement.having, "HAVING needs GROUP BY")
        selected = items_by_name(self._table.expand_star(statement.items), self._rewrite)
        after = [*map(self._rewrite, self._window_conditions), *self._table.window_conditions]
        where = conjunction(after)
        window = self._table.window
        assert window is not None
        arguments: dict[str, Any] = {"columns": [*self._used]}
        if window.partition_by:
            arguments["partition_by"] = [*window.partition_by]
        if self._settings.order:
            arguments["arrival_order"] = [*self._settings.order]
        with errors_at(statement.select):
            outputs = self._columns.stream.call(
                "with_windows", window.assigner, **arguments, **self._settings.options
            )
            names = (*self._used, *WINDOW_COLUMNS)
            return Results(outputs, names, window.assigner).select(selected, where)

    def _rewrite(self, node: exp.Expr) -> exp.Expr:
        return rewrite_over_results(node, self._to_result, _NOT_IN_RESULT)

    def _to_result(self, node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Column):
            return None
        window = self._table.window_column(node)
        if window is not None:
            return result_column(window)
        column = self._table.column(node)
        if column in WINDOW_COLUMNS:  # a renamed column of a subquery
            column = self._columns.add(result_column(column).sql(dialect="spark"))
        self._used[column] = None
        return result_column(column)
