"""The SELECTs of a UNION."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.sql.syntax.arrangement import has_clauses

_INSTEAD = {
    exp.Intersect: "INTERSECT is not covered: a SEMI join in windows",
    exp.Except: "EXCEPT is not covered: an ANTI join in windows",
}


def selects_of_union(tree: exp.SetOperation) -> list[exp.Expr]:
    """Return the queries of a UNION ALL or UNION, in order.

    Raises
    ------
    SqlError
        If it is another operation on sets, or names columns.
    """
    if not isinstance(tree, exp.Union):
        raise sql_error(tree.expression, _INSTEAD[type(tree)], type(tree).__name__.upper())
    for name in ("by_name", "side", "kind", "on"):
        if tree.args.get(name):
            raise sql_error(tree.expression, "UNION ALL takes columns by their position")
    left = tree.this
    is_part = isinstance(left, exp.Union) and not (left.args.get("with_") or has_clauses(left))
    if is_part and (tree.args.get("distinct") or not left.args.get("distinct")):
        return [*selects_of_union(left), tree.expression]
    return [left, tree.expression]
