"""Columns in Spark's DDL, such as ``total DOUBLE, names ARRAY<STRING>``, as an Arrow schema."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import ParseError, SqlglotError

from gpu_windows.errors import SqlError
from gpu_windows.expressions.sql_text import shorten, sql_error
from gpu_windows.expressions.types import TYPES, type_with_parts

#: Types that casts over Arrow tables do not cover.
_MORE = {exp.DType.BINARY: pa.binary(), exp.DType.VARBINARY: pa.binary()}
_NESTED = (exp.DType.ARRAY, exp.DType.STRUCT, exp.DType.MAP)
_RULE = "output= does not support this type"


def read_ddl(text: str) -> pa.Schema:
    """Parse columns in DDL to a schema; ``NOT NULL`` columns are not nullable.

    Raises
    ------
    SqlError
        If the text cannot be parsed or names an unknown type, with the position in it.
    """
    columns = _parse(text) if text.strip() else []
    if not columns:
        raise SqlError("DDL needs at least one column: 'total DOUBLE'", value=text)
    try:
        return pa.schema([_field(column) for column in columns])
    except SqlError as error:
        line = None if error.line is None else error.line - 1  # `_parse` adds a line before
        raise SqlError(error.rule, value=error.value, line=line, position=error.position) from None


def _parse(text: str) -> list[exp.Expr]:
    """Parse columns as the fields of a struct, which may have colons and comments, too."""
    rule = "output= as a string must be DDL, such as 'total DOUBLE, n INT'"
    try:
        tree = parse_one(f"CAST(output AS STRUCT<\n{text}\n>)", dialect="spark")
    except ParseError as error:
        found = error.errors[0] if error.errors else {}
        value, line = found.get("highlight") or shorten(text), (found.get("line") or 2) - 1
        raise SqlError(rule, value=value, line=line, position=found.get("col")) from None
    except (SqlglotError, ValueError, RecursionError):
        raise SqlError(rule, value=shorten(text)) from None
    if not isinstance(tree, exp.Cast) or text.rstrip().endswith(","):
        raise SqlError(rule, value=shorten(text))
    return list(tree.args["to"].expressions)


def _field(column: exp.Expr) -> pa.Field:
    kind = column.args.get("kind") if isinstance(column, exp.ColumnDef) else None
    if not isinstance(kind, exp.DataType) or not isinstance(column.this, exp.Identifier):
        raise sql_error(column, "a column of DDL needs a name and a type: 'total DOUBLE'")
    is_nullable = True
    for constraint in column.args.get("constraints") or ():
        rule = constraint.args.get("kind")
        if isinstance(rule, exp.NotNullColumnConstraint) and not rule.args.get("allow_null"):
            is_nullable = False
        elif not isinstance(rule, exp.CommentColumnConstraint):
            raise sql_error(
                column, "a column of output= can have a name, a type and NOT NULL alone"
            )
    return pa.field(column.name, _type(kind), is_nullable)


def _type(kind: exp.DataType) -> pa.DataType:
    parts = kind.expressions
    if kind.this in _NESTED:
        return _nested_type(kind)
    found = type_with_parts(kind, kind)
    if found is not None:
        return found
    supported = {**TYPES, **_MORE}
    takes_length = kind.this in (exp.DType.VARCHAR, exp.DType.CHAR)
    if kind.this not in supported or (parts and not takes_length):
        raise sql_error(kind, _RULE, getattr(kind.this, "name", None))
    return supported[kind.this]


def _nested_type(kind: exp.DataType) -> pa.DataType:
    parts = kind.expressions
    if kind.this == exp.DType.STRUCT and parts:
        return pa.struct([_field(part).with_nullable(True) for part in parts])
    count = {exp.DType.ARRAY: 1, exp.DType.MAP: 2}.get(kind.this)
    if len(parts) != count or not all(isinstance(part, exp.DataType) for part in parts):
        raise sql_error(kind, f"{_RULE}: name its parts, such as ARRAY<INT>")
    types = [_type(part) for part in parts]
    return pa.list_(types[0]) if count == 1 else pa.map_(*types)
