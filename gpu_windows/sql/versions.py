"""Joins with versions: ``JOIN t FOR SYSTEM_TIME AS OF left.time ON left.key = t.key``."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.expressions.places import refused
from gpu_windows.sql.inputs import Input

_PROCTIME = "PROCTIME"


def version_of(join: exp.Join) -> exp.Version | None:
    """Return as of when the table of a join is; None if that is not said."""
    version = join.this.args.get("version") if isinstance(join.this, exp.Table) else None
    return version if isinstance(version, exp.Version) else None


def unversioned(join: exp.Join) -> exp.Expr:
    """Return the table of a join, whenever it is of."""
    table: exp.Expr = join.this
    if version_of(join) is not None:
        table = table.copy()
        table.set("version", None)
    return table


def check_versioned(join: exp.Join, how: str, left: Input, right: Input, *, has_key: bool) -> None:
    """Raise `SqlError` unless a join is with the versions of the left rows' time.

    ``has_key``: whether its condition says that columns of both sides are equal.
    """
    version = version_of(join)
    assert version is not None, "it is a join with versions"
    as_of = version.this == "TIMESTAMP" and version.args.get("kind") == "AS OF"
    if not as_of or not isinstance(version.expression, exp.Expr):
        raise refused(version, f"versions are FOR SYSTEM_TIME AS OF {left.alias}.{left.time}")
    if left.window is not None or right.window is not None:
        raise refused(join.this, "rows of a window function meet no versions", right.alias)
    if how not in ("inner", "left"):
        raise refused(join.this, "a join FOR SYSTEM_TIME AS OF is INNER or LEFT", how.upper())
    if not has_key or join.args.get("on") is None:
        raise refused(join.this, "versions are of a key: ON left.key = right.key", right.alias)
    _check_time(version.expression, left)


def _check_time(node: exp.Expr, left: Input) -> None:
    while isinstance(node, exp.Paren):
        node = node.this
    told = f"versions are as of the event time of the left side: {left.alias}.{left.time}"
    if isinstance(node, exp.Func) and node.name.upper() == _PROCTIME:
        rule = "by processing time a result would depend on when it is computed"
        raise refused(node, f"{told}; {rule}", "PROCTIME()")
    if not isinstance(node, exp.Column) or not left.owns(node) or left.column(node) != left.time:
        raise refused(node, told, node.sql())
