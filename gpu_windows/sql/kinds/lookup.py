"""Lookup joins: ``JOIN t FOR SYSTEM_TIME AS OF proctime``, rows with columns of a table."""

from __future__ import annotations

from sqlglot import exp

from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.sql.kinds.added_columns import add_columns, free_names
from gpu_windows.sql.kinds.join_sides import Sides
from gpu_windows.sql.kinds.temporal_join import table_of_join, version_of
from gpu_windows.sql.syntax.statement import Statement, conjunction, conjuncts, is_processing_time
from gpu_windows.sql.tables.columns import Columns
from gpu_windows.sql.tables.inputs import Input
from gpu_windows.sql.translator import Translator

_CONDITION = (
    "the condition of a lookup is ON left.key = right.key, with conditions on the right table; for "
    "others filter with WHERE"
)


def has_lookup(statement: Statement, translator: Translator) -> bool:
    """Whether the first join of a query is by processing time."""
    return bool(statement.joins) and _is_lookup(statement, translator)


def _is_lookup(statement: Statement, translator: Translator) -> bool:
    version = version_of(statement.joins[0])
    if version is None or not isinstance(version.expression, exp.Expr):
        return False
    time = version.expression.unnest()
    return is_processing_time(time) or translator.names_processing_time(statement.source, time)


def look_up(statement: Statement, translator: Translator) -> tuple[Statement, Translator]:
    """Return the same query without the first join, over rows with the columns of its table.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    query = statement.select.copy()
    query.set("from_", None)
    join = query.args["joins"].pop(0)
    left = translator.table(statement.source)
    right = translator.table(table_of_join(join))
    if left.window is not None or right.window is not None or right.is_results:
        raise sql_error(join.this, "a lookup takes a table, and rows without windows", right.alias)
    if left.alias.lower() == right.alias.lower():
        rule = "both sides of the join have the same name: rename one with AS"
        raise sql_error(join.this, rule, right.alias)
    rows = _Lookup(join, left, right, query).table()
    query.set("joins", query.args["joins"] or None)
    return translator.over(rows, statement.source, query)


class _Lookup:
    """Reads a lookup join, and renames columns of its query."""

    def __init__(self, join: exp.Join, left: Input, right: Input, query: exp.Select) -> None:
        self._join, self._query = join, query
        self._left, self._right = left, right
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if (
            side not in ("", "LEFT")
            or kind not in ("", "INNER", "OUTER")
            or not join.args.get("on")
        ):
            raise sql_error(join.this, "a lookup must be INNER or LEFT JOIN ... ON", right.alias)
        self._is_outer = side == "LEFT"

    def table(self) -> Input:
        """Return the left rows with the columns of the right table."""
        keys, others = self._conditions()
        left, right = Columns(self._left), Columns(self._right)
        on = {left.name(one): right.name(other) for one, other in keys}
        names = self._right.names.names
        physical = free_names(self._left, names)
        columns = dict(zip(physical, self._right.columns_by_name.values(), strict=True))
        options = {"keep_unmatched": True} if self._is_outer else {}
        with errors_at(self._join.this):
            stream = left.stream.call("lookup", right.stream, on=on, columns=columns, **options)
        if others:
            parts = [*conjuncts(Statement(self._query).where), *others]
            self._query.set("where", exp.Where(this=conjunction(parts)))
        added = dict(zip(names, physical, strict=True))
        return add_columns(self._query, self._left, stream, added, self._right.alias)

    def _conditions(self) -> tuple[list[tuple[exp.Expr, exp.Expr]], list[exp.Expr]]:
        """Return the keys, and conditions of pairs; those on the right table filter it."""
        sides = Sides((self._left, self._right))
        keys: list[tuple[exp.Expr, exp.Expr]] = []
        others: list[exp.Expr] = []
        for part in conjuncts(self._join.args["on"]):
            pair = sides.equal(part)
            if pair is not None:
                keys.append(pair)
            elif sides.side_of(part) == 1:
                self._right = self._right.where(part)
                sides = Sides((self._left, self._right))
            elif self._is_outer:
                raise sql_error(part, _CONDITION)
            else:
                others.append(part)
        if not keys:
            raise sql_error(self._join.this, _CONDITION)
        return keys, others
