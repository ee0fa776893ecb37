"""What a query within chooses of rows: columns by the names that it gives them, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from gpu_windows.expressions.places import placed, refused
from gpu_windows.sql.inputs import Columns, Input
from gpu_windows.sql.results import result
from gpu_windows.sql.statement import Statement


def chosen(statement: Statement, of: Input) -> Input:
    """Return rows with the columns that a query within gives names.

    Raises
    ------
    SqlError
        If two have one name, or one is computed of a window.
    """
    columns: dict[str, str] = {}
    windows: dict[str, str] = {}
    computed = Columns(of)
    for name, node in _named(statement, of):
        if name.lower() in {each.lower() for each in (*columns, *windows)}:
            raise refused(node, "columns have different names: say AS", name)
        kind = of.window_column(node)
        if kind is not None:
            windows[name] = kind
        else:
            columns[name] = computed.name(node, name)
    with placed(statement.select):
        window = None if of.window is None else replace(of.window, columns=windows)
        return replace(of, stream=computed.stream, window=window, columns=columns)


def _named(statement: Statement, of: Input) -> Iterator[tuple[str, exp.Expr]]:
    """Yield the list of SELECT, ``*`` written out, with names."""
    for item in statement.items:
        if of.is_star(item.node):
            yield from ((n, result(n)) for n in (*of.names.known, *of.window_names))
            continue
        if item.alias is None and not isinstance(item.node, exp.Column):
            raise refused(item.node, "an expression needs a name: say AS")
        yield item.alias or item.node.name, item.node
