"""Types of Arrow's that are Spark's: of its names, and of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.expressions.places import refused
from gpu_windows.expressions.values import Value, call

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Spark's TIMESTAMP: an instant; what it shows of it is in the zone of the session, here UTC.
INSTANT = pa.timestamp("us", "UTC")
_TYPES = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.VARCHAR: pa.string(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: INSTANT,
    exp.DType.TIMESTAMPTZ: INSTANT,
    exp.DType.TIMESTAMPLTZ: INSTANT,
}
#: Types of columns, and those that Spark has for their values.
_WIDER: Mapping[pa.DataType, pa.DataType] = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


def arrow_type(cast: exp.Cast) -> pa.DataType:
    """Return the type that a cast names.

    Raises
    ------
    SqlError
        If Arrow has none that is the same.
    """
    to = cast.args["to"]
    if to.this == exp.DType.DECIMAL:
        return _decimal(cast, [each.name for each in to.expressions])
    if to.this not in _TYPES or to.expressions:
        raise refused(cast, "over Arrow tables there is no such type")
    return _TYPES[to.this]


def _decimal(cast: exp.Cast, said: list[str]) -> pa.DataType:
    if not all(each.isdecimal() and len(each) < 3 for each in said) or len(said) > 2:
        raise refused(cast, "a DECIMAL has up to 38 digits")
    precision, scale = (int(said[0]) if said else 10, int(said[1]) if said[1:] else 0)
    if not 0 < precision <= 38 or not 0 <= scale <= precision:
        raise refused(cast, "a DECIMAL has up to 38 digits")
    return pa.decimal128(precision, scale)


def as_in_spark(column: Value) -> Value:
    """Return the values of a column with the type that Spark has for them.

    Texts of any kind are STRING, and times of any unit are of microseconds: finer ones are rounded
    down. Zones tell how an instant is shown, and Spark has that of the session.
    """
    dtype = column.dtype
    if types.is_dictionary(dtype):
        return as_in_spark(column.cast(dtype.value_type))
    if types.is_timestamp(dtype):
        if dtype.unit == "ns":
            column = call(pc.floor_temporal, column, unit="microsecond")
        return column.cast(pa.timestamp("us", None if dtype.tz is None else "UTC"))
    if types.is_duration(dtype):
        return column.cast(pa.duration("us"), safe=dtype.unit != "ns")
    if types.is_decimal(dtype) and not types.is_decimal128(dtype) and dtype.precision <= 38:
        return column.cast(pa.decimal128(dtype.precision, dtype.scale))
    if types.is_fixed_size_binary(dtype) and not types.is_decimal(dtype):
        return column.cast(pa.binary())
    return column.cast(_WIDER.get(dtype, dtype))
