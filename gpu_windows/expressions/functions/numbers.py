"""Functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.expressions.decimals import EXACT, round_half_up
from gpu_windows.expressions.functions.call import UNLIMITED, ArrowFunction, Call
from gpu_windows.expressions.sql_text import sql_error

#: From here on every float is a whole number.
_WHOLE = 2.0**52
#: Floats below round to 0 at up to 15 digits.
_TINY = 1e-20
_MAX_DIGITS = 15


def _as_floats(array: pa.Array) -> pa.Array:
    if types.is_decimal(array.type):
        return array.cast(pa.string()).cast(pa.float64())
    return array.cast(pa.float64(), safe=False)


def _floats(plain: Callable[..., pa.Array], count: int = 1) -> ArrowFunction:
    kinds = ("number",) * count
    return ArrowFunction(kinds, lambda call: plain(*map(_as_floats, call.arrays)))


def _power(base: pa.Array, exponent: pa.Array) -> pa.Array:
    """Return powers as Java: NaN for an exponent NaN, and for 1 or -1 to an infinite one."""
    infinite = pc.and_(pc.is_inf(exponent), pc.equal(pc.abs(base), 1.0))
    odd = pc.or_(pc.is_nan(exponent), infinite)
    return pc.if_else(odd, pa.scalar(float("nan")), pc.power(base, exponent))


def _cotangent(values: pa.Array) -> pa.Array:
    return pc.divide(pa.scalar(1.0), pc.tan(values))


def _round(call: Call) -> pa.Array:
    """Round half away from zero, floats by the decimal number that is their shortest text."""
    of, digits = call.arrays[0], call.literal(1, 0)
    if abs(digits) > _MAX_DIGITS:
        raise sql_error(call.node, f"over Arrow tables ROUND takes up to {_MAX_DIGITS} digits")
    if types.is_integer(of.type) or types.is_decimal(of.type):
        return _round_exact(of, digits)
    doubles = of.cast(pa.float64())
    size = pc.abs(doubles)
    usable = pc.and_(pc.less(size, 1e30), pc.greater_equal(size, _TINY))
    plain = pc.if_else(usable, doubles, pa.scalar(0.0))
    text = pc.if_else(usable, of, pa.scalar(0.0, of.type)).cast(pa.string())
    rounded = round_half_up(text.cast(EXACT), digits=digits)
    found = _as_floats(rounded)
    is_whole = pc.greater_equal(size, _WHOLE) if digits >= 0 else pc.greater_equal(size, 1e30)
    is_same = pc.or_(is_whole, pc.is_nan(doubles))
    found = pc.if_else(usable, found, pc.multiply(plain, 0.0))
    return pc.if_else(is_same, doubles, found).cast(of.type)


def _round_exact(of: pa.Array, digits: int) -> pa.Array:
    if types.is_integer(of.type):
        if digits >= 0:
            return of
        wide = of.cast(pa.decimal128(20 if of.type.bit_width == 64 else 11, 0))
        return round_half_up(wide.cast(pa.decimal128(30, 0)), digits=digits).cast(of.type)
    scale = max(min(digits, of.type.scale), 0)
    precision = of.type.precision - of.type.scale + scale + (scale < of.type.scale)
    wide = of.cast(pa.decimal256(of.type.precision + 1, of.type.scale))
    to = pa.decimal128(max(min(precision, 38), 1), scale)
    return round_half_up(wide, digits=digits).cast(to)


def _sign(call: Call) -> pa.Array:
    of = call.arrays[0]
    if types.is_decimal(of.type):
        return pc.sign(_as_floats(of)).cast(pa.int8()).cast(pa.decimal128(3, 0)).cast(of.type)
    return pc.sign(of).cast(of.type if types.is_floating(of.type) else pa.float64())


def _constant(value: float) -> ArrowFunction:
    return ArrowFunction((), lambda call: pa.array([value]))


def _extreme(plain: Callable[..., pa.Array], *, is_greatest: bool) -> ArrowFunction:
    """Return the greatest or least value that is not null; NaN is greater than all numbers."""

    def compute(call: Call) -> pa.Array:
        if types.is_boolean(call.arrays[0].type):
            found = plain(*(each.cast(pa.int8()) for each in call.arrays))
            return found.cast(pa.bool_())
        found = plain(*call.arrays)
        if not types.is_floating(found.type) or not is_greatest:
            return found
        is_nan = [pc.fill_null(pc.is_nan(each), False) for each in call.arrays]
        nan = pa.scalar(float("nan"), found.type)
        return pc.if_else(reduce(pc.or_, is_nan), nan, found)

    return ArrowFunction(("any",), compute, 2, UNLIMITED)


_TRIGONOMETRY: Mapping[str, Callable[..., pa.Array]] = {
    "SIN": pc.sin,
    "COS": pc.cos,
    "TAN": pc.tan,
    "ASIN": pc.asin,
    "ACOS": pc.acos,
    "ATAN": pc.atan,
    "SINH": pc.sinh,
    "COSH": pc.cosh,
    "TANH": pc.tanh,
    "COT": _cotangent,
    "SQRT": pc.sqrt,
    "EXP": pc.exp,
    "LN": pc.ln,
    "LOG2": pc.log2,
    "LOG10": pc.log10,
    "DEGREES": lambda values: pc.multiply(values, 180.0 / math.pi),
    "RADIANS": lambda values: pc.multiply(values, math.pi / 180.0),
}

#: The functions by Spark's names.
NUMBERS: Mapping[str, ArrowFunction] = {
    **{name: _floats(function) for name, function in _TRIGONOMETRY.items()},
    "POWER": _floats(_power, 2),
    "ATAN2": _floats(pc.atan2, 2),
    "ROUND": ArrowFunction(("number", "integer"), _round, 1),
    "SIGN": ArrowFunction(("number",), _sign),
    "PI": _constant(math.pi),
    "E": _constant(math.e),
    "GREATEST": _extreme(pc.max_element_wise, is_greatest=True),
    "LEAST": _extreme(pc.min_element_wise, is_greatest=False),
}
