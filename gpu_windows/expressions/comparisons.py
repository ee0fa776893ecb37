"""Comparisons, and the one type that compared or chosen values have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from gpu_windows.column_types.widening import common_decimal
from gpu_windows.expressions.numbers import is_number, widened
from gpu_windows.expressions.places import refused
from gpu_windows.expressions.types import INSTANT
from gpu_windows.expressions.values import Value, call, null_of


def unified(each: Sequence[Value], node: exp.Expr) -> list[Value]:
    """Return values of one type.

    Raises
    ------
    SqlError
        If there is none that Spark would take, too.
    """
    kinds = {one.dtype for one in each if not types.is_null(one.dtype)}
    dtype = _common(kinds, node) if len(kinds) > 1 else next(iter(kinds), pa.null())
    return [widened(one, dtype) for one in each]


def _common(kinds: set[pa.DataType], node: exp.Expr) -> pa.DataType:
    if all(map(is_number, kinds)):
        return _common_number(kinds, node)
    if all(types.is_timestamp(kind) or types.is_date32(kind) for kind in kinds):
        return INSTANT if INSTANT in kinds else pa.timestamp("us")
    named = ", ".join(sorted(map(str, kinds)))
    raise refused(node, f"values are of one type over Arrow tables, not of {named}")


def _common_number(kinds: set[pa.DataType], node: exp.Expr) -> pa.DataType:
    if any(map(types.is_floating, kinds)):
        return pa.float64()
    if any(map(types.is_decimal, kinds)):
        decimal = common_decimal(kinds)
        if decimal is None:
            raise refused(node, "decimals of one type have up to 38 digits")
        return decimal
    return max(kinds, key=lambda kind: kind.bit_width)


def compared(kind: type[exp.Expr], one: Value, other: Value) -> Value:
    """Return a comparison of values of one type; NaN is itself, and more than any number."""
    if kind is exp.NullSafeEQ:
        missing = call(pc.and_kleene, call(pc.is_null, one), call(pc.is_null, other))
        same = call(pc.coalesce, compared(exp.EQ, one, other), False)
        return call(pc.or_kleene, missing, same)
    if kind is exp.NEQ:
        return call(pc.invert, compared(exp.EQ, one, other))
    if kind in (exp.GT, exp.LTE):
        one, other = other, one
    if kind in (exp.LTE, exp.GTE):
        return call(pc.invert, compared(exp.LT, one, other))
    if types.is_null(one.dtype):
        return one.cast(pa.bool_())
    plain = call(pc.equal if kind is exp.EQ else pc.less, one, other)
    if not types.is_floating(one.dtype):
        return plain
    ours, its = call(pc.is_nan, one), call(pc.is_nan, other)
    odd = ours if kind is exp.EQ else call(pc.invert, ours)
    return call(pc.or_kleene, plain, call(pc.and_kleene, odd, its))


def among(value: Value, written: Iterable[pa.Scalar]) -> Value:
    """Return whether values are in a list of written ones of their type."""
    some = [each for each in written if each.is_valid]
    if types.is_floating(value.dtype):
        some = [pa.scalar(each.as_py() + 0.0, each.type) for each in some]
        value = call(pc.add, value, pa.scalar(0.0, value.dtype))  # -0.0 is 0.0
    listed = pa.array([each.as_py() for each in some], value.dtype)
    found = call(pc.is_in, value, value_set=listed)
    kept = partial(call, pc.if_else, call(pc.is_valid, value))
    return kept(found, null_of(pa.bool_()))


def connected(truths: Sequence[Value], together: Callable[..., Any]) -> Value:
    """Return truths connected by AND or OR, two by two, so that long lists are not deep."""
    while len(truths) > 1:
        pairs = [truths[at : at + 2] for at in range(0, len(truths), 2)]
        truths = [call(together, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return truths[0]
