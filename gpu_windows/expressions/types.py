"""Arrow types for Spark's: of casts by name, and of columns; their names in Flink's SQL."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.column_types.logical import logical_type
from gpu_windows.column_types.time_units import (
    is_nanoseconds,
    microsecond_type,
    to_microseconds,
)
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.values import Value, call

#: Spark's TIMESTAMP, an instant; it is displayed in the session's zone, here UTC.
INSTANT = pa.timestamp("us", "UTC")
#: Spark's types without parts, by their names in SQL.
TYPES = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.VARCHAR: pa.string(),
    exp.DType.CHAR: pa.string(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: INSTANT,
    exp.DType.TIMESTAMPTZ: INSTANT,
    exp.DType.TIMESTAMPLTZ: INSTANT,
    exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
}


def arrow_type(cast: exp.Cast) -> pa.DataType:
    """Return the Arrow type that a cast names.

    Raises
    ------
    SqlError
        If Arrow has no equivalent type.
    """
    to = cast.args["to"]
    found = type_with_parts(cast, to)
    if found is None and (to.this not in TYPES or to.expressions):
        raise sql_error(cast, "over Arrow tables this type is not supported")
    return TYPES[to.this] if found is None else found


def type_with_parts(node: exp.Expr, kind: exp.DataType) -> pa.DataType | None:
    """Return the type of a DECIMAL, or of an INTERVAL DAY TO SECOND; None for others.

    Raises
    ------
    SqlError
        If a DECIMAL has more than 38 digits, or more after the point than in all.
    """
    of = kind.this
    if isinstance(of, exp.Interval) and of.sql().upper() == "INTERVAL DAY TO SECOND":
        return pa.duration("us")
    if of != exp.DType.DECIMAL:
        return None
    numbers = [each.name for each in kind.expressions]
    if not all(each.isdecimal() and len(each) < 3 for each in numbers) or len(numbers) > 2:
        raise sql_error(node, "a DECIMAL may have up to 38 digits")
    precision = int(numbers[0]) if numbers else 10
    scale = int(numbers[1]) if numbers[1:] else 0
    if not 0 < precision <= 38 or not 0 <= scale <= precision:
        raise sql_error(node, "a DECIMAL may have up to 38 digits")
    return pa.decimal128(precision, scale)


def to_spark_type(
    column: Value, name: str, *, of: str | None = None, rounds: bool = False
) -> Value:
    """Return the values of a column cast to the type that Spark has for them.

    Strings of any encoding become STRING, times of any unit become microseconds. Zones only say
    how an instant is displayed, and Spark uses the session's.

    Parameters
    ----------
    column : Value
    name : str
        Its display name.
    of : str, optional
        The struct column that it is a field of.
    rounds : bool
        Whether finer times are rounded down, and finer durations towards zero.

    Raises
    ------
    PrecisionError
        If a time or duration is finer than a microsecond and not rounded. For conditions of joins,
        which are built without rows, Arrow raises when it evaluates them.
    """
    dtype = column.dtype
    if is_nanoseconds(dtype) and not types.is_time(dtype):
        column = _round_down(column) if rounds else _exact(column, name, of)
    if types.is_timestamp(dtype):
        return column.cast(pa.timestamp("us", None if dtype.tz is None else "UTC"))
    if types.is_duration(dtype):
        return column.cast(pa.duration("us"))
    return column.cast(dtype if types.is_nested(dtype) else logical_type(dtype))


def _round_down(column: Value) -> Value:
    """Return times rounded down to microseconds, durations rounded towards zero."""
    if types.is_duration(column.dtype):
        return column.cast(pa.duration("us"), safe=False)
    return call(pc.floor_temporal, column, unit="microsecond")


def _exact(column: Value, name: str, of: str | None) -> Value:
    """Return times and durations in microseconds; raise if they are finer."""
    rows = column.rows
    assert not isinstance(rows, pa.Scalar), "columns and their fields are arrays"
    exact = to_microseconds(rows, name, "a time or duration in an expression", of=of)
    if column.expression is None:
        return Value(exact)
    return Value(exact, column.expression.cast(microsecond_type(column.dtype)), column.parts + 1)


_NAMES = {
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BYTES",
    pa.large_binary(): "BYTES",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.null(): "NULL",
}


def flink_name(dtype: pa.DataType) -> str:
    """Return the name that Flink gives a type, or Arrow's if Flink has no such type."""
    if types.is_timestamp(dtype):
        return "TIMESTAMP" if dtype.tz is None else "TIMESTAMP_LTZ"
    if types.is_time(dtype):
        return "TIME"
    if types.is_decimal(dtype):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if types.is_list(dtype) or types.is_large_list(dtype):
        return f"ARRAY<{flink_name(dtype.value_type)}>"
    if types.is_map(dtype):
        return f"MAP<{flink_name(dtype.key_type)}, {flink_name(dtype.item_type)}>"
    if types.is_struct(dtype):
        return f"ROW<{', '.join(f'{each.name} {flink_name(each.type)}' for each in dtype)}>"
    return _NAMES.get(dtype, str(dtype))
