"""CAST, as Spark casts in ANSI mode; what Arrow casts otherwise is refused."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.column_types.widening import decimal_of
from gpu_windows.expressions.numbers import is_number, widened
from gpu_windows.expressions.places import refused
from gpu_windows.expressions.types import INSTANT
from gpu_windows.expressions.values import Guard, Value, call

_SECOND = 1_000_000
_MOST = (2**63 - 1) // _SECOND
#: What Spark leaves out around a text that it casts.
_BLANKS = "".join(map(chr, [*range(0x21), 0x7F]))
#: Decimals of more digits than there are, for what is rounded.
_WIDE = pa.decimal256(76, 38)


def cast(node: exp.Expr, of: Value, to: pa.DataType, guard: Guard) -> Value:
    """Return the values of another type.

    Raises
    ------
    SqlError
        If Spark does not cast so, or Arrow would write or round otherwise.
    """
    if of.dtype == to or types.is_null(of.dtype):
        return of.cast(to)
    make = _cast_of(of.dtype, to)
    if make is None:
        rule = f"{of.dtype} AS {to} is not cast over Arrow tables as in Spark: cast it before"
        raise refused(node, rule)
    return make(guard.masked(of), to)


def _cast_of(of: pa.DataType, to: pa.DataType) -> Callable[[Value, pa.DataType], Value] | None:
    for is_of, is_to, make in _CASTS:
        if is_of(of) and is_to(to):
            return make
    return None


def _plain(of: Value, to: pa.DataType) -> Value:
    return of.cast(to)


def _to_float(of: Value, to: pa.DataType) -> Value:
    return widened(of, to)


def _to_whole(of: Value, to: pa.DataType) -> Value:
    """Return what is left without the digits after the point."""
    return call(pc.trunc, of).cast(to)


def _to_decimal(of: Value, to: pa.DataType) -> Value:
    """Return decimals of another scale, rounded half up."""
    of = of.cast(decimal_of(of.dtype))
    if to.scale >= of.dtype.scale:
        return of.cast(to)
    return _rounded(of.cast(pa.decimal256(of.dtype.precision + 1, of.dtype.scale)), to)


def _rounded(of: Value, to: pa.DataType) -> Value:
    return call(pc.round, of, ndigits=to.scale, round_mode="half_towards_infinity").cast(to)


def _is_true(of: Value, to: pa.DataType) -> Value:
    del to
    return call(pc.not_equal, of, pa.scalar(0, of.dtype))


def _one_or_none(of: Value, to: pa.DataType) -> Value:
    of = of.cast(pa.int8())
    return _to_decimal(of, to) if types.is_decimal(to) else of.cast(to)


# ---- times


def _seconds(of: Value, to: pa.DataType) -> Value:
    """Return the whole seconds since 1970, rounded down."""
    ticks = of.cast(pa.int64())
    whole = call(pc.divide, ticks, pa.scalar(_SECOND))
    is_above = call(pc.greater, call(pc.multiply, whole, pa.scalar(_SECOND)), ticks)
    return call(pc.subtract, whole, is_above.cast(pa.int64())).cast(to)


def _parts_of_seconds(of: Value, to: pa.DataType) -> Value:
    ticks = widened(of.cast(pa.int64()), pa.float64())
    return call(pc.divide, ticks, pa.scalar(float(_SECOND))).cast(to)


def _of_seconds(of: Value, to: pa.DataType) -> Value:
    """Return the instants so many seconds after 1970; the first or the last if they do not fit."""
    seconds = of.cast(pa.int64())
    is_low = call(pc.less, seconds, pa.scalar(-_MOST))
    is_high = call(pc.greater, seconds, pa.scalar(_MOST))
    fits = call(pc.if_else, call(pc.or_kleene, is_low, is_high), pa.scalar(0), seconds)
    ticks = call(pc.multiply, fits, pa.scalar(_SECOND))
    ticks = call(pc.if_else, is_low, pa.scalar(-(2**63)), ticks)
    return call(pc.if_else, is_high, pa.scalar(2**63 - 1), ticks).cast(to)


# ---- texts


def _trimmed(of: Value) -> Value:
    return call(pc.ascii_trim, of, characters=_BLANKS)


def _replaced(of: Value, pattern: str, replacement: str) -> Value:
    return call(pc.replace_substring_regex, of, pattern=pattern, replacement=replacement)


def _whole_of_text(of: Value, to: pa.DataType) -> Value:
    decimal = _replaced(_trimmed(of), "^([+-]?)0[xX]", "x")
    return _replaced(decimal, r"^\+([0-9])", r"\1").cast(to)


def _float_of_text(of: Value, to: pa.DataType) -> Value:
    text = _replaced(_trimmed(of), r"(?i)^[+-]?nan.+$|^[+-]nan$", "x")
    text = _replaced(text, r"^\+([0-9.iI])", r"\1")
    return _replaced(text, r"([0-9.])[dDfF]$", r"\1").cast(to)


def _decimal_of_text(of: Value, to: pa.DataType) -> Value:
    return _rounded(_trimmed(of).cast(_WIDE), to)


def _truth_of_text(of: Value, to: pa.DataType) -> Value:
    text = _replaced(_trimmed(of), "(?i)^(t|true|y|yes|1)$", "true")
    return _replaced(text, "(?i)^(f|false|n|no|0)$", "false").cast(to)


def _date_of_text(of: Value, to: pa.DataType) -> Value:
    text = _replaced(_trimmed(of), "(?s)^([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})[ T].*$", r"\1")
    text = _replaced(text, "^([0-9]{4})$", r"\1-01-01")
    text = _replaced(text, "^([0-9]{4}-[0-9]{1,2})$", r"\1-01")
    text = _replaced(text, "^([0-9]{4})-([0-9])-", r"\1-0\2-")
    return _replaced(text, "^([0-9]{4}-[0-9]{2})-([0-9])$", r"\1-0\2").cast(to)


def _is_plain_decimal(dtype: pa.DataType) -> bool:
    """Whether Arrow writes these decimals without an exponent, all of them."""
    return bool(types.is_decimal128(dtype) and 0 <= dtype.scale <= 6)


def _is_whole_or_decimal(dtype: pa.DataType) -> bool:
    return is_number(dtype) and not types.is_floating(dtype)


_Of = Callable[[pa.DataType], bool]
#: What is cast: the type before, the type after, and how. Floats are not cast to decimals: Spark
#: rounds what Java writes of them; they and times are not written as texts, as Java writes others.
_CASTS: tuple[tuple[_Of, _Of, Callable[[Value, pa.DataType], Value]], ...] = (
    (types.is_integer, types.is_integer, _plain),
    (is_number, types.is_floating, _to_float),
    (_is_whole_or_decimal, types.is_decimal, _to_decimal),
    (is_number, types.is_integer, _to_whole),
    (is_number, types.is_boolean, _is_true),
    (types.is_integer, types.is_string, _plain),
    (_is_plain_decimal, types.is_string, _plain),
    (types.is_boolean, types.is_string, _plain),
    (types.is_boolean, is_number, _one_or_none),
    (types.is_integer, INSTANT.equals, _of_seconds),
    (INSTANT.equals, types.is_integer, _seconds),
    (INSTANT.equals, types.is_floating, _parts_of_seconds),
    (types.is_timestamp, types.is_date32, _plain),
    (types.is_timestamp, types.is_timestamp, _plain),
    (types.is_date32, types.is_timestamp, _plain),
    (types.is_date32, types.is_string, _plain),
    (types.is_string, types.is_integer, _whole_of_text),
    (types.is_string, types.is_floating, _float_of_text),
    (types.is_string, types.is_decimal, _decimal_of_text),
    (types.is_string, types.is_boolean, _truth_of_text),
    (types.is_string, types.is_date32, _date_of_text),
)
