"""CAST with the results of Spark in ANSI mode; refused where Arrow's results differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.column_types.widening import decimal_of
from gpu_windows.expressions.arrays import map_arrays
from gpu_windows.expressions.decimals import EXACT, round_half_up
from gpu_windows.expressions.functions.time_formats import read_instants
from gpu_windows.expressions.number_texts import MAX_SCALE, float_decimals, number_texts
from gpu_windows.expressions.numbers import is_number, widen
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.types import INSTANT
from gpu_windows.expressions.values import Guard, Rows, Value, call

_SECOND = 1_000_000
_MAX_SECONDS = (2**63 - 1) // _SECOND
#: Characters that Spark trims from a string before it casts it.
_BLANKS = "".join(map(chr, [*range(0x21), 0x7F]))
_TypeTest = Callable[[pa.DataType], bool]


def cast(node: exp.Expr, of: Value, to: pa.DataType, guard: Guard) -> Value:
    """Return the values cast to a type.

    Raises
    ------
    SqlError
        If Spark has no such cast, or Arrow would format or round differently.
    """
    if of.dtype == to and is_number(to):  # no literal any more, which has a type of its own
        return replace(of, literal=None)
    if of.dtype == to or types.is_null(of.dtype):
        return of.cast(to)
    make = _find_cast(of.dtype, to)
    if make in _OF_ROWS and of.expression is not None:
        make = None
    if make is None:
        rule = f"over Arrow tables {of.dtype} AS {to} differs from Spark: cast it before"
        raise sql_error(node, rule)
    return make(guard.mask(of), to)


def try_cast(node: exp.Expr, of: Value, to: pa.DataType, guard: Guard) -> Value:
    """Return the values cast to a type; null where a string is not one of it.

    Raises
    ------
    SqlError
        See `cast`; also in a condition of a join, which is an Arrow expression.
    """
    if of.dtype == to or types.is_null(of.dtype):
        return of.cast(to)
    if of.expression is not None:
        rule = "conditions of joins over Arrow tables have no TRY_CAST: add a column before"
        raise sql_error(node, rule)
    return _cast_distinct(node, guard.mask(of), to)


def _cast_distinct(node: exp.Expr, of: Value, to: pa.DataType) -> Value:
    """Return values cast to a type; each distinct one alone, if one of them has no value."""
    if types.is_timestamp(to) and types.is_string(of.dtype):
        return Value(_read_times(of.rows, to))
    try:
        return cast(node, of, to, Guard())
    except pa.ArrowInvalid:
        return Value(map_arrays(lambda rows: _cast_each(node, rows, to), of.rows))


def _cast_each(node: exp.Expr, rows: pa.Array, to: pa.DataType) -> pa.Array:
    coded = pc.dictionary_encode(rows)
    values = [_cast_or_null(node, each, to) for each in coded.dictionary]
    return pa.array(values, to).take(coded.indices)


def _cast_or_null(node: exp.Expr, value: pa.Scalar, to: pa.DataType) -> Any:
    try:
        return cast(node, Value(value), to, Guard()).rows.as_py()
    except pa.ArrowInvalid:
        return None


def _read_times(rows: Rows, to: pa.DataType) -> Rows:
    """Return times for strings; null for other texts."""
    return map_arrays(lambda texts: read_instants(texts).cast(pa.int64()).cast(to), rows)


def _string_to_time(of: Value, to: pa.DataType) -> Value:
    def read(texts: pa.Array) -> pa.Array:
        found = _read_times(texts, to)
        wrong = texts.filter(pc.and_(found.is_null(), texts.is_valid()))
        if len(wrong):
            raise pa.ArrowInvalid(f"not a time: {wrong[0].as_py()!r}")
        return found

    return Value(map_arrays(read, of.rows))


def _find_cast(of: pa.DataType, to: pa.DataType) -> Callable[[Value, pa.DataType], Value] | None:
    for is_of, is_to, make in _CASTS:
        if is_of(of) and is_to(to):
            return make
    return None


def _to_integer(of: Value, to: pa.DataType) -> Value:
    """Return numbers truncated towards zero."""
    return call(pc.trunc, of).cast(to)


def _to_decimal(of: Value, to: pa.DataType) -> Value:
    """Return decimals of a scale, rounded half up."""
    of = of.cast(decimal_of(of.dtype))
    if to.scale >= of.dtype.scale:
        return of.cast(to)
    return _round(of.cast(pa.decimal256(of.dtype.precision + 1, of.dtype.scale)), to)


def _round(of: Value, to: pa.DataType) -> Value:
    return call(round_half_up, of, digits=to.scale).cast(to)


def _to_boolean(of: Value, to: pa.DataType) -> Value:
    del to
    return call(pc.not_equal, of, pa.scalar(0, of.dtype))


def _from_boolean(of: Value, to: pa.DataType) -> Value:
    of = of.cast(pa.int8())
    return _to_decimal(of, to) if types.is_decimal(to) else of.cast(to)


# ---- times


def _whole_seconds(of: Value, to: pa.DataType) -> Value:
    """Return the whole seconds since 1970, rounded down."""
    ticks = of.cast(pa.int64())
    whole = call(pc.divide, ticks, pa.scalar(_SECOND))
    is_above = call(pc.greater, call(pc.multiply, whole, pa.scalar(_SECOND)), ticks)
    return call(pc.subtract, whole, is_above.cast(pa.int64())).cast(to)


def _fractional_seconds(of: Value, to: pa.DataType) -> Value:
    ticks = widen(of.cast(pa.int64()), pa.float64())
    return call(pc.divide, ticks, pa.scalar(float(_SECOND))).cast(to)


def _from_seconds(of: Value, to: pa.DataType) -> Value:
    """Return instants for seconds since 1970, clamped to the range of 64-bit microseconds."""
    seconds = of.cast(pa.int64())
    is_low = call(pc.less, seconds, pa.scalar(-_MAX_SECONDS))
    is_high = call(pc.greater, seconds, pa.scalar(_MAX_SECONDS))
    fits = call(pc.if_else, call(pc.or_kleene, is_low, is_high), pa.scalar(0), seconds)
    ticks = call(pc.multiply, fits, pa.scalar(_SECOND))
    ticks = call(pc.if_else, is_low, pa.scalar(-(2**63)), ticks)
    return call(pc.if_else, is_high, pa.scalar(2**63 - 1), ticks).cast(to)


# ---- texts


def _trim(of: Value) -> Value:
    return call(pc.ascii_trim, of, characters=_BLANKS)


def _replace(of: Value, pattern: str, replacement: str) -> Value:
    return call(pc.replace_substring_regex, of, pattern=pattern, replacement=replacement)


def _string_to_integer(of: Value, to: pa.DataType) -> Value:
    decimal = _replace(_trim(of), "^([+-]?)0[xX]", "x")
    return _replace(decimal, r"^\+([0-9])", r"\1").cast(to)


def _string_to_float(of: Value, to: pa.DataType) -> Value:
    text = _replace(_trim(of), r"(?i)^[+-]?nan.+$|^[+-]nan$", "x")
    text = _replace(text, r"^\+([0-9.iI])", r"\1")
    return _replace(text, r"([0-9.])[dDfF]$", r"\1").cast(to)


def _string_to_decimal(of: Value, to: pa.DataType) -> Value:
    return _round(_trim(of).cast(EXACT), to)


def _string_to_boolean(of: Value, to: pa.DataType) -> Value:
    text = _replace(_trim(of), "(?i)^(t|true|y|yes|1)$", "true")
    return _replace(text, "(?i)^(f|false|n|no|0)$", "false").cast(to)


def _string_to_date(of: Value, to: pa.DataType) -> Value:
    text = _replace(_trim(of), "(?s)^([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})[ T].*$", r"\1")
    text = _replace(text, "^([0-9]{4})$", r"\1-01-01")
    text = _replace(text, "^([0-9]{4}-[0-9]{1,2})$", r"\1-01")
    text = _replace(text, "^([0-9]{4})-([0-9])-", r"\1-0\2-")
    return _replace(text, "^([0-9]{4}-[0-9]{2})-([0-9])$", r"\1-0\2").cast(to)


def _number_to_string(of: Value, to: pa.DataType) -> Value:
    del to
    return Value(map_arrays(number_texts, of.rows))


def _float_to_decimal(of: Value, to: pa.DataType) -> Value:
    return Value(map_arrays(lambda values: float_decimals(values, to), of.rows))


def _is_decimal(max_scale: int) -> _TypeTest:
    return lambda dtype: bool(types.is_decimal128(dtype) and 0 <= dtype.scale <= max_scale)


def _is_integer_or_decimal(dtype: pa.DataType) -> bool:
    return is_number(dtype) and not types.is_floating(dtype)


#: The casts: type before, type after, function. Missing: times to strings, because Java prints
#: others.
_CASTS: tuple[tuple[_TypeTest, _TypeTest, Callable[[Value, pa.DataType], Value]], ...] = (
    (types.is_integer, types.is_integer, Value.cast),
    (is_number, types.is_floating, widen),
    (_is_integer_or_decimal, types.is_decimal, _to_decimal),
    (types.is_floating, _is_decimal(MAX_SCALE), _float_to_decimal),  # with all its digits
    (is_number, types.is_integer, _to_integer),
    (is_number, types.is_boolean, _to_boolean),
    (types.is_integer, types.is_string, Value.cast),
    (_is_decimal(6), types.is_string, Value.cast),  # Arrow writes no exponent
    (is_number, types.is_string, _number_to_string),
    (types.is_boolean, types.is_string, Value.cast),
    (types.is_boolean, is_number, _from_boolean),
    (types.is_integer, INSTANT.equals, _from_seconds),
    (INSTANT.equals, types.is_integer, _whole_seconds),
    (INSTANT.equals, types.is_floating, _fractional_seconds),
    (types.is_timestamp, types.is_date32, Value.cast),
    (types.is_timestamp, types.is_timestamp, Value.cast),
    (types.is_date32, types.is_timestamp, Value.cast),
    (types.is_date32, types.is_string, Value.cast),
    (types.is_string, types.is_integer, _string_to_integer),
    (types.is_string, types.is_floating, _string_to_float),
    (types.is_string, types.is_decimal, _string_to_decimal),
    (types.is_string, types.is_boolean, _string_to_boolean),
    (types.is_string, types.is_date32, _string_to_date),
    (types.is_string, types.is_timestamp, _string_to_time),
)
#: Casts that are computed on rows, so that conditions of joins do not have them.
_OF_ROWS = (_string_to_time, _number_to_string, _float_to_decimal)
