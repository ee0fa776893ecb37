"""Comparisons, and the common type of values that are compared or chosen between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.column_types.widening import common_decimal
from gpu_windows.expressions.functions.time_formats import parse_time
from gpu_windows.expressions.numbers import is_number, widen
from gpu_windows.expressions.sql_text import sql_error
from gpu_windows.expressions.types import INSTANT, flink_name
from gpu_windows.expressions.values import Value, call, null


def unify(each: Sequence[Value], node: exp.Expr) -> list[Value]:
    """Return values widened to their common type.

    Raises
    ------
    SqlError
        If they have no common type that Spark would choose, too.
    """
    each = _literal_times(each, node)
    dtypes = {one.dtype for one in each if not types.is_null(one.dtype)}
    dtype = _common(dtypes, node) if len(dtypes) > 1 else next(iter(dtypes), pa.null())
    return [widen(one, dtype) for one in each]


def _literal_times(each: Sequence[Value], node: exp.Expr) -> Sequence[Value]:
    """Return values with string literals as times, if the others are times of one type."""
    times = {
        one.dtype for one in each if types.is_timestamp(one.dtype) or types.is_date32(one.dtype)
    }
    strings = [one for one in each if types.is_string(one.dtype)]
    if len(times) != 1 or not strings or any(one.literal is None for one in strings):
        return each
    [dtype] = times
    return [_as_time(one, dtype, node) if types.is_string(one.dtype) else one for one in each]


def _as_time(of: Value, dtype: pa.DataType, node: exp.Expr) -> Value:
    text = None if of.literal is None else of.literal.as_py()
    if text is None:
        return of.with_literal(null(dtype))
    if types.is_date32(dtype):
        text = text.strip().partition(" ")[0]
    return of.with_literal(parse_time(node, text, dtype))


def _common(dtypes: set[pa.DataType], node: exp.Expr) -> pa.DataType:
    if all(map(is_number, dtypes)):
        return _common_number(dtypes, node)
    if all(types.is_timestamp(dtype) or types.is_date32(dtype) for dtype in dtypes):
        return INSTANT if INSTANT in dtypes else pa.timestamp("us")
    listing = ", ".join(sorted(map(flink_name, dtypes)))
    raise sql_error(node, f"over Arrow tables these types have no common type: {listing}")


def _common_number(dtypes: set[pa.DataType], node: exp.Expr) -> pa.DataType:
    if any(map(types.is_floating, dtypes)):
        return pa.float64()
    if any(map(types.is_decimal, dtypes)):
        decimal = common_decimal(dtypes)
        if decimal is None:
            raise sql_error(node, "the common type of these decimals has more than 38 digits")
        return decimal
    return max(dtypes, key=lambda dtype: dtype.bit_width)


def compare(kind: type[exp.Expr], one: Value, other: Value) -> Value:
    """Return a comparison of values of one type; NaN equals itself and exceeds any number."""
    if kind is exp.NullSafeNEQ:
        return call(pc.invert, compare(exp.NullSafeEQ, one, other))
    if kind is exp.NullSafeEQ:
        missing = call(pc.and_kleene, call(pc.is_null, one), call(pc.is_null, other))
        same = call(pc.coalesce, compare(exp.EQ, one, other), False)
        return call(pc.or_kleene, missing, same)
    if kind is exp.NEQ:
        return call(pc.invert, compare(exp.EQ, one, other))
    if kind in (exp.GT, exp.LTE):
        one, other = other, one
    if kind in (exp.LTE, exp.GTE):
        return call(pc.invert, compare(exp.LT, one, other))
    if types.is_null(one.dtype):
        return one.cast(pa.bool_())
    plain = call(pc.equal if kind is exp.EQ else pc.less, one, other)
    if not types.is_floating(one.dtype):
        return plain
    one_is_nan, other_is_nan = call(pc.is_nan, one), call(pc.is_nan, other)
    nan_side = one_is_nan if kind is exp.EQ else call(pc.invert, one_is_nan)
    return call(pc.or_kleene, plain, call(pc.and_kleene, nan_side, other_is_nan))


def is_in(value: Value, literals: Iterable[pa.Scalar]) -> Value:
    """Return whether values are in a list of literals of their type."""
    some = [each for each in literals if each.is_valid]
    if types.is_floating(value.dtype):
        some = [pa.scalar(each.as_py() + 0.0, each.type) for each in some]
        value = call(pc.add, value, pa.scalar(0.0, value.dtype))  # -0.0 is 0.0
    value_set = pa.array([each.as_py() for each in some], value.dtype)
    found = call(pc.is_in, value, value_set=value_set)
    return call(pc.if_else, call(pc.is_valid, value), found, null(pa.bool_()))


def connect(booleans: Sequence[Value], combine: Callable[..., Any]) -> Value:
    """Return booleans combined by AND or OR as a balanced tree, so that long lists stay shallow."""
    while len(booleans) > 1:
        pairs = [booleans[at : at + 2] for at in range(0, len(booleans), 2)]
        booleans = [call(combine, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return booleans[0]


def choose(node: exp.Expr, conditions: Sequence[Value], results: Sequence[Value]) -> Value:
    """Return for each row the value of the first condition that is true, or the last value."""
    *values, result = unify(results, node)
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        result = call(pc.if_else, call(pc.coalesce, condition, False), value, result)
    return result
