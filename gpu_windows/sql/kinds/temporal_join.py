"""Temporal joins: ``JOIN t FOR SYSTEM_TIME AS OF left.time ON left.key = t.key``."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.sql.tables.inputs import Input


def version_of(join: exp.Join) -> exp.Version | None:
    """Return FOR SYSTEM_TIME of the table of a join; None if it has none."""
    version = join.this.args.get("version") if isinstance(join.this, exp.Table) else None
    return version if isinstance(version, exp.Version) else None


def table_of_join(join: exp.Join) -> exp.Expr:
    """Return the table of a join, without FOR SYSTEM_TIME."""
    table: exp.Expr = join.this
    if version_of(join) is not None:
        table = table.copy()
        table.set("version", None)
    return table


def check_temporal_join(
    join: exp.Join, how: str, left: Input, right: Input, *, has_key: bool
) -> None:
    """Raise `SqlError` unless a join takes the versions as of the left rows' event time.

    ``has_key``: whether its condition equates columns of both sides.
    """
    version = version_of(join)
    assert version is not None, "it is a temporal join"
    as_of = version.this == "TIMESTAMP" and version.args.get("kind") == "AS OF"
    if not as_of or not isinstance(version.expression, exp.Expr):
        raise sql_error(
            version, f"a temporal join needs FOR SYSTEM_TIME AS OF {left.alias}.{left.time}"
        )
    if left.window is not None or right.window is not None:
        raise sql_error(
            join.this, "a temporal join takes tables, not window functions", right.alias
        )
    if how not in ("inner", "left"):
        raise sql_error(
            join.this, "a join FOR SYSTEM_TIME AS OF must be INNER or LEFT", how.upper()
        )
    if not has_key or join.args.get("on") is None:
        raise sql_error(
            join.this, "a temporal join needs a key: ON left.key = right.key", right.alias
        )
    _check_time(version.expression, left)


def _check_time(node: exp.Expr, left: Input) -> None:
    while isinstance(node, exp.Paren):
        node = node.this
    rule_of_time = f"versions are as of the left side's event time: {left.alias}.{left.time}"
    if not isinstance(node, exp.Column) or not left.owns(node) or left.column(node) != left.time:
        raise sql_error(node, rule_of_time, node.sql())
