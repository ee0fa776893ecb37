"""The common type of columns of two inputs: the type of one of them, or a wider one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
from pyarrow import types

from gpu_windows.column_types.logical import DIGITS

#: Digits of Spark's decimals for whole numbers.
WHOLE_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
#: Types that may differ in their unit: microseconds are the common one, if that is exact.
_TIMED: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...] = (
    (types.is_duration, lambda _: pa.duration("us")),
    (types.is_time64, lambda _: pa.time64("us")),
)


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds values of two logical types exactly, or None.

    Two types of whole numbers, or of floats, have the wider one; whole numbers and decimals have a
    decimal that holds both, as in Spark. Instants of two zones get the first one's zone. Times of
    microseconds and of nanoseconds have microseconds.

    Examples
    --------
    >>> import pyarrow as pa
    >>> common_type(pa.int32(), pa.decimal128(4, 2))
    Decimal128Type(decimal128(12, 2))
    >>> common_type(pa.int64(), pa.float64()) is None
    True
    """
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_timestamp(one) and types.is_timestamp(other):
        return None if (one.tz is None) != (other.tz is None) else pa.timestamp("us", one.tz)
    for is_of, coarse in _TIMED:
        if is_of(one) and is_of(other):
            return coarse(one)
    if one in WHOLE_DIGITS and other in WHOLE_DIGITS:
        return max(one, other, key=lambda dtype: dtype.bit_width)
    if types.is_floating(one) and types.is_floating(other):
        return max(one, other, key=lambda dtype: dtype.bit_width)
    if _is_exact(one) and _is_exact(other):
        return common_decimal((one, other))
    return _common_nested(one, other)


def _is_exact(dtype: pa.DataType) -> bool:
    """Whether values are whole numbers or decimals."""
    return dtype in WHOLE_DIGITS or types.is_decimal128(dtype)


def decimal_of(dtype: pa.DataType) -> pa.DataType:
    """Return the decimal type for whole numbers, as in Spark; a decimal type stays."""
    return dtype if types.is_decimal(dtype) else pa.decimal128(WHOLE_DIGITS[dtype], 0)


def common_decimal(dtypes: Iterable[pa.DataType]) -> pa.DataType | None:
    """Return the decimal type that holds several exact types, or None."""
    decimals = [decimal_of(dtype) for dtype in dtypes]
    scale = max(each.scale for each in decimals)
    digits = scale + max(each.precision - each.scale for each in decimals)
    return pa.decimal128(digits, scale) if digits <= DIGITS else None


def _common_nested(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the common type of structs, lists or maps whose parts have common types, or None."""
    if not types.is_nested(one) or one.id != other.id:
        return None
    if types.is_map(one):
        key = common_type(one.key_type, other.key_type)
        item = common_type(one.item_type, other.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if types.is_list(one):
        field = _common_field(one.value_field, other.value_field)
        return None if field is None else pa.list_(field)
    if not types.is_struct(one) or [f.name for f in one] != [f.name for f in other]:
        return None
    fields = [_common_field(a, b) for a, b in zip(one, other, strict=True)]
    return None if any(field is None for field in fields) else pa.struct(fields)


def _common_field(one: pa.Field, other: pa.Field) -> pa.Field | None:
    dtype = common_type(one.type, other.type)
    nullable = one.nullable or other.nullable
    return None if dtype is None else one.with_type(dtype).with_nullable(nullable)
