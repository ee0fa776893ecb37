"""The SELECTs of a UNION ALL."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.sql.syntax.statement import Item, name_of

_INSTEAD = {
    exp.Union: "UNION without ALL is not covered on rows: UNION ALL, and GROUP BY in windows",
    exp.Intersect: "INTERSECT is not covered: a SEMI join in windows",
    exp.Except: "EXCEPT is not covered: an ANTI join in windows",
}


def selects_of_union(tree: exp.SetOperation) -> list[exp.Expr]:
    """Return the queries of a UNION ALL, in order.

    Raises
    ------
    SqlError
        If it is another operation on sets, or has clauses of its own.
    """
    if not isinstance(tree, exp.Union) or tree.args.get("distinct"):
        raise sql_error(tree.expression, _INSTEAD[type(tree)], type(tree).__name__.upper())
    for name in ("by_name", "side", "kind", "on"):
        if tree.args.get(name):
            raise sql_error(tree.expression, "UNION ALL takes columns by their position")
    left = tree.this
    if not isinstance(left, exp.SetOperation) or left.args.get("with_"):
        return [left, tree.expression]
    return [*selects_of_union(left), tree.expression]


def with_names(tree: exp.Expr, *, is_first: bool) -> exp.Expr:
    """Return a query with names for the expressions of its SELECT.

    ``is_first``: whether results have these names; in other queries equal ones are made different.
    """
    inner = tree
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    if not isinstance(inner, exp.Select):
        return tree
    used: set[str] = set()
    for number, node in enumerate(list(inner.expressions), 1):
        item = Item(node.this, node.alias) if isinstance(node, exp.Alias) else Item(node, None)
        star = item.node.this if isinstance(item.node, exp.Column) else item.node
        if isinstance(star, exp.Star):
            continue
        name = name_of(item)
        if name.lower() in used and not is_first:
            name = f"{name}_{number}"
        used.add(name.lower())
        if name != name_of(item) or not isinstance(node, exp.Alias | exp.Column):
            node.replace(exp.alias_(item.node.copy(), name, quoted=True))
    return tree
