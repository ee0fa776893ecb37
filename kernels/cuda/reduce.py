"""Segmented reduce: one primitive partial per group of rows.

Where groups have cells (`gpu_windows.kernels.cuda.cells`), rows are folded into them, and none is
sorted, but for moments. Else a thread combines a piece of at most `PIECE` rows in their order, then
of pieces, until a group is one (`gpu_windows.kernels.cuda.grouping`). So a group of n rows takes
log(n) launches, and no thread more than 32 steps; sums of floats differ from the CPU's, which adds
row after row, by rounding only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.compile import specialize
from gpu_windows.kernels.contract.arrays import (
    DeviceBools,
    DeviceFloats,
    DeviceInts,
    DeviceLane,
    DeviceMoments,
    HostBools,
)
from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda, device_function
from gpu_windows.kernels.cuda.grouping import Groups
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import BOOLS, FLOAT, FLOATS, INT, INTS
from gpu_windows.rules import ADD, BLOCK, IDENTITIES

ALL: HostBools = np.empty(0, np.bool_)

_NONE = np.empty(0, np.int64)


@kernel(
    (INT, INT, INTS, INTS, INT, INTS, INTS, INT, BOOLS, INTS),
    (INT, FLOAT, INTS, INTS, INT, INTS, FLOATS, INT, BOOLS, FLOATS),
)
def _fold(
    how: Any, identity: Any, begins: Any, ends: Any, ordered: Any, order: Any, values: Any,
    masked: Any, valid: Any, out: Any,
) -> None:  # fmt: skip
    for p in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        total = identity
        for i in range(begins[p], ends[p]):
            row = order[i] if ordered else i
            if not masked or valid[row]:
                total = rules.fold(how, total, values[row])
        out[p] = total


@kernel((INTS, INTS, INTS, INTS, INT, BOOLS, INTS, INTS))
def _exact_sum(
    begins: Any, ends: Any, order: Any, values: Any, masked: Any, valid: Any, high: Any, low: Any
) -> None:
    for p in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        total_high, total_low = 0, 0
        for i in range(begins[p], ends[p]):
            row = order[i]
            if not masked or valid[row]:
                total_high += rules.high_half(values[row])
                total_low += rules.low_half(values[row])
        high[p], low[p] = total_high, total_low


@kernel((INTS, INTS, INTS, BOOLS, INTS))
def _count(begins: Any, ends: Any, order: Any, valid: Any, out: Any) -> None:
    for p in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        total = 0
        for i in range(begins[p], ends[p]):
            if valid[order[i]]:
                total += 1
        out[p] = total


@kernel((INTS, INTS, INT, INTS, *[INTS, FLOATS, FLOATS, FLOATS] * 2))
def _moments(
    begins: Any, ends: Any, ordered: Any, order: Any, n: Any, high: Any, low: Any, m2: Any,
    out_n: Any, out_high: Any, out_low: Any, out_m2: Any,
) -> None:  # fmt: skip
    for p in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        count, upper, lower, squares = 0, 0.0, 0.0, 0.0
        for i in range(begins[p], ends[p]):
            row = order[i] if ordered else i
            count, upper, lower, squares = rules.wide_moments(
                count, upper, lower, squares, n[row], high[row], low[row], m2[row]
            )
        out_n[p], out_high[p], out_low[p], out_m2[p] = count, upper, lower, squares


# ---- moments of values: of int64 the deviations, and the shift as words, are rules


@device_function
def difference(value: Any, other: Any) -> Any:
    """Return ``value - other`` of two float64."""
    return value - other


@device_function
def words_of(value: Any) -> Any:
    """Return a float64 in two words."""
    return value, 0.0


def _moments_of(
    begins: Any, ends: Any, order: Any, values: Any, masked: Any, valid: Any,
    out_n: Any, out_high: Any, out_low: Any, out_m2: Any,
) -> None:  # fmt: skip
    for p in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        n, high, low, m2 = 0, 0.0, 0.0, 0.0
        count, shift, total, squares = 0, 0, 0.0, 0.0
        for i in range(begins[p], ends[p]):
            row = order[i]
            if not masked or valid[row]:
                if count == 0:
                    shift = values[row]
                apart = difference(values[row], shift)
                total += apart
                squares += apart * apart
                count += 1
            if count == BLOCK or (count > 0 and i == ends[p] - 1):
                upper, lower = words_of(shift)
                mean, more = rules.shifted_moments(count, total, squares)
                upper, mean = rules.two_sum(upper, mean)
                n, high, low, m2 = rules.wide_moments(
                    n, high, low, m2, count, upper, mean + lower, more
                )
                count, total, squares = 0, 0.0, 0.0
        out_n[p], out_high[p], out_low[p], out_m2[p] = n, high, low, m2


_OF_VALUES = INT, BOOLS, INTS, FLOATS, FLOATS, FLOATS
_moments_of_floats = kernel((INTS, INTS, INTS, FLOATS, *_OF_VALUES))(
    specialize(_moments_of, "moments_of_floats")
)
_moments_of_ints = kernel((INTS, INTS, INTS, INTS, *_OF_VALUES))(
    specialize(_moments_of, "moments_of_ints", difference=rules.difference, words_of=rules.words_of)
)


@kernel((INTS, INTS, INTS, INTS, INT, BOOLS, INTS))
def _pick(
    begins: Any, ends: Any, candidates: Any, rank: Any, masked: Any, valid: Any, out: Any
) -> None:
    for p in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        best = -1
        for i in range(begins[p], ends[p]):
            row = candidates[i]
            if row < 0 or (masked and not valid[row]):
                continue
            if best < 0 or rank[row] < rank[best]:
                best = row
        out[p] = best


def count(groups: Groups, valid: DeviceBools) -> DeviceInts:
    """See `contract.groups.Reduce.count`."""
    if len(valid) == 0:
        return groups.rows
    if groups.cells is not None:
        return groups.cells.count(valid)
    first = groups.levels[0]
    out = primitives.empty(first.count, np.int64)
    _count(first.count, first.begins, first.ends, groups.order, valid, out)
    return _fold_pieces(ADD, groups, out)


def reduce(how: int, groups: Groups, values: DeviceLane, valid: DeviceBools) -> DeviceLane:
    """See `contract.groups.Reduce.reduce`."""
    if groups.cells is not None:
        return groups.cells.fold(how, values, valid)
    first, masked = groups.levels[0], int(len(valid) > 0)
    identity = IDENTITIES[how, values.dtype.name]
    out = primitives.empty(first.count, values.dtype)
    items = first.begins, first.ends, 1, groups.order
    _fold(first.count, how, identity, *items, values, masked, valid, out)
    return _fold_pieces(how, groups, out)


def exact_sum(
    groups: Groups, values: DeviceInts, valid: DeviceBools
) -> tuple[DeviceInts, DeviceInts]:
    """See `contract.groups.Reduce.exact_sum`."""
    if groups.cells is not None:
        return groups.cells.exact_sum(values, valid)
    first, masked = groups.levels[0], int(len(valid) > 0)
    high, low = (primitives.empty(first.count, np.int64) for _ in range(2))
    places = first.begins, first.ends, groups.order
    _exact_sum(first.count, *places, values, masked, valid, high, low)
    return _fold_pieces(ADD, groups, high), _fold_pieces(ADD, groups, low)


def _fold_pieces(how: int, groups: Groups, values: Any) -> Any:
    """Reduce the partials of the pieces of the first level to one a group."""
    identity = IDENTITIES[how, values.dtype.name]
    for level in groups.levels[1:]:
        out = primitives.empty(level.count, values.dtype)
        _fold(level.count, how, identity, level.begins, level.ends, 0, _NONE, values, 0, ALL, out)
        values = out
    return values


def moments(groups: Groups, n: DeviceInts, *parts: DeviceFloats) -> DeviceMoments:
    """See `contract.groups.Reduce.moments`."""
    first = groups.levels[0]
    out = _empty_moments(first.count)
    _moments(first.count, first.begins, first.ends, 1, groups.order, n, *parts, *out)
    return _moments_of_pieces(groups, out)


def moments_of(groups: Groups, values: DeviceLane, valid: DeviceBools) -> DeviceMoments:
    """See `contract.groups.Reduce.moments_of`."""
    first, masked = groups.levels[0], int(len(valid) > 0)
    out = _empty_moments(first.count)
    places = first.begins, first.ends, groups.order
    add = _moments_of_ints if values.dtype == np.int64 else _moments_of_floats
    add(first.count, *places, values, masked, valid, *out)
    return _moments_of_pieces(groups, out)


def _moments_of_pieces(groups: Groups, state: DeviceMoments) -> DeviceMoments:
    """Combine the moments of the pieces of the first level to one a group."""
    for level in groups.levels[1:]:
        out = _empty_moments(level.count)
        _moments(level.count, level.begins, level.ends, 0, _NONE, *state, *out)
        state = out
    return state


def _empty_moments(count: int) -> DeviceMoments:
    high, low, m2 = (primitives.empty(count, np.float64) for _ in range(3))
    return primitives.empty(count, np.int64), high, low, m2


def pick(groups: Groups, rank: DeviceInts, valid: DeviceBools) -> DeviceInts:
    """See `contract.groups.Reduce.pick`."""
    if groups.cells is not None:
        return groups.cells.pick(rank, valid)
    candidates, masked = groups.order, int(len(valid) > 0)
    for level in groups.levels:
        out = primitives.empty(level.count, np.int64)
        _pick(level.count, level.begins, level.ends, candidates, rank, masked, valid, out)
        candidates = out
    return candidates
