"""Which columns PostgreSQL takes, and which types a table of the user's may have for them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
from pyarrow import types as arrow

from gpu_windows.errors import ColumnTypeError, OutputError, QueryError
from gpu_windows.sinks.postgres.statements import MAX_NAME_BYTES, TableName, quote

#: Types of results to those of tables that hold the same values, or raise an error.
_ALSO = {
    "smallint": {"integer", "bigint", "numeric"},
    "integer": {"smallint", "bigint", "numeric"},
    "bigint": {"smallint", "integer", "numeric"},
    "real": {"double precision"},
    "text": {"character varying"},
}
_NUMERIC = re.compile(r"numeric\((\d+),(-?\d+)\)")


def check_columns(schema: pa.Schema) -> None:
    """Raise for columns whose names or types PostgreSQL does not have.

    Raises
    ------
    ColumnTypeError
        For structs, maps and intervals of years; list elements included.
    QueryError
        For names of more than 63 bytes, which PostgreSQL would cut off.
    """
    for column in schema:
        if len(column.name.encode()) > MAX_NAME_BYTES:
            rule = f"PostgreSQL has names of at most {MAX_NAME_BYTES} bytes: select with another"
            raise QueryError(rule, value=f"{len(column.name.encode())} bytes", column=column.name)
        kind = column.type.value_type if arrow.is_list(column.type) else column.type
        if arrow.is_nested(kind) or arrow.is_null(kind):
            rule = "PostgresSink takes numbers, text, binary, booleans, times and lists of these: "
            advice = "select the fields, or to_json(...) of it"
            raise ColumnTypeError(rule + advice, value=str(column.type), column=column.name)


def check_table(
    table: TableName, schema: pa.Schema, wanted: Mapping[str, str], found: Mapping[str, str]
) -> None:
    """Raise `OutputError` for a table that cannot hold an output as it is.

    Parameters
    ----------
    table : TableName
    schema : pyarrow.Schema
        Of the output.
    wanted, found : mapping of str to str
        Names of columns to types, as PostgreSQL writes them: of the output and of the table.
    """
    for name, kind in wanted.items():
        there = found.get(name)
        if there is None or not _holds(there, kind, schema.field(name).type):
            columns = ", ".join(f"{quote(name)} {kind}" for name, kind in wanted.items())
            rule = f"the table {table.sql} must have the columns {columns}"
            raise OutputError(rule, value=there or "no such column", column=name)


def _holds(there: str, kind: str, dtype: pa.DataType) -> bool:
    """Whether a column holds every value of a type exactly, or raises."""
    if there == kind or there in _ALSO.get(kind, ()):
        return True
    limited = _NUMERIC.fullmatch(there)
    if limited is None or not (arrow.is_decimal(dtype) or arrow.is_integer(dtype)):
        return False
    return int(limited[2]) >= (int(dtype.scale) if arrow.is_decimal(dtype) else 0)
