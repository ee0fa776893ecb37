"""Combine entries to ranges: two scans of all entries, one from each end, then a join a range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import (
    BOOLS,
    BYTES,
    FLOATS,
    GRID,
    INT,
    INTS,
    OUT_BOOLS,
    OUT_BYTES,
    OUT_FLOATS,
    OUT_INTS,
)
from gpu_windows.kernels.compile import Kernel, kernel, specialize
from gpu_windows.kernels.contract.windows import Ranges, Windows
from gpu_windows.kernels.cpu import rules
from gpu_windows.kernels.cpu.moments import Moments, empty_moments
from gpu_windows.kernels.cpu.running import choose_better, scan_fold, scan_moments, scan_pick
from gpu_windows.kernels.cpu.search import first_from
from gpu_windows.rules import ADD, LONG_MAX, PREFIX, SUFFIX, Grid


@kernel((INTS, INTS, GRID, INT, INT, OUT_INTS))
def _count_windows(codes: Any, slices: Any, grid: Any, low: Any, high: Any, counts: Any) -> None:
    for e in range(codes.size):
        begin = max(rules.first_window(slices[e], grid), low)
        end = min(rules.last_window(slices[e], grid), high)
        if e + 1 < codes.size and codes[e + 1] == codes[e]:
            end = min(end, rules.last_window_before(slices[e + 1], grid))
        counts[e] = end - begin + 1 if begin <= end else 0  # the difference may overflow


@kernel((INTS, INTS, GRID, INT, INTS, INTS, OUT_INTS, OUT_INTS, OUT_INTS, OUT_BYTES))
def _fill_windows(
    codes: Any, slices: Any, grid: Any, low: Any, counts: Any, ends: Any,
    numbers: Any, first: Any, last: Any, halves: Any,
) -> None:  # fmt: skip
    left = 0
    for e in range(codes.size):
        begin = max(rules.first_window(slices[e], grid), low)
        for j in range(counts[e]):
            number = begin + j
            edge = rules.first_slice(number, grid)
            while codes[left] != codes[e] or slices[left] < edge:
                left += 1
            at = ends[e] - counts[e] + j
            numbers[at] = number
            first[at] = left
            last[at] = e
            halves[at] = rules.halves_of(number, slices[left], slices[e], grid)


@kernel((INTS, INTS, GRID, OUT_BOOLS))
def _fill_same(codes: Any, slices: Any, grid: Any, same: Any) -> None:
    for e in range(codes.size):
        same[e] = (
            e > 0 and codes[e - 1] == codes[e] and rules.same_block(slices[e - 1], slices[e], grid)
        )


def total_windows(
    codes: NDArray[np.int64], slices: NDArray[np.int64], grid: Grid, low: int, high: int
) -> int:
    """See `contract.windows.Combine.total_windows`."""
    counts = np.empty(len(codes), np.int64)
    _count_windows(codes, slices, grid, low, high, counts)
    return int(counts.sum())


def windows(
    codes: NDArray[np.int64], slices: NDArray[np.int64], grid: Grid, low: int, high: int
) -> Windows:
    """See `contract.windows.Combine.windows`."""
    if grid.span == 1 and grid.per_slide == 1 and len(codes):
        return _one_slice_windows(codes, slices, grid, low, high)
    counts = np.empty(len(codes), np.int64)
    _count_windows(codes, slices, grid, low, high, counts)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers, first, last = (np.empty(total, np.int64) for _ in range(3))
    halves = np.empty(total, np.int8)
    _fill_windows(codes, slices, grid, low, counts, ends, numbers, first, last, halves)
    same = np.zeros(len(codes), np.bool_)
    if grid.span > 1:
        _fill_same(codes, slices, grid, same)
    return Windows(first, last, halves, same, grid.span == 1, numbers, grid)


def _one_slice_windows(
    codes: NDArray[np.int64], slices: NDArray[np.int64], grid: Grid, low: int, high: int
) -> Windows:
    """Return windows that are slices (tumbling): every entry is one."""
    entries = np.arange(len(codes))
    if slices.min() < low or slices.max() > high:
        entries = entries[(slices >= low) & (slices <= high)]
    halves = np.full(len(entries), PREFIX, np.int8)
    same = np.zeros(len(codes), np.bool_)
    return Windows(entries, entries, halves, same, True, slices[entries], grid)


@kernel((INTS, INTS, GRID, INTS, INTS, INT, OUT_INTS, OUT_BOOLS))
def _fill_last_slices(
    codes: Any, slices: Any, grid: Any, numbers: Any, last: Any, length: Any, first: Any, some: Any
) -> None:
    for i in range(numbers.size):
        right = last[i]
        edge = rules.last_slice(numbers[i], grid) - length + 1
        some[i] = slices[right] >= edge
        nearest = max(right - length + 1, 0)
        if slices[nearest] == edge and codes[nearest] == codes[right]:  # no slice is missing
            first[i] = nearest
        else:
            first[i] = min(first_from(codes, slices, codes[right], edge, nearest), right)


def last_slices(
    codes: NDArray[np.int64], slices: NDArray[np.int64], found: Windows, length: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """See `contract.windows.Combine.last_slices`."""
    first, some = np.empty(found.count, np.int64), np.empty(found.count, np.bool_)
    _fill_last_slices(codes, slices, found.grid, found.numbers, found.last, length, first, some)
    return first, some


@kernel((INTS, GRID, OUT_INTS, OUT_INTS))
def _bounds(numbers: Any, grid: Any, starts: Any, ends: Any) -> None:
    for i in range(numbers.size):
        starts[i] = rules.start_of(numbers[i], grid)
        ends[i] = rules.end_of(numbers[i], grid)


def by_number(found: Windows) -> Windows:
    """See `contract.windows.Combine.by_number`."""
    shifted = found.numbers - found.numbers.min(initial=LONG_MAX)
    if len(shifted) and shifted.max() < 1 << 16:
        shifted = shifted.astype(np.uint16)  # NumPy sorts 16 bits by radix
    return found.take(np.argsort(shifted, kind="stable"), np.take)


def bounds(found: Windows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """See `contract.windows.Combine.bounds`."""
    starts, ends = np.empty(found.count, np.int64), np.empty(found.count, np.int64)
    _bounds(found.numbers, found.grid, starts, ends)
    return starts, ends


@kernel((INTS, INTS, INT, OUT_INTS, OUT_BOOLS))
def _fill_blocks(codes: Any, values: Any, length: Any, blocks: Any, same: Any) -> None:
    block, before = -1, 0
    for e in range(codes.size):
        number = values[e] // length
        same[e] = e > 0 and codes[e - 1] == codes[e] and number == before
        before = number
        block += 0 if same[e] else 1
        blocks[e] = block


@kernel((INTS, BOOLS, INTS, INTS, OUT_BYTES))
def _halves_of_ranges(blocks: Any, same: Any, first: Any, last: Any, halves: Any) -> None:
    for i in range(first.size):
        left = first[i]
        halves[i] = rules.halves_of_range(not same[left], blocks[left] == blocks[last[i]])


def ranges(
    codes: NDArray[np.int64],
    values: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    length: int,
) -> Ranges:
    """See `contract.windows.Combine.ranges`."""
    if length == 1:
        halves = np.full(len(first), PREFIX, np.int8)
        return Ranges(first, last, halves, np.zeros(len(codes), np.bool_), is_single=True)
    halves, same = np.empty(len(first), np.int8), np.empty(len(codes), np.bool_)
    blocks = np.empty(len(codes), np.int64)
    _fill_blocks(codes, values, length, blocks, same)
    _halves_of_ranges(blocks, same, first, last, halves)
    return Ranges(first, last, halves, same, is_single=False)


# ---- scan the blocks from both ends, join the halves

#: How two partials are combined: a kernel of `_join` has its own in this place.
merge: Any = None


def _join(
    parameter: Any, first: Any, last: Any, halves: Any, prefix: Any, suffix: Any, out: Any
) -> None:
    for i in range(halves.size):
        left, right = first[i], last[i]
        if halves[i] == PREFIX:
            out[i] = prefix[right]
        elif halves[i] == SUFFIX:
            out[i] = suffix[left]
        else:
            out[i] = merge(parameter, suffix[left], prefix[right])


_join_fold = kernel(
    (INT, INTS, INTS, BYTES, INTS, INTS, OUT_INTS),
    (INT, INTS, INTS, BYTES, FLOATS, FLOATS, OUT_FLOATS),
)(specialize(_join, "join_fold", merge=rules.fold))
_join_pick = kernel((INTS, INTS, INTS, BYTES, INTS, INTS, OUT_INTS))(
    specialize(_join, "join_pick", merge=choose_better)
)


def _join_ranges(
    scan: Kernel, join: Kernel, found: Ranges, parameter: Any, values: NDArray[Any]
) -> NDArray[Any]:
    """Return the partials of the ranges, of one number each."""
    prefix, suffix = np.empty_like(values), np.empty_like(values)
    scan(parameter, 0, found.blocks, values, prefix)
    scan(parameter, 1, found.blocks, values, suffix)
    out = np.empty(found.count, values.dtype)
    join(parameter, found.first, found.last, found.halves, prefix, suffix, out)
    return out


@kernel((INTS, INTS, INTS, OUT_INTS))
def _subtract(first: Any, last: Any, sums: Any, out: Any) -> None:
    for i in range(out.size):
        before = sums[first[i] - 1] if first[i] > 0 else 0
        out[i] = sums[last[i]] - before


def combine(how: int, found: Ranges, values: NDArray[Any]) -> NDArray[Any]:
    """See `contract.windows.Combine.combine`."""
    if found.is_single:
        return values[found.last]
    if how == ADD and values.dtype == np.int64:  # differences of running sums, which wrap around
        out = np.empty(found.count, np.int64)
        _subtract(found.first, found.last, np.cumsum(values), out)
        return out
    return _join_ranges(scan_fold, _join_fold, found, how, values)


@kernel((INTS, INTS, BYTES, *[INTS, FLOATS, FLOATS, FLOATS] * 2, OUT_INTS, *[OUT_FLOATS] * 3))
def _join_moments(
    first: Any, last: Any, halves: Any,
    prefix_n: Any, prefix_high: Any, prefix_low: Any, prefix_m2: Any,
    suffix_n: Any, suffix_high: Any, suffix_low: Any, suffix_m2: Any,
    out_n: Any, out_high: Any, out_low: Any, out_m2: Any,
) -> None:  # fmt: skip
    for i in range(halves.size):
        n, high, low, m2 = 0, 0.0, 0.0, 0.0
        if halves[i] != PREFIX:
            e = first[i]
            n, high, low, m2 = suffix_n[e], suffix_high[e], suffix_low[e], suffix_m2[e]
        if halves[i] != SUFFIX:
            e = last[i]
            n, high, low, m2 = rules.wide_moments(
                n, high, low, m2, prefix_n[e], prefix_high[e], prefix_low[e], prefix_m2[e]
            )
        out_n[i], out_high[i], out_low[i], out_m2[i] = n, high, low, m2


def moments(found: Ranges, values: Moments) -> Moments:
    """See `contract.windows.Combine.moments`."""
    if found.is_single:
        n, high, low, m2 = values
        return n[found.last], high[found.last], low[found.last], m2[found.last]
    prefix, suffix = empty_moments(len(found.blocks)), empty_moments(len(found.blocks))
    scan_moments(0, found.blocks, *values, *prefix)
    scan_moments(1, found.blocks, *values, *suffix)
    out = empty_moments(found.count)
    _join_moments(found.first, found.last, found.halves, *prefix, *suffix, *out)
    return out


def pick(found: Ranges, rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """See `contract.windows.Combine.pick`."""
    if found.is_single:
        return found.last  # type: ignore[no-any-return]
    return _join_ranges(scan_pick, _join_pick, found, rank, np.arange(len(rank)))
