"""Columns that a query adds to a table for its expressions, and projections in subqueries."""

from __future__ import annotations

import itertools
from dataclasses import replace

from sqlglot import exp

from gpu_windows.errors import QueryError
from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.syntax.statement import Statement, names_of
from gpu_windows.sql.tables.inputs import WINDOW_COLUMNS, Input


class Columns:
    """Columns for expressions over an input: adds one for each expression that is not a column."""

    def __init__(self, table: Input) -> None:
        self._table = table
        self._added: dict[str, str] = {}
        self._nodes: dict[str, exp.Expr] = {}

    def name(self, node: exp.Expr, wanted: str | None = None) -> str:
        """Return the name of the column of an expression; see `add`."""
        node = node.unnest()
        if isinstance(node, exp.Column) and self._table.field(node) is None:
            window = self._table.window_column(node)
            if window is not None:
                raise sql_error(node, f"{window} belongs to a result, not to a row")
            return self._table.column(node)
        text = self._table.spark_text(node)
        self._nodes.setdefault(text, node)
        return self.add(text, wanted)

    def add(self, text: str, wanted: str | None = None) -> str:
        """Add a column for a text, once, and return its name: the wanted one, if it is free."""
        if text not in self._added:
            names = self._table.timed_stream.source.schema.names
            used = {name.lower() for name in (*names, *self._added.values(), *WINDOW_COLUMNS)}
            if not wanted or wanted.lower() in used:
                numbered = (f"sql_{number}" for number in itertools.count(len(self._added)))
                wanted = next(name for name in numbered if name not in used)
            self._added[text] = wanted
        return self._added[text]

    @property
    def stream(self) -> ApiCall:
        """The stream with the added columns."""
        if not self._added:
            return self._table.stream
        columns = {name: text for text, name in self._added.items()}
        try:
            return self._table.stream.call("with_columns", **columns)
        except QueryError as error:
            node = self._nodes.get(str(error.value))
            if node is None:
                raise
            with errors_at(node):
                raise


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
