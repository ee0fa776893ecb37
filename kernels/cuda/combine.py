"""Combine slices to windows.

An entry is a thread, and a scan of the blocks (`contract.windows.Combine`) takes log2(span)
launches: after the one of distance d, an entry holds the 2 d entries up to it (or from it on)
that lie in its block. The order of combination depends on the entries of a key alone. Sums of
integers are differences of running sums instead, whatever the span: both wrap around 64 bits.

Source of the scan: Hillis and Steele, "Data parallel algorithms" (1986).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceInts, DeviceLane, DeviceMoments
from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import CudaKernel, kernel
from gpu_windows.kernels.cuda.types import BYTES, FLOATS, INT, INTS
from gpu_windows.kernels.cuda.windows import Windows, bounds, total_windows, windows
from gpu_windows.rules import ADD, PREFIX, SUFFIX

__all__ = ["Windows", "bounds", "combine", "moments", "pick", "total_windows", "windows"]

State = tuple[Any, ...]


def _scan(step: CudaKernel, found: Windows, parameters: State, values: State) -> State:
    """Return the scans of blocks from their starts, then those from their ends.

    Parameters
    ----------
    step : CudaKernel
        One distance: (parameters, distance, heads, tails, old scans, new scans).
    values : tuple of arrays of m
        The partials of the entries.
    """
    entries = len(found.heads)
    spare = [_like((*values, *values)) for _ in range(2)]
    scans, distance = (*values, *values), 1
    while distance < min(found.grid.span, entries):
        new = spare[0]
        step(entries, *parameters, distance, found.heads, found.tails, *scans, *new)
        scans, spare, distance = new, spare[::-1], 2 * distance
    return scans


def _join(step: CudaKernel, found: Windows, parameters: State, scans: State) -> State:
    """Return the partials of the windows, given the scans of the blocks."""
    out = tuple(primitives.empty(found.count, part.dtype) for part in scans[: len(scans) // 2])
    step(found.count, *parameters, found.first, found.last, found.halves, *scans, *out)
    return out


def _like(values: State) -> State:
    return tuple(primitives.empty(len(part), part.dtype) for part in values)


# ---- add, least, greatest


@kernel(
    (INT, INT, INTS, INTS, *[INTS] * 4),
    (INT, INT, INTS, INTS, *[FLOATS] * 4),
)
def _scan_fold(
    how: Any, distance: Any, heads: Any, tails: Any,
    prefix: Any, suffix: Any, new_prefix: Any, new_suffix: Any,
) -> None:  # fmt: skip
    for e in range(cuda.grid(1), heads.size, cuda.gridsize(1)):
        new_prefix[e], new_suffix[e] = prefix[e], suffix[e]
        d = e - distance
        if d >= heads[e]:
            new_prefix[e] = rules.fold(how, prefix[d], prefix[e])
        d = e + distance
        if d <= tails[e]:
            new_suffix[e] = rules.fold(how, suffix[e], suffix[d])


@kernel(
    (INT, INTS, INTS, BYTES, *[INTS] * 3),
    (INT, INTS, INTS, BYTES, *[FLOATS] * 3),
)
def _join_fold(
    how: Any, first: Any, last: Any, halves: Any,
    prefix: Any, suffix: Any, out: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), halves.size, cuda.gridsize(1)):
        left, right = first[i], last[i]
        if halves[i] == PREFIX:
            out[i] = prefix[right]
        elif halves[i] == SUFFIX:
            out[i] = suffix[left]
        else:
            out[i] = rules.fold(how, suffix[left], prefix[right])


@kernel((INTS, INTS, INTS, INTS))
def _subtract(first: Any, last: Any, sums: Any, out: Any) -> None:
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        before = sums[first[i] - 1] if first[i] > 0 else 0
        out[i] = sums[last[i]] - before


def combine(how: int, found: Windows, values: DeviceLane) -> DeviceLane:
    """See `contract.windows.Combine.combine`."""
    if found.grid.span == 1:
        return primitives.gather(values, found.last)
    if how == ADD and values.dtype == np.int64:
        sums, out = primitives.running_sum(values), primitives.empty(found.count, np.int64)
        _subtract(found.count, found.first, found.last, sums, out)
        return out
    scans = _scan(_scan_fold, found, (how,), (values,))
    return _join(_join_fold, found, (how,), scans)[0]


# ---- moments


@kernel((INT, INTS, INTS, *[INTS, FLOATS, FLOATS] * 4))
def _scan_moments(
    distance: Any, heads: Any, tails: Any,
    prefix_n: Any, prefix_mean: Any, prefix_m2: Any,
    suffix_n: Any, suffix_mean: Any, suffix_m2: Any,
    new_prefix_n: Any, new_prefix_mean: Any, new_prefix_m2: Any,
    new_suffix_n: Any, new_suffix_mean: Any, new_suffix_m2: Any,
) -> None:  # fmt: skip
    for e in range(cuda.grid(1), heads.size, cuda.gridsize(1)):
        n, mean, m2 = prefix_n[e], prefix_mean[e], prefix_m2[e]
        d = e - distance
        if d >= heads[e]:
            n, mean, m2 = rules.moments(prefix_n[d], prefix_mean[d], prefix_m2[d], n, mean, m2)
        new_prefix_n[e], new_prefix_mean[e], new_prefix_m2[e] = n, mean, m2
        n, mean, m2 = suffix_n[e], suffix_mean[e], suffix_m2[e]
        d = e + distance
        if d <= tails[e]:
            n, mean, m2 = rules.moments(n, mean, m2, suffix_n[d], suffix_mean[d], suffix_m2[d])
        new_suffix_n[e], new_suffix_mean[e], new_suffix_m2[e] = n, mean, m2


@kernel((INTS, INTS, BYTES, *[INTS, FLOATS, FLOATS] * 3))
def _join_moments(
    first: Any, last: Any, halves: Any,
    prefix_n: Any, prefix_mean: Any, prefix_m2: Any,
    suffix_n: Any, suffix_mean: Any, suffix_m2: Any,
    out_n: Any, out_mean: Any, out_m2: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), halves.size, cuda.gridsize(1)):
        left, right = first[i], last[i]
        n, mean, m2 = prefix_n[right], prefix_mean[right], prefix_m2[right]
        if halves[i] == SUFFIX:
            n, mean, m2 = suffix_n[left], suffix_mean[left], suffix_m2[left]
        elif halves[i] != PREFIX:
            n, mean, m2 = rules.moments(
                suffix_n[left], suffix_mean[left], suffix_m2[left], n, mean, m2
            )
        out_n[i], out_mean[i], out_m2[i] = n, mean, m2


def moments(found: Windows, values: DeviceMoments) -> DeviceMoments:
    """See `contract.windows.Combine.moments`."""
    if found.grid.span == 1:
        n, mean, m2 = (primitives.gather(part, found.last) for part in values)
        return n, mean, m2
    n, mean, m2 = _join(_join_moments, found, (), _scan(_scan_moments, found, (), values))
    return n, mean, m2


# ---- pick


@kernel((INTS, INT, INTS, INTS, *[INTS] * 4))
def _scan_pick(
    rank: Any, distance: Any, heads: Any, tails: Any,
    prefix: Any, suffix: Any, new_prefix: Any, new_suffix: Any,
) -> None:  # fmt: skip
    for e in range(cuda.grid(1), heads.size, cuda.gridsize(1)):
        new_prefix[e], new_suffix[e] = prefix[e], suffix[e]
        d = e - distance
        if d >= heads[e]:
            a, b = prefix[d], prefix[e]
            new_prefix[e] = rules.better(a, rank[a], b, rank[b])
        d = e + distance
        if d <= tails[e]:
            a, b = suffix[e], suffix[d]
            new_suffix[e] = rules.better(a, rank[a], b, rank[b])


@kernel((INTS, INTS, INTS, BYTES, *[INTS] * 3))
def _join_pick(
    rank: Any, first: Any, last: Any, halves: Any,
    prefix: Any, suffix: Any, out: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), halves.size, cuda.gridsize(1)):
        left, right = first[i], last[i]
        if halves[i] == PREFIX:
            out[i] = prefix[right]
        elif halves[i] == SUFFIX:
            out[i] = suffix[left]
        else:
            a, b = suffix[left], prefix[right]
            out[i] = rules.better(a, rank[a], b, rank[b])


def pick(found: Windows, rank: DeviceInts) -> DeviceInts:
    """See `contract.windows.Combine.pick`."""
    if found.grid.span == 1:
        return found.last
    entries = primitives.to_device(np.arange(len(rank)))
    scans = _scan(_scan_pick, found, (rank,), (entries,))
    return _join(_join_pick, found, (rank,), scans)[0]
