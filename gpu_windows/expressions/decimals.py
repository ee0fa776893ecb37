"""Quotients, remainders and whole numbers of decimals, exact in 256 bits, with Spark's types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from gpu_windows.column_types.logical import DIGITS
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.values import Value, call

_MAX_DIGITS = 76
#: Digits after the point that a quotient keeps if it has too many.
_MIN_SCALE = 6
#: Holds any decimal of Spark, and the digits of a float.
EXACT = pa.decimal256(76, 38)


def round_half_up(of: Any, *, digits: int) -> Any:
    """Return an array or an Arrow expression rounded to digits after the point."""
    return pc.round(of, ndigits=digits, round_mode="half_towards_infinity")


def divide(node: exp.Expr, one: Value, other: Value) -> Value:
    """Return quotients of decimals, rounded half up to the scale of Spark's result.

    Raises
    ------
    SqlError
        If the types have too many digits.
    """
    a, b = one.dtype, other.dtype
    to = _quotient_type(a, b)
    # Arrow truncates after this scale + b.precision - b.scale + 1 digits
    scale = max(a.scale, to.scale - b.precision + b.scale)
    digits = scale + b.precision - b.scale + 1
    _check_digits(node, a.precision - a.scale + scale, a.precision - a.scale + b.scale + digits)
    wide = one.cast(pa.decimal256(a.precision - a.scale + scale, scale))
    quotient = call(pc.divide, wide, other.cast(pa.decimal256(b.precision, b.scale)))
    return call(round_half_up, quotient, digits=to.scale).cast(to)


def _quotient_type(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    scale = max(_MIN_SCALE, a.scale + b.precision + 1)
    whole = a.precision - a.scale + b.scale
    if whole + scale > DIGITS:
        scale = max(DIGITS - whole, _MIN_SCALE)
    return pa.decimal128(min(whole + scale, DIGITS), scale)


def remainder(node: exp.Expr, one: Value, other: Value) -> Value:
    """Return remainders of decimals, with the sign of the first operand.

    Raises
    ------
    SqlError
        If the types have too many digits.
    """
    a, b = one.dtype, other.dtype
    scale = max(a.scale, b.scale)
    whole = min(a.precision - a.scale, b.precision - b.scale)
    first, second = a.precision - a.scale + scale, b.precision - b.scale + scale
    _check_digits(node, first + second + 2)
    wide = one.cast(pa.decimal256(first, scale))
    by = other.cast(pa.decimal256(second, scale))
    quotient = call(pc.trunc, call(pc.divide, wide, by)).cast(pa.decimal256(first + 1, 0))
    rest = call(pc.subtract, wide, call(pc.multiply, quotient, by))
    return rest.cast(pa.decimal128(min(max(whole + scale, 1), DIGITS), scale))


def round_to_whole(of: Value, *, up: bool) -> Value:
    """Return decimals rounded up or down to whole numbers, as decimals."""
    dtype = of.dtype
    if dtype.scale == 0:
        return of
    wide = of.cast(pa.decimal256(dtype.precision + 1, dtype.scale))
    whole = pa.decimal128(min(dtype.precision - dtype.scale + 1, DIGITS), 0)
    return call(pc.ceil if up else pc.floor, wide).cast(whole)


def _check_digits(node: exp.Expr, *digits: int) -> None:
    if max(digits) > _MAX_DIGITS:
        rule = "over Arrow tables these decimals have too many digits: cast them to fewer"
        raise sql_error(node, rule)
