"""Find the windows that hold entries, a thread a window, and the blocks of entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceInts
from gpu_windows.kernels.contract.windows import Ranges, Windows
from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.search import first_after, first_from, owner
from gpu_windows.kernels.cuda.types import BOOLS, BYTES, GRID, INT, INTS, INTS32
from gpu_windows.rules import Grid


@kernel((INTS, INTS, GRID, INT, INT, INTS))
def _count_windows(codes: Any, slices: Any, grid: Any, low: Any, high: Any, counts: Any) -> None:
    for e in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        begin = max(rules.first_window(slices[e], grid), low)
        end = min(rules.last_window(slices[e], grid), high)
        if e + 1 < codes.size and codes[e + 1] == codes[e]:
            end = min(end, rules.last_window_before(slices[e + 1], grid))
        counts[e] = end - begin + 1 if begin <= end else 0  # the difference may overflow


@kernel((INTS, INTS, GRID, INT, INTS, INTS, INTS, INTS, BYTES))
def _fill_windows(
    codes: Any, slices: Any, grid: Any, low: Any, starts: Any,
    numbers: Any, first: Any, last: Any, halves: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), numbers.size, cuda.gridsize(1)):
        e = owner(starts, i)
        number = max(rules.first_window(slices[e], grid), low) + i - starts[e]
        edge = rules.first_slice(number, grid)
        left = first_from(codes, slices, codes[e], edge, max(e - grid.span + 1, 0), e)
        numbers[i] = number
        first[i] = left
        last[i] = e
        halves[i] = rules.halves_of(number, slices[left], slices[e], grid)


@kernel((INTS, GRID, INTS, INTS))
def _bounds(numbers: Any, grid: Any, starts: Any, ends: Any) -> None:
    for i in range(cuda.grid(1), numbers.size, cuda.gridsize(1)):
        starts[i] = rules.start_of(numbers[i], grid)
        ends[i] = rules.end_of(numbers[i], grid)


def total_windows(codes: DeviceInts, slices: DeviceInts, grid: Grid, low: int, high: int) -> int:
    """See `contract.windows.Combine.total_windows`."""
    return _starts(codes, slices, grid, low, high)[1]


def windows(codes: DeviceInts, slices: DeviceInts, grid: Grid, low: int, high: int) -> Windows:
    """See `contract.windows.Combine.windows`."""
    starts, total = _starts(codes, slices, grid, low, high)
    numbers, first, last = (primitives.empty(total, np.int64) for _ in range(3))
    halves = primitives.empty(total, np.int8)
    _fill_windows(total, codes, slices, grid, low, starts, numbers, first, last, halves)
    blocks = _find_blocks(codes, slices, grid.span, grid.span)
    return Windows(first, last, halves, blocks, grid.span == 1, numbers, grid)


def _starts(codes: Any, slices: Any, grid: Grid, low: int, high: int) -> tuple[Any, int]:
    """Return the first window of every entry, int64[m], and the number of windows."""
    counts = primitives.empty(len(codes), np.int64)
    _count_windows(len(codes), codes, slices, grid, low, high, counts)
    return primitives.exclusive_scan(counts)


@kernel((INTS, INTS, GRID, INTS, INTS, INT, INTS, BOOLS))
def _fill_last_slices(
    codes: Any, slices: Any, grid: Any, numbers: Any, last: Any, length: Any, first: Any, some: Any
) -> None:
    for i in range(cuda.grid(1), numbers.size, cuda.gridsize(1)):
        right = last[i]
        edge = rules.last_slice(numbers[i], grid) - length + 1
        some[i] = slices[right] >= edge
        nearest = max(right - length + 1, 0)
        first[i] = first_from(codes, slices, codes[right], edge, nearest, right)


def last_slices(
    codes: DeviceInts, slices: DeviceInts, found: Windows, length: int
) -> tuple[DeviceInts, DeviceBools]:
    """See `contract.windows.Combine.last_slices`."""
    first = primitives.empty(found.count, np.int64)
    some = primitives.empty(found.count, np.bool_)
    at = codes, slices, found.grid, found.numbers, found.last
    _fill_last_slices(found.count, *at, length, first, some)
    return first, some


def by_number(found: Windows) -> Windows:
    """See `contract.windows.Combine.by_number`."""
    return (
        found.take(primitives.argsort(found.numbers), primitives.gather) if found.count else found
    )


def bounds(found: Windows) -> tuple[DeviceInts, DeviceInts]:
    """See `contract.windows.Combine.bounds`."""
    starts, ends = (primitives.empty(found.count, np.int64) for _ in range(2))
    _bounds(found.count, found.numbers, found.grid, starts, ends)
    return starts, ends


def _find_blocks(codes: Any, values: Any, length: int, max_entries: int) -> tuple[Any, Any]:
    """Return the first and the last entry of the block of every entry: int32[m] twice.

    Parameters
    ----------
    codes, values : int64[m]
        Entries, sorted by (code, value).
    length : int
        A block is of so many values, of one code. 1: every entry is one, and nothing is returned.
    max_entries : int
        How many entries a block may have.
    """
    count = len(codes) if length > 1 else 0
    heads, tails = (primitives.empty(count, np.int32) for _ in range(2))
    _blocks(count, codes, values, length, max_entries, heads, tails)
    return heads, tails


@kernel((INTS, INTS, INT, INT, INTS32, INTS32))
def _blocks(codes: Any, values: Any, length: Any, max_entries: Any, heads: Any, tails: Any) -> None:
    for e in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        edge = values[e] - values[e] % length
        heads[e] = first_from(codes, values, codes[e], edge, max(e - max_entries + 1, 0), e)
        end = rules.add_saturating(edge, length - 1)
        high = min(e + max_entries, codes.size)
        tails[e] = first_after(codes, values, codes[e], end, e, high) - 1


@kernel((INTS, INTS, INTS32, BYTES))
def _halves_of_ranges(first: Any, last: Any, heads: Any, halves: Any) -> None:
    for i in range(cuda.grid(1), halves.size, cuda.gridsize(1)):
        left = first[i]
        head = heads[left]
        halves[i] = rules.halves_of_range(head == left, head == heads[last[i]])


def ranges(
    codes: DeviceInts, values: DeviceInts, first: DeviceInts, last: DeviceInts, length: int
) -> Ranges:
    """See `contract.windows.Combine.ranges`."""
    halves, blocks = (
        primitives.empty(len(first), np.int8),
        _find_blocks(codes, values, length, len(codes)),
    )
    if length > 1:
        _halves_of_ranges(len(first), first, last, blocks[0], halves)
    return Ranges(first, last, halves, blocks, is_single=length == 1)
