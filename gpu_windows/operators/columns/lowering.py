"""Result columns of aggregates from the partials of windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types

from gpu_windows.aggregates import formulas
from gpu_windows.aggregates.definitions import BoundAggregate, Lower
from gpu_windows.aggregates.partials import Combine, Partial
from gpu_windows.column_types.logical import is_wide
from gpu_windows.errors import ArithmeticOverflowError
from gpu_windows.operators.columns import sketches, wide_numbers
from gpu_windows.operators.columns.numeric import decimal_array, from_numeric
from gpu_windows.operators.columns.partials import State

States = Mapping[Partial, State]
_LIMB = 1 << 32
#: Windows whose sums are joined at once: intermediate arrays stay in a core's cache.
_BLOCK = 1 << 15


def lower(bound: BoundAggregate, states: States) -> pa.Array:
    """Return the result column of an aggregate over every window.

    Raises
    ------
    ArithmeticOverflowError
        If an integer sum does not fit 64 bits, or a decimal its type.
    """
    parts = [states[partial] for partial in bound.partials]
    how = bound.definition.lower
    if bound.partials[0].combine is Combine.PICK:
        return _row(bound, parts)
    if how in _OF_WORDS and is_wide(bound.argument_type):
        return _OF_WORDS[how](bound, parts)
    if how in formulas.FORMULAS:
        return formulas.lower(bound, parts, _ARRAYS)
    return _LOWERED[how](bound, parts)


class _Arrays:
    """Evaluates formulas on NumPy arrays; results are Arrow columns."""

    def at_least_one(self, counts: Any) -> Any:
        return np.maximum(counts, 1)

    def result(self, bound: BoundAggregate, values: Any, some: Any | None) -> pa.Array:
        if some is None:
            return pa.array(values)
        if not some.all():
            values = np.where(some, values, 0)
        return from_numeric(values, some, bound.result_type)

    def exact_sum(self, bound: BoundAggregate, high: Any, low: Any, some: Any) -> pa.Array:
        if types.is_decimal(bound.result_type):
            words, upper = (high << 32) + low, (low >> 32) + high
            return decimal_array(upper >> 32, words, pa.array(some), bound.result_type)
        high, low, words = np.asarray(high), np.asarray(low), np.empty(len(high), np.int64)
        for begin in range(0, len(high), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            at = _join_words(high[block], low[block], words[block])
            if at is not None:
                rule = "the sum of a BIGINT column must fit 64 bits; cast it to DECIMAL or DOUBLE"
                value = int(high[begin + at]) * _LIMB + int(low[begin + at])
                raise ArithmeticOverflowError(rule, value=value, column=str(bound.aggregate.column))
        return from_numeric(words, some, bound.result_type)

    def exact_ratio(
        self, bound: BoundAggregate, high: Any, low: Any, counts: Any, some: Any
    ) -> pa.Array:
        high, low = _normalize_limbs(high, low)
        if types.is_decimal(bound.result_type):
            return _decimal_ratio(high, low, counts, some, bound.result_type)
        return from_numeric((high * float(_LIMB) + low) / counts, some, bound.result_type)


_ARRAYS = _Arrays()


def _join_words(
    high: NDArray[np.int64], low: NDArray[np.int64], words: NDArray[np.int64]
) -> int | None:
    """Write sums of 64 bits from their limbs; return the index of the first that does not fit."""
    np.left_shift(high, 32, out=words)
    words += low  # wraps around where the sum does not fit
    upper = low >> 32
    upper += high
    if -_LIMB // 2 <= upper.min() <= upper.max() < _LIMB // 2:
        return None
    return int(np.flatnonzero(upper != words >> 32)[0])


def _normalize_limbs(high: NDArray[np.int64], low: NDArray[np.int64]) -> tuple[Any, Any]:
    """Return limbs with 0 <= low < 2**32; the value is ``high * 2**32 + low``."""
    return high + (low >> 32), low & (_LIMB - 1)


def _decimal_ratio(high: Any, low: Any, n: Any, some: Any, dtype: pa.DataType) -> pa.Array:
    """Divide exactly, to four more digits, rounded half away from zero (n < 2**31)."""
    negative = high < 0
    high, low = _normalize_limbs(np.where(negative, -high, high), np.where(negative, -low, low))
    upper, rest = np.divmod(high, n)
    whole, rest = np.divmod(rest * _LIMB + low, n)
    whole += upper * _LIMB
    fraction = (rest * 20_000 + n) // (2 * n)
    top, bottom = _normalize_limbs(
        (whole >> 32) * 10_000, (whole & (_LIMB - 1)) * 10_000 + fraction
    )
    top, bottom = np.where(negative, -top, top), np.where(negative, -bottom, bottom)
    top, bottom = _normalize_limbs(top, bottom)
    return decimal_array(top >> 32, (top << 32) | bottom, pa.array(some), dtype)


def _row(bound: BoundAggregate, states: list[State]) -> pa.Array:
    picked = states[0][1]
    return picked if picked.type == bound.result_type else picked.cast(bound.result_type)


def _estimate(_bound: BoundAggregate, states: list[State]) -> pa.Array:
    return pa.array([sketches.distinct(sketch) for sketch in states[0][0]], pa.int64())


def _sketched_quantile(bound: BoundAggregate, states: list[State]) -> pa.Array:
    fraction = bound.aggregate.fraction or 0.0
    found = [sketches.quantile(sketch, fraction) for sketch in states[0][0]]
    return pa.array(found, pa.float64())


def _spread(bound: BoundAggregate, states: list[State]) -> pa.Array:
    return _ARRAYS.result(bound, *_variance(bound, states))


def _root_spread(bound: BoundAggregate, states: list[State]) -> pa.Array:
    variance, some = _variance(bound, states)
    return _ARRAYS.result(bound, np.sqrt(variance), some)


def _variance(bound: BoundAggregate, states: list[State]) -> tuple[Any, Any]:
    """Return variances, NaN if a value is infinite or NaN, and a mask of those that exist."""
    n, high, _, m2 = states[0]
    degrees = n - bound.aggregate.ddof
    variance = np.where(np.isfinite(high), m2 / np.maximum(degrees, 1), np.nan)
    if types.is_decimal(bound.argument_type):
        variance = variance / 100.0**bound.argument_type.scale
    return variance, degrees > 0


#: Results of wide decimals, from limbs of their sums.
_OF_WORDS: dict[Lower, Callable[[BoundAggregate, list[State]], pa.Array]] = {
    Lower.VALUE: wide_numbers.sum_of,
    Lower.RATIO: wide_numbers.mean_of,
}
#: Results of partials that have no formula for Spark.
_LOWERED: dict[Lower, Callable[[BoundAggregate, list[State]], pa.Array]] = {
    Lower.SPREAD: _spread,
    Lower.ROOT_SPREAD: _root_spread,
    Lower.ESTIMATE: _estimate,
    Lower.SKETCHED_QUANTILE: _sketched_quantile,
}
