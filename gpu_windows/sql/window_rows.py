"""Rows of a window function alone: each with the windows that it is in."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from gpu_windows.expressions.places import placed, refused
from gpu_windows.sql.inputs import WINDOW_COLUMNS, Columns, Input
from gpu_windows.sql.results import Results, Settings, meant, named_items, outer, result
from gpu_windows.sql.statement import Item, Statement, conjuncts, together
from gpu_windows.sql.translator import Translator

_NO_WINDOWS = (
    "a query here has windows, OVER, a numbering of rows or a join in time; what has none is "
    "Spark's own: spark.sql"
)
_ROW = "of a row its columns stand in a result, and those of its window"


def read_rows(statement: Statement, translator: Translator) -> Results:
    """Return rows with the windows that they are in, or columns and rows of results.

    Raises
    ------
    SqlError
        With the place of what is not covered: rows that are neither.
    """
    of = translator.input(statement.source)
    if isinstance(of, Results):
        return outer(statement, of, statement.where)
    if of.window is None:
        raise refused(statement.select, _NO_WINDOWS)
    return _WindowRows(statement, of, translator.settings).results()


class _WindowRows:
    """Reads what is chosen of the rows of a window function."""

    def __init__(self, statement: Statement, of: Input, settings: Settings) -> None:
        self._statement, self._settings = statement, settings.over(of)
        every = conjuncts(statement.where)
        self._after = [each for each in every if _tells_window(each, of)]
        self._of = of.where(together([each for each in every if each not in self._after]))
        self._columns = Columns(self._of)
        self._used: dict[str, None] = {}

    def results(self) -> Results:
        """Return the results."""
        statement = self._statement
        if statement.having is not None:
            raise refused(statement.having, "HAVING goes with GROUP BY")
        named = named_items(tuple(self._items()), self._meant)
        after = together(self._after)
        where = None if after is None else self._meant(after)
        window, options = self._of.window, dict(self._settings.options)
        assert window is not None
        told: dict[str, Any] = {"columns": [*self._used]}
        if window.partition_by:
            told["partition_by"] = [*window.partition_by]
        if self._settings.order:
            told["arrival_order"] = [*self._settings.order]
        with placed(statement.select):
            outputs = self._columns.stream.call("with_windows", window.assigner, **told, **options)
            names = (*self._used, *WINDOW_COLUMNS)
            return Results(outputs, names, window.assigner).select(named, where)

    def _items(self) -> list[Item]:
        """Return the list of SELECT, ``*`` written out."""
        items: list[Item] = []
        for item in self._statement.items:
            if self._of.is_star(item.node):
                names = (*self._of.names.known, *self._of.window_names)
                items += (Item(result(name), None) for name in names)
            else:
                items.append(item)
        return items

    def _meant(self, node: exp.Expr) -> exp.Expr:
        return meant(node, self._meaning, _ROW)

    def _meaning(self, node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Column):
            return None
        window = self._of.window_column(node)
        if window is not None:
            return result(window)
        column = self._of.column(node)
        if column in WINDOW_COLUMNS:  # of a query within, by another name
            column = self._columns.added(result(column).sql(dialect="spark"))
        self._used[column] = None
        return result(column)


def _tells_window(node: exp.Expr, of: Input) -> bool:
    return any(of.window_column(column) is not None for column in node.find_all(exp.Column))
