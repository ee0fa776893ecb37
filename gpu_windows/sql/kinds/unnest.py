"""UNNEST in FROM: a row for each element of a list or map, before anything else is read."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from gpu_windows.expressions.sql_text import errors_at, sql_error
from gpu_windows.runners.explosion import is_exploded, parts_of
from gpu_windows.sql.kinds.added_columns import add_columns, free_names
from gpu_windows.sql.syntax.statement import Statement
from gpu_windows.sql.tables.columns import Columns
from gpu_windows.sql.tables.inputs import Input
from gpu_windows.sql.translator import Translator

_ORDINALITY = "ORDINALITY"
_NO_TYPE = "UNNEST takes a column with a list (ARRAY, MULTISET) or a map"


def has_unnest(statement: Statement) -> bool:
    """Whether a query joins a table with the elements of a column of it."""
    return any(_call(each) is not None for each in statement.joins)


def explode_rows(statement: Statement, translator: Translator) -> tuple[Statement, Translator]:
    """Return the same query without UNNEST, over a table that has the rows of elements.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    query = statement.select.copy()
    query.set("from_", None)
    table = translator.table(statement.source)
    joins = query.args.get("joins") or []
    while joins and (call := _call(joins[0])) is not None:
        table = _explode(joins.pop(0), call, table, query)
    if any(_call(each) is not None for each in joins):
        raise sql_error(joins[-1], "UNNEST stands after its table: join others in an outer query")
    query.set("joins", joins or None)
    return translator.over(table, statement.source, query)


def _call(join: exp.Join) -> exp.Unnest | None:
    """Return UNNEST of a join; None for other tables."""
    return join.this if isinstance(join.this, exp.Unnest) else None


def _explode(join: exp.Join, call: exp.Unnest, table: Input, query: exp.Select) -> Input:
    """Return a table with a row for each element, and rename columns of the query."""
    if len(call.expressions) != 1:
        raise sql_error(join, "UNNEST takes one list or map")
    is_outer = _is_outer(join)
    argument = call.expressions[0]
    columns = Columns(table)
    column = columns.name(argument)
    table = replace(table, stream=columns.stream)
    dtype = table.timed_stream.source.schema.field(column).type
    if not is_exploded(dtype):
        raise sql_error(argument, _NO_TYPE, str(dtype))
    position, names = _names(call, [part.name for part in parts_of(dtype)])
    new_names = (*names, *position)
    physical = free_names(table, new_names)
    arguments = {"position": physical[-1]} if position else {}
    options = {"keep_empty": True} if is_outer else {}
    with errors_at(argument):
        parts = physical[: len(names)]
        stream = table.stream.call("explode", column, *parts, **arguments, **options)
    added = dict(zip(new_names, physical, strict=True))
    return add_columns(query, table, stream, added, call.alias or None)


def _is_outer(join: exp.Join) -> bool:
    kind, side = (join.kind or "").upper(), (join.side or "").upper()
    on = join.args.get("on")
    is_true = on is None or (isinstance(on, exp.Boolean) and on.this is True)
    if not is_true or kind not in ("", "CROSS", "INNER", "OUTER") or side not in ("", "LEFT"):
        raise sql_error(join, "UNNEST takes CROSS JOIN, or LEFT JOIN ... ON TRUE")
    return side == "LEFT"


def _names(call: exp.Unnest, fields: list[str]) -> tuple[list[str], list[str]]:
    """Return the names of the position, if it is asked for, and of the parts of an element."""
    alias = call.args.get("alias")
    part_names = [each.name for each in (alias.args.get("columns") or [] if alias else [])]
    offset = call.args.get("offset")
    position = [offset.name if isinstance(offset, exp.Identifier) else _ORDINALITY]
    if not part_names:
        if len(fields) < 2 or fields == ["key", "value"]:
            raise sql_error(call, "name the columns of UNNEST: AS t (element)")
        part_names = fields
    if len(part_names) != len(fields):
        rule = f"the elements of UNNEST have {len(fields)} columns: name each of them"
        raise sql_error(call, rule, ", ".join(part_names))
    return (position if offset else []), part_names
