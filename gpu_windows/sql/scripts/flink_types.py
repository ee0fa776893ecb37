"""Flink's types of columns, as Arrow types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pyarrow as pa

from gpu_windows.expressions.sql_text import error_at
from gpu_windows.sql.scripts.lexer import Cursor

_MAX_DIGITS = 6


def _decimal(cursor: Cursor) -> pa.DataType:
    precision, *scale = _arguments(cursor, 2) or (10,)
    if not 1 <= precision <= 38 or (scale and scale[0] > precision):
        raise cursor.error("a DECIMAL has 1 to 38 digits, and no more of them after the point")
    return pa.decimal128(precision, scale[0] if scale else 0)


def _timestamp(cursor: Cursor) -> pa.DataType:
    _read_digits(cursor, default=_MAX_DIGITS)
    if cursor.accept("WITH", "LOCAL", "TIME", "ZONE"):
        return pa.timestamp("us", "UTC")
    if cursor.starts_with("WITH", "TIME", "ZONE"):
        raise cursor.error("a time with a zone for each row is not covered: use TIMESTAMP_LTZ")
    cursor.accept("WITHOUT", "TIME", "ZONE")
    return pa.timestamp("us")


def _local_timestamp(cursor: Cursor) -> pa.DataType:
    _read_digits(cursor, default=_MAX_DIGITS)
    return pa.timestamp("us", "UTC")


def _time(cursor: Cursor) -> pa.DataType:
    _read_digits(cursor, default=0)
    cursor.accept("WITHOUT", "TIME", "ZONE")
    return pa.time64("us")


def _read_digits(cursor: Cursor, default: int) -> None:
    """Read the number of digits of seconds that may follow the name of a type."""
    before = cursor.script[: cursor.token.start].rstrip()
    digits = (*_arguments(cursor, 1), default)[0]
    if digits > _MAX_DIGITS:
        start = len(before) - len(re.split(r"\W", before)[-1])
        rule = "times have microseconds: declare a precision of at most 6"
        raise error_at(cursor.script, start, rule, f"{before[start:]}({digits})")


def _array(cursor: Cursor) -> pa.DataType:
    return pa.list_(*_fields(cursor, "element"))


def _map(cursor: Cursor) -> pa.DataType:
    key, value = _fields(cursor, "key", "value")
    return pa.map_(key.type, value)


def _multiset(cursor: Cursor) -> pa.DataType:
    [element] = _fields(cursor, "element")
    return pa.map_(element.type, pa.field("value", pa.int32(), nullable=False))


def _fields(cursor: Cursor, *names: str) -> list[pa.Field]:
    """Read the types in ``< >`` of what a value is made of."""
    cursor.expect("<")
    found: list[pa.Field] = []
    for name in names:
        if found:
            cursor.expect(",")
        found.append(pa.field(name, *read_type(cursor)))
    cursor.expect(">")
    return found


def _row(cursor: Cursor) -> pa.DataType:
    opening = cursor.next().text
    closing = {"<": ">", "(": ")"}.get(opening)
    if closing is None:
        raise cursor.error("ROW has its fields in < >")
    fields = []
    while not cursor.accept(closing):
        name = cursor.name("a field")
        dtype, nullable = read_type(cursor)
        fields.append(pa.field(name, dtype, nullable))
        if cursor.token.kind == "string":
            cursor.next()
        if not cursor.starts_with(closing):
            cursor.expect(",")
    return pa.struct(fields)


def _double(cursor: Cursor) -> pa.DataType:
    cursor.accept("PRECISION")
    return pa.float64()


def _with_length(dtype: pa.DataType) -> Callable[[Cursor], pa.DataType]:
    """Return a reader of a type with a length, which limits no value: Flink checks it nowhere."""

    def read(cursor: Cursor) -> pa.DataType:
        cursor.accept("VARYING")
        _arguments(cursor, 1)
        return dtype

    return read


def _plain(dtype: pa.DataType) -> Callable[[Cursor], pa.DataType]:
    return lambda cursor: dtype


_READERS: Mapping[str, Callable[[Cursor], pa.DataType]] = {
    **dict.fromkeys(("STRING", "CHAR", "VARCHAR", "CHARACTER"), _with_length(pa.string())),
    **dict.fromkeys(("BYTES", "BINARY", "VARBINARY"), _with_length(pa.binary())),
    "BOOLEAN": _plain(pa.bool_()),
    "TINYINT": _plain(pa.int8()),
    "SMALLINT": _plain(pa.int16()),
    **dict.fromkeys(("INT", "INTEGER"), _plain(pa.int32())),
    "BIGINT": _plain(pa.int64()),
    "FLOAT": _plain(pa.float32()),
    "DOUBLE": _double,
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC"), _decimal),
    "DATE": _plain(pa.date32()),
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_LTZ": _local_timestamp,
    "ARRAY": _array,
    "MAP": _map,
    "MULTISET": _multiset,
    "ROW": _row,
}


def read_type(cursor: Cursor) -> tuple[pa.DataType, bool]:
    """Read a type; return it, and whether its values may be null.

    Raises
    ------
    SqlError
        If there is no such type.
    """
    token = cursor.token
    reader = _READERS.get(token.text.upper()) if token.kind == "word" else None
    if reader is None:
        raise cursor.error(f"there is no such type; there are {', '.join(_READERS)}")
    cursor.next()
    dtype = reader(cursor)
    nullable = True
    while True:
        if cursor.accept("NOT", "NULL"):
            nullable = False
        elif cursor.accept("NULL"):
            nullable = True
        elif cursor.accept("ARRAY"):
            dtype, nullable = pa.list_(pa.field("element", dtype, nullable)), True
        else:
            return dtype, nullable


def _arguments(cursor: Cursor, max_count: int) -> tuple[int, ...]:
    """Read up to some whole numbers in parentheses, if there are any."""
    if not cursor.accept("("):
        return ()
    found = [cursor.integer()]
    while len(found) < max_count and cursor.accept(","):
        found.append(cursor.integer())
    cursor.expect(")")
    return tuple(found)
