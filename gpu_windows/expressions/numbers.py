"""Number literals, and arithmetic in Arrow with Spark's results."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.column_types.logical import DIGITS
from gpu_windows.column_types.widening import WHOLE_DIGITS, decimal_of
from gpu_windows.expressions import decimals
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.values import Guard, Value, call

_INT, _LONG = 2**31, 2**63
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+", re.ASCII)
_EXPONENT = re.compile(r"[eE][+-]?\d+", re.ASCII)


def parse_number(node: exp.Expr, text: str) -> pa.Scalar:
    """Parse a number: INT or BIGINT, DECIMAL with a point, DOUBLE with an exponent.

    Raises
    ------
    SqlError
        If Spark has no such number.
    """
    mantissa, *exponents = re.split("(?=[eE])", text.removeprefix("-"), maxsplit=1)
    if not _NUMBER.fullmatch(mantissa) or not all(map(_EXPONENT.fullmatch, exponents)):
        raise sql_error(node, "this is not a number")
    if exponents:
        value = float(text)
        if not math.isfinite(value):
            raise sql_error(node, "a number with an exponent must fit DOUBLE")
        return pa.scalar(value, pa.float64())
    _, digits, exponent = Decimal(text).as_tuple()
    scale = -int(exponent)
    if max(len(digits), scale) > DIGITS:
        raise sql_error(node, "a number may have up to 38 digits")
    exact = Decimal(text)
    if "." not in text and -_LONG <= exact < _LONG:
        is_short = -_INT <= exact < _INT
        return pa.scalar(int(exact), pa.int32() if is_short else pa.int64())
    return pa.scalar(exact, pa.decimal128(max(len(digits), scale, 1), scale))


def is_number(dtype: pa.DataType) -> bool:
    """Whether a type is numeric in Spark."""
    return bool(dtype in WHOLE_DIGITS or types.is_floating(dtype) or types.is_decimal128(dtype))


def widen(value: Value, dtype: pa.DataType) -> Value:
    """Return values cast to a wider type, as Spark does implicitly: it cannot fail."""
    if types.is_floating(dtype) and types.is_decimal(value.dtype):
        return value.cast(pa.string()).cast(dtype)  # Arrow's direct cast rounds twice
    return value.cast(dtype, safe=not types.is_floating(dtype))


def compute_arithmetic(node: exp.Binary, one: Value, other: Value, guard: Guard) -> Value:
    """Return a sum, difference, product, quotient or remainder.

    Raises
    ------
    SqlError
        If operands are not numbers, or Arrow's result type differs from Spark's.
    """
    if _is_time(one) or _is_time(other):
        if not isinstance(node, exp.Add | exp.Sub) or not (_is_time(one) and _is_time(other)):
            raise sql_error(node, "times and INTERVALs can be added and subtracted alone")
        return _ARITHMETIC[type(node)](guard.mask(one), other)
    for each in (one, other):
        if not (is_number(each.dtype) or types.is_null(each.dtype)):
            raise sql_error(node, f"over Arrow tables this takes numbers, got {each.dtype}")
    one, other = _operands(node, one, other)
    one, other = guard.mask(one), guard.mask(other)
    if types.is_decimal(one.dtype) and type(node) in _OF_DECIMALS:
        return _OF_DECIMALS[type(node)](node, one, other)
    return _ARITHMETIC[type(node)](one, other)


def _is_time(each: Value) -> bool:
    return bool(types.is_timestamp(each.dtype) or types.is_duration(each.dtype))


def _operands(node: exp.Binary, one: Value, other: Value) -> tuple[Value, Value]:
    kind = _operand_type(node, one, other)
    if kind is None:
        return _as_decimal(one), _as_decimal(other)
    return widen(one, kind), widen(other, kind)


def _operand_type(node: exp.Binary, one: Value, other: Value) -> pa.DataType | None:
    """Return the common type of the operands; None if both become decimals."""
    kinds = [each.dtype for each in (one, other) if not types.is_null(each.dtype)]
    _check_whole(node, kinds)
    if isinstance(node, exp.IntDiv) or (isinstance(node, exp.Mod) and not kinds):
        return pa.int64()
    if any(map(types.is_floating, kinds)):
        is_short = not isinstance(node, exp.Div) and set(kinds) == {pa.float32()}
        return pa.float32() if is_short else pa.float64()
    if any(map(types.is_decimal, kinds)):
        return None if len(kinds) == 2 else kinds[0]
    if isinstance(node, exp.Div) or not kinds:
        return pa.float64()
    return max(kinds, key=lambda kind: kind.bit_width)


def _check_whole(node: exp.Binary, kinds: list[pa.DataType]) -> None:
    """Raise `SqlError` for a remainder of floats, and for DIV of others than integers."""
    if isinstance(node, exp.IntDiv) and not all(map(types.is_integer, kinds)):
        raise sql_error(node, "over Arrow tables DIV takes integers")
    if isinstance(node, exp.Mod) and any(map(types.is_floating, kinds)):
        raise sql_error(node, "over Arrow tables % takes integers and decimals")


def _as_decimal(of: Value) -> Value:
    """Return decimals; an integer literal gets the precision of its digits."""
    if types.is_decimal(of.dtype) or of.literal is None:
        return of.cast(decimal_of(of.dtype))
    value = Decimal(of.literal.as_py())
    return of.with_literal(pa.scalar(value, pa.decimal128(len(value.as_tuple().digits), 0)))


def _remainder(one: Value, other: Value) -> Value:
    # dividing by -1 overflows for the minimum integer; the remainder is the same as by 1
    is_minus = call(pc.equal, other, pa.scalar(-1, other.dtype))
    other = call(pc.if_else, is_minus, pa.scalar(1, other.dtype), other)
    quotient = call(pc.divide_checked, one, other)
    return call(pc.subtract_checked, one, call(pc.multiply_checked, quotient, other))


_ARITHMETIC: Mapping[type[exp.Expr], Callable[[Value, Value], Value]] = {
    exp.Add: partial(call, pc.add_checked),
    exp.Sub: partial(call, pc.subtract_checked),
    exp.Mul: partial(call, pc.multiply_checked),
    exp.Div: partial(call, pc.divide_checked),
    exp.IntDiv: partial(call, pc.divide_checked),
    exp.Mod: _remainder,
}


_OF_DECIMALS: Mapping[type[exp.Expr], Callable[[exp.Expr, Value, Value], Value]] = {
    exp.Div: decimals.divide,
    exp.Mod: decimals.remainder,
}


def round_number(node: exp.Expr, of: Value) -> Value:
    """Return FLOOR or CEIL: whole decimals of decimals, BIGINT of others; 0 for NaN.

    Raises
    ------
    SqlError
        If values are not numbers.
    """
    is_up = isinstance(node, exp.Ceil)
    if types.is_decimal(of.dtype):
        return decimals.round_to_whole(of, up=is_up)
    if types.is_integer(of.dtype):
        return of.cast(pa.int64())
    if not types.is_floating(of.dtype):
        raise sql_error(node, f"over Arrow tables this takes numbers, got {of.dtype}")
    value = widen(of, pa.float64())
    rounded = call(pc.ceil if is_up else pc.floor, value)
    return call(pc.if_else, call(pc.is_nan, rounded), 0.0, rounded).cast(pa.int64())
