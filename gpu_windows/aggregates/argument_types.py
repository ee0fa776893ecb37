"""Types of columns: which aggregates take them, and how kernels represent their values."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
from pyarrow import types

#: Types that represent values in kernels.
Lane = Literal["int64", "float64"]

#: Decimals of up to this many digits are one lane, their unscaled value; wider ones are two.
DECIMAL_DIGITS = 18


def is_number(dtype: pa.DataType) -> bool:
    """Whether kernels add its values: integers except uint64, floats, small decimals."""
    if types.is_uint64(dtype):
        return False  # does not fit int64
    return bool(types.is_integer(dtype) or types.is_floating(dtype)) or is_small_decimal(dtype)


def is_small_decimal(dtype: pa.DataType) -> bool:
    """Whether it is a decimal of up to `DECIMAL_DIGITS` digits."""
    return bool(types.is_decimal128(dtype) and dtype.precision <= DECIMAL_DIGITS)


def is_wide(dtype: pa.DataType) -> bool:
    """Whether it is a wider decimal, whose values are an upper and a lower word."""
    return bool(types.is_decimal128(dtype) and dtype.precision > DECIMAL_DIGITS)


def is_summed(dtype: pa.DataType) -> bool:
    """Whether its values can be summed, in one lane or in two."""
    return is_number(dtype) or is_wide(dtype)


def is_text(dtype: pa.DataType) -> bool:
    """Whether it is a string or binary."""
    strings = types.is_string(dtype) or types.is_large_string(dtype)
    return bool(strings or types.is_binary(dtype) or types.is_large_binary(dtype))


def is_sortable(dtype: pa.DataType) -> bool:
    """Whether values of this type have an order; strings are ordered by bytes."""
    return is_ordered(dtype) or is_wide(dtype) or is_text(dtype)


def is_ordered(dtype: pa.DataType) -> bool:
    """Whether kernels can compare values of this type."""
    return bool(
        is_number(dtype)
        or types.is_boolean(dtype)
        or types.is_date32(dtype)
        or types.is_timestamp(dtype)
    )


def is_hashable(dtype: pa.DataType) -> bool:
    """Whether sketches can count values of this type."""
    return is_ordered(dtype) or bool(types.is_string(dtype) or types.is_large_string(dtype))


def is_comparable(dtype: pa.DataType) -> bool:
    """Whether values of this type can be compared for equality, as keys can, structs aside."""
    return is_sortable(dtype) or bool(types.is_decimal(dtype))


def is_plain_number(dtype: pa.DataType) -> bool:
    """Whether it is an integer or a float."""
    return is_number(dtype) and not types.is_decimal(dtype)


def lane_of(dtype: pa.DataType) -> Lane:
    """Return the kernel type that represents values of this type."""
    return "float64" if types.is_floating(dtype) else "int64"


def any_type(_dtype: pa.DataType) -> bool:
    """Accept any type."""
    return True
