"""Types of columns: what aggregates take of them, and what carries them in kernels."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
from pyarrow import types

#: What carries values in kernels.
Lane = Literal["int64", "float64"]

#: Decimals of up to this many digits are kept as unscaled int64.
DECIMAL_DIGITS = 18


def is_number(dtype: pa.DataType) -> bool:
    """Whether it is a number that kernels add: integers but uint64, floats, small decimals."""
    if types.is_uint64(dtype):
        return False  # does not fit int64
    return bool(types.is_integer(dtype) or types.is_floating(dtype)) or is_small_decimal(dtype)


def is_small_decimal(dtype: pa.DataType) -> bool:
    """Whether it is a decimal of up to `DECIMAL_DIGITS` digits."""
    return bool(types.is_decimal128(dtype) and dtype.precision <= DECIMAL_DIGITS)


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
    """Whether values of this type can be told apart: what may be a key, structs aside."""
    text = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    wide = types.is_decimal(dtype) or types.is_uint64(dtype)
    return is_ordered(dtype) or wide or any(is_type(dtype) for is_type in text)


def is_plain_number(dtype: pa.DataType) -> bool:
    """Whether it is an integer or a float."""
    return is_number(dtype) and not types.is_decimal(dtype)


def lane_of(dtype: pa.DataType) -> Lane:
    """Return the kernel type that carries values of this type."""
    return "float64" if types.is_floating(dtype) else "int64"


def any_type(_dtype: pa.DataType) -> bool:
    """Whether it is a type."""
    return True
