"""Combine entries to ranges, at a cost that does not depend on how long windows are.

Sums of integers are differences of running sums, for both wrap around 64 bits. All else is made of
the scans of the blocks of entries (`contract.windows.Combine`, `gpu_windows.kernels.cuda.scan`).

At any span sums of integers take 56 bytes an entry and extremes 90
(`tests/ptx/bytes_equal.py`), in 5 launches up to 65,536 entries and 9 up to 16.7 million;
combining at doubled distances took 329 at a span of 60.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceInts, DeviceLane, DeviceMoments
from gpu_windows.kernels.contract.windows import Ranges
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import CudaKernel, kernel
from gpu_windows.kernels.cuda.scan import (
    AFTER,
    BEFORE,
    FOLD,
    MOMENTS,
    PICK,
    Lane,
    Moments,
    Scan,
    like,
    merge,
    scan_at,
    store,
)
from gpu_windows.kernels.cuda.types import BYTES, INT, INTS, INTS32
from gpu_windows.kernels.cuda.windows import (
    bounds,
    by_number,
    last_slices,
    ranges,
    total_windows,
    windows,
)
from gpu_windows.rules import ADD, PREFIX, SUFFIX

__all__ = [
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


def _join(
    parameter: Any, first: Any, last: Any, halves: Any,
    before: Any, heads: Any, prefix: Any, prefix_sums: Any,
    after: Any, tails: Any, suffix: Any, suffix_sums: Any, out: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), halves.size, cuda.gridsize(1)):
        if halves[i] == SUFFIX:
            partial = scan_at(parameter, after, tails, suffix, suffix_sums, first[i])
        else:
            partial = scan_at(parameter, before, heads, prefix, prefix_sums, last[i])
            if halves[i] != PREFIX:
                left = scan_at(parameter, after, tails, suffix, suffix_sums, first[i])
                partial = merge(parameter, left, partial)
        store(out, i, partial)


def _signature(parameter: Any, partials: Any) -> tuple[Any, ...]:
    scanned = INT, INTS32, partials, partials
    return (parameter, INTS, INTS, BYTES, *scanned, *scanned, partials)


_JOIN_FOLD, _JOIN_MOMENTS, _JOIN_PICK = (
    scan.kernel(_join, f"join_{scan.name}", _signature) for scan in (FOLD, MOMENTS, PICK)
)


def _join_ranges(scan: Scan, join: CudaKernel, found: Ranges, parameter: Any, values: Any) -> Any:
    """Return the partials of the ranges.

    Parameters
    ----------
    scan : Scan
    join : CudaKernel
        Of the same partials.
    parameter : int or int64[m]
        Of both.
    values : Lane or Moments
        The m partials of the entries.
    """
    out = like(values, found.count)
    if found.count == 0:
        return out
    heads, tails = found.blocks
    prefixes = scan.scan(parameter, BEFORE, heads, values).arguments
    suffixes = scan.scan(parameter, AFTER, tails, values).arguments
    places = found.first, found.last, found.halves
    join(found.count, parameter, *places, *prefixes, *suffixes, out)
    return out


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
    return _join_ranges(FOLD, _JOIN_FOLD, found, how, Lane(values)).values


def moments(found: Ranges, values: DeviceMoments) -> DeviceMoments:
    """See `contract.windows.Combine.moments`."""
    if found.is_single:
        n, high, low, m2 = (primitives.gather(part, found.last) for part in values)
    else:
        n, high, low, m2 = _join_ranges(MOMENTS, _JOIN_MOMENTS, found, 0, Moments(*values))
    return n, high, low, m2


def pick(found: Ranges, rank: DeviceInts) -> DeviceInts:
    """See `contract.windows.Combine.pick`."""
    if found.is_single:
        return found.last
    entries = primitives.to_device(np.arange(len(rank)))
    return _join_ranges(PICK, _JOIN_PICK, found, rank, Lane(entries)).values
