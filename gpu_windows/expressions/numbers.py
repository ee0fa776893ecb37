"""Written numbers, and arithmetic of Arrow's that gives what Spark's gives."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.column_types.logical import DIGITS
from gpu_windows.column_types.widening import WHOLE_DIGITS, decimal_of
from gpu_windows.expressions.places import refused
from gpu_windows.expressions.values import Guard, Value, call

_INT, _LONG = 2**31, 2**63
_WRITTEN = re.compile(r"\d+(\.\d*)?|\.\d+", re.ASCII)


def number(node: exp.Expr, text: str) -> pa.Scalar:
    """Return a written number: INT or BIGINT, DECIMAL with a point, DOUBLE with an exponent.

    Raises
    ------
    SqlError
        If there is no such number in Spark.
    """
    if "e" in text.lower():
        value = float(text)
        if not math.isfinite(value):
            raise refused(node, "a number with an exponent fits DOUBLE")
        return pa.scalar(value, pa.float64())
    if not _WRITTEN.fullmatch(text.removeprefix("-")):
        raise refused(node, "this is no number")
    _, digits, exponent = Decimal(text).as_tuple()
    scale = -int(exponent)
    if max(len(digits), scale) > DIGITS:
        raise refused(node, "a number has up to 38 digits")
    whole = Decimal(text)
    if "." not in text and -_LONG <= whole < _LONG:
        is_short = -_INT <= whole < _INT
        return pa.scalar(int(whole), pa.int32() if is_short else pa.int64())
    return pa.scalar(whole, pa.decimal128(max(len(digits), scale, 1), scale))


def is_number(dtype: pa.DataType) -> bool:
    """Whether a type is one of numbers, as Spark has them."""
    return bool(dtype in WHOLE_DIGITS or types.is_floating(dtype) or types.is_decimal128(dtype))


def widened(value: Value, dtype: pa.DataType) -> Value:
    """Return values with a wider type, as Spark widens them by itself: it cannot fail."""
    if types.is_floating(dtype) and types.is_decimal(value.dtype):
        return value.cast(pa.string()).cast(dtype)  # at once Arrow is off by a rounding
    return value.cast(dtype, safe=not types.is_floating(dtype))


def computed(node: exp.Binary, one: Value, other: Value, guard: Guard) -> Value:
    """Return a sum, a difference, a product, a quotient or a rest.

    Raises
    ------
    SqlError
        If the operands are none, or Arrow would give another type than Spark.
    """
    if _is_time(one) or _is_time(other):
        make = {exp.Add: pc.add_checked, exp.Sub: pc.subtract_checked}.get(type(node))
        if make is None or not (_is_time(one) and _is_time(other)):
            raise refused(node, "a time and an INTERVAL are added or subtracted")
        return call(make, guard.masked(one), other)
    for each in (one, other):
        if not (is_number(each.dtype) or types.is_null(each.dtype)):
            raise refused(node, f"over Arrow tables this is for numbers, not for {each.dtype}")
    one, other = _operands(node, one, other)
    return _ARITHMETIC[type(node)](guard.masked(one), guard.masked(other))


def _is_time(each: Value) -> bool:
    return bool(types.is_timestamp(each.dtype) or types.is_duration(each.dtype))


def _operands(node: exp.Binary, one: Value, other: Value) -> tuple[Value, Value]:
    kind = _kind(node, one, other)
    if kind is None:
        return _as_decimal(one), _as_decimal(other)
    return widened(one, kind), widened(other, kind)


def _kind(node: exp.Binary, one: Value, other: Value) -> pa.DataType | None:
    """Return the type of the operands; None if both become decimals."""
    kinds = [each.dtype for each in (one, other) if not types.is_null(each.dtype)]
    is_whole = isinstance(node, exp.Mod | exp.IntDiv)
    if is_whole and not all(map(types.is_integer, kinds)):
        raise refused(node, "over Arrow tables % and DIV are for whole numbers")
    if isinstance(node, exp.IntDiv) or (is_whole and not kinds):
        return pa.int64()
    if any(map(types.is_floating, kinds)):
        is_short = not isinstance(node, exp.Div) and set(kinds) == {pa.float32()}
        return pa.float32() if is_short else pa.float64()
    if any(map(types.is_decimal, kinds)):
        if isinstance(node, exp.Div):
            rule = "a quotient of decimals has other digits in Arrow: cast an operand to DOUBLE"
            raise refused(node, rule)
        return None if len(kinds) == 2 else kinds[0]
    if isinstance(node, exp.Div) or not kinds:
        return pa.float64()
    return max(kinds, key=lambda kind: kind.bit_width)


def _as_decimal(of: Value) -> Value:
    """Return decimals; a whole number that is written out has as many digits as it has there."""
    if types.is_decimal(of.dtype) or of.written is None:
        return of.cast(decimal_of(of.dtype))
    value = Decimal(of.written.as_py())
    return of.replaced(pa.scalar(value, pa.decimal128(len(value.as_tuple().digits), 0)))


def _rest(one: Value, other: Value) -> Value:
    # the rest of -1 is that of 1, and the least number cannot be divided by -1
    is_minus = call(pc.equal, other, pa.scalar(-1, other.dtype))
    other = call(pc.if_else, is_minus, pa.scalar(1, other.dtype), other)
    whole = call(pc.divide_checked, one, other)
    return call(pc.subtract_checked, one, call(pc.multiply_checked, whole, other))


def _of(make: Callable[..., object]) -> Callable[[Value, Value], Value]:
    return lambda one, other: call(make, one, other)


_ARITHMETIC: Mapping[type[exp.Expr], Callable[[Value, Value], Value]] = {
    exp.Add: _of(pc.add_checked),
    exp.Sub: _of(pc.subtract_checked),
    exp.Mul: _of(pc.multiply_checked),
    exp.Div: _of(pc.divide_checked),
    exp.Mod: _rest,
    exp.IntDiv: _of(pc.divide_checked),
}


def whole(value: Value, *, up: bool) -> Value:
    """Return floats rounded up or down to BIGINT, which they have to fit; NaN is 0."""
    value = widened(value, pa.float64())
    rounded = call(pc.ceil if up else pc.floor, value)
    return call(pc.if_else, call(pc.is_nan, rounded), 0.0, rounded).cast(pa.int64())
