"""Temporal joins: ``JOIN t FOR SYSTEM_TIME AS OF left.time ON left.key = t.key``."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.errors import QueryError
from gpu_windows.expressions.sql_text import excerpt, sql_error
from gpu_windows.sql.tables.inputs import Input, check_timed
from gpu_windows.sql.translator import Translator


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


def read_right_table(join: exp.Join, translator: Translator) -> Input:
    """Return the table of a join.

    Raises
    ------
    SqlError
        If its results have no time, or change: those of a view of the last row of each key, which
        versions need not.
    """
    version, node = version_of(join), table_of_join(join)
    try:
        return translator.table(node)
    except QueryError as error:
        found = translator.query_in(node)
        if version is None or found is None or found[0].select.find(exp.RowNumber) is None:
            raise
        table = found[0].select.find(exp.Table)
        name = "t" if table is None else table.name
        rule = (
            "versions are rows of a table, by the key of ON, without a view of its last rows: "
            f"JOIN {name} {excerpt(version)}"
        )
        raise sql_error(join.this, rule, node.name) from error


def check_times(join: exp.Join, source: exp.Expr, left: Input, right: Input) -> None:
    """Raise `SqlError` unless both sides have a time, and the one that AS OF names exists."""
    version = version_of(join)
    of = None if version is None else version.expression
    if isinstance(of, exp.Column) and left.owns(of):
        left.column(of)
    check_timed(left, source)
    check_timed(right, join.this)


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
        rule = f"a temporal join needs FOR SYSTEM_TIME AS OF {left.alias}.{left.time}"
        raise sql_error(version, rule)
    if left.window is not None or right.window is not None:
        rule = "a temporal join takes tables, not window functions"
        raise sql_error(join.this, rule, right.alias)
    if how not in ("inner", "left"):
        rule = "a join FOR SYSTEM_TIME AS OF must be INNER or LEFT"
        raise sql_error(join.this, rule, how.upper())
    if not has_key or join.args.get("on") is None:
        rule = "a temporal join needs a key: ON left.key = right.key"
        raise sql_error(join.this, rule, right.alias)
    _check_time(version.expression, left)


def _check_time(node: exp.Expr, left: Input) -> None:
    node = node.unnest()
    if not isinstance(node, exp.Column) or not left.owns(node) or left.column(node) != left.time:
        rule = f"versions are as of the left side's event time: {left.alias}.{left.time}"
        raise sql_error(node, rule, node.sql())
