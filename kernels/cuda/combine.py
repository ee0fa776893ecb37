"""Combine entries to ranges, at a cost that does not depend on how long windows are.

Sums of integers are differences of running sums, for both wrap around 64 bits. All else is made of
the scans of the blocks of entries (`contract.windows.Combine`, `gpu_windows.kernels.cuda.scan`).

At any span sums of integers take 48 bytes an entry and extremes 89
(`tests/simulator/bytes_equal.py`), in 5 launches up to 65,536 entries and 9 up to 16.7 million;
combining at doubled distances took 329 at a span of 60.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceInts, DeviceLane, DeviceMoments
from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import CudaKernel, kernel
from gpu_windows.kernels.cuda.scan import (
    AFTER,
    BEFORE,
    FOLD,
    MOMENTS,
    PICK,
    Scan,
    State,
    better_of,
    fold_at,
    moments_at,
    pick_at,
)
from gpu_windows.kernels.cuda.types import BYTES, FLOATS, INT, INTS, INTS32
from gpu_windows.kernels.cuda.windows import (
    Ranges,
    Windows,
    bounds,
    by_number,
    last_slices,
    ranges,
    total_windows,
    windows,
)
from gpu_windows.rules import ADD, PREFIX, SUFFIX

__all__ = [
    "Ranges",
    "Windows",
    "bounds",
    "by_number",
    "combine",
    "last_slices",
    "moments",
    "pick",
    "ranges",
    "total_windows",
    "windows",
]


def _joined(scan: Scan, join: CudaKernel, found: Ranges, parameters: State, values: State) -> State:
    """Return the partials of the ranges.

    Parameters
    ----------
    scan : Scan
    join : CudaKernel
        (parameters, first, last, halves, both scans, out), of every range.
    parameters : tuple
        Of both.
    values : tuple of arrays of m
        The partials of the entries.
    """
    out = tuple(primitives.empty(found.count, part.dtype) for part in values)
    if found.count == 0:
        return out
    prefixes = scan.scan(parameters, BEFORE, found.heads, values).arguments
    suffixes = scan.scan(parameters, AFTER, found.tails, values).arguments
    places = found.first, found.last, found.halves
    join(found.count, *parameters, *places, *prefixes, *suffixes, *out)
    return out


# ---- add, least, greatest


@kernel(
    (INT, INTS, INTS, BYTES, *[INT, INTS32, INTS, INTS] * 2, INTS),
    (INT, INTS, INTS, BYTES, *[INT, INTS32, FLOATS, FLOATS] * 2, FLOATS),
)
def _join_fold(
    how: Any, first: Any, last: Any, halves: Any,
    before: Any, heads: Any, prefix: Any, prefix_sums: Any,
    after: Any, tails: Any, suffix: Any, suffix_sums: Any, out: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), halves.size, cuda.gridsize(1)):
        if halves[i] == PREFIX:
            out[i] = fold_at(how, before, heads, prefix, prefix_sums, last[i])
        elif halves[i] == SUFFIX:
            out[i] = fold_at(how, after, tails, suffix, suffix_sums, first[i])
        else:
            out[i] = rules.fold(
                how,
                fold_at(how, after, tails, suffix, suffix_sums, first[i]),
                fold_at(how, before, heads, prefix, prefix_sums, last[i]),
            )


@kernel((INTS, INTS, INTS, INTS))
def _subtract(first: Any, last: Any, sums: Any, out: Any) -> None:
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        before = sums[first[i] - 1] if first[i] > 0 else 0
        out[i] = sums[last[i]] - before


def combine(how: int, found: Ranges, values: DeviceLane) -> DeviceLane:
    """See `contract.windows.Combine.combine`."""
    if found.is_single:
        return primitives.gather(values, found.last)
    if how == ADD and values.dtype == np.int64:
        sums, out = primitives.running_sum(values), primitives.empty(found.count, np.int64)
        _subtract(found.count, found.first, found.last, sums, out)
        return out
    return _joined(FOLD, _join_fold, found, (how,), (values,))[0]


# ---- moments


_STATE = [INTS, FLOATS, FLOATS, FLOATS]


@kernel((INTS, INTS, BYTES, *[INT, INTS32, *_STATE * 2] * 2, *_STATE))
def _join_moments(
    first: Any, last: Any, halves: Any,
    before: Any, heads: Any, prefix_n: Any, prefix_high: Any, prefix_low: Any, prefix_m2: Any,
    before_n: Any, before_high: Any, before_low: Any, before_m2: Any,
    after: Any, tails: Any, suffix_n: Any, suffix_high: Any, suffix_low: Any, suffix_m2: Any,
    after_n: Any, after_high: Any, after_low: Any, after_m2: Any,
    out_n: Any, out_high: Any, out_low: Any, out_m2: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), halves.size, cuda.gridsize(1)):
        n, high, low, m2 = 0, 0.0, 0.0, 0.0
        if halves[i] != PREFIX:
            n, high, low, m2 = moments_at(
                after, tails, suffix_n, suffix_high, suffix_low, suffix_m2,
                after_n, after_high, after_low, after_m2, first[i],
            )  # fmt: skip
        if halves[i] != SUFFIX:
            right_n, right_high, right_low, right_m2 = moments_at(
                before, heads, prefix_n, prefix_high, prefix_low, prefix_m2,
                before_n, before_high, before_low, before_m2, last[i],
            )  # fmt: skip
            n, high, low, m2 = rules.wide_moments(
                n, high, low, m2, right_n, right_high, right_low, right_m2
            )
        out_n[i], out_high[i], out_low[i], out_m2[i] = n, high, low, m2


def moments(found: Ranges, values: DeviceMoments) -> DeviceMoments:
    """See `contract.windows.Combine.moments`."""
    if found.is_single:
        n, high, low, m2 = (primitives.gather(part, found.last) for part in values)
    else:
        n, high, low, m2 = _joined(MOMENTS, _join_moments, found, (), values)
    return n, high, low, m2


# ---- pick


@kernel((INTS, INTS, INTS, BYTES, *[INT, INTS32, INTS, INTS] * 2, INTS))
def _join_pick(
    rank: Any, first: Any, last: Any, halves: Any,
    before: Any, heads: Any, prefix: Any, prefix_sums: Any,
    after: Any, tails: Any, suffix: Any, suffix_sums: Any, out: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), halves.size, cuda.gridsize(1)):
        left, right = -1, -1
        if halves[i] != PREFIX:
            left = pick_at(rank, after, tails, suffix, suffix_sums, first[i])
        if halves[i] != SUFFIX:
            right = pick_at(rank, before, heads, prefix, prefix_sums, last[i])
        out[i] = better_of(rank, AFTER, left, right)


def pick(found: Ranges, rank: DeviceInts) -> DeviceInts:
    """See `contract.windows.Combine.pick`."""
    if found.is_single:
        return found.last
    entries = primitives.to_device(np.arange(len(rank)))
    return _joined(PICK, _join_pick, found, (rank,), (entries,))[0]
