"""Match the rows of two sides by key and time: all within bounds, or the nearest.

Bounds are found by merge path (`merge_path`). Kernels are told how many rows there are: an array
without any is not to be looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceInts
from gpu_windows.kernels.contract.joins import Side, SortedRows
from gpu_windows.kernels.cuda import merge_path, primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda, device_function, load_relaxed
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.reach import reach_of
from gpu_windows.kernels.cuda.search import first_above
from gpu_windows.kernels.cuda.sorting import sort_pairs
from gpu_windows.kernels.cuda.types import BOOLS, INT, INTS, INTS32
from gpu_windows.rules import AFTER, BEFORE

#: Pairs of a tile: the owners of its first pair and of the next tile's are found first; the others
#: search between them.
TILE = 256


def sort(codes: DeviceInts, ts: DeviceInts) -> SortedRows:
    """See `contract.joins.Joins.sort`."""
    rows = len(codes)
    numbers = primitives.empty(rows, np.int32)
    if rows == 0:
        return SortedRows(numbers, codes, ts, were_sorted=True)
    unsorted = primitives.full(2, 0)
    _find_unsorted(rows, codes, ts, unsorted)
    is_unsorted, is_late = primitives.to_host(unsorted).tolist()
    if not is_unsorted:
        _number(rows, numbers)
        return SortedRows(numbers, codes, ts, were_sorted=True)
    order, codes, ts = sort_pairs(codes, ts, reach_of(codes), reach_of(ts) if is_late else None)
    _copy(rows, order, numbers)
    return SortedRows(numbers, codes, ts, were_sorted=False)


@kernel((INTS, INTS, INTS))
def _find_unsorted(codes: Any, ts: Any, unsorted: Any) -> None:
    """Find whether a row is out of order: of (code, ts), and of ts alone."""
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        if i > 0:
            if rules.precedes(codes[i], ts[i], codes[i - 1], ts[i - 1]):
                _set(unsorted, 0)
            if ts[i] < ts[i - 1]:
                _set(unsorted, 1)


@device_function
def _set(flags: Any, place: Any) -> None:
    if load_relaxed(flags, place) == 0:
        cuda.atomic.max(flags, place, 1)


@kernel((INTS32,))
def _number(numbers: Any) -> None:
    for i in range(cuda.grid(1), numbers.size, cuda.gridsize(1)):
        numbers[i] = i


@kernel((INTS, INTS32))
def _copy(order: Any, numbers: Any) -> None:
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        numbers[i] = order[i]


# ---- all within bounds


def range_bounds(left: Side, right: Side, lower: int, upper: int) -> tuple[DeviceInts, DeviceInts]:
    """See `contract.joins.Joins.range_bounds`."""
    return merge_path.bounds(left, right, lower, upper)


def has_match(numbers: DeviceInts, first: DeviceInts, last: DeviceInts) -> DeviceBools:
    """See `contract.joins.Joins.has_match`."""
    found = primitives.empty(len(numbers), np.bool_)
    _match(len(numbers), numbers, first, last, found)
    return found


@kernel((INTS32, INTS, INTS, BOOLS))
def _match(numbers: Any, first: Any, last: Any, found: Any) -> None:
    for i in range(cuda.grid(1), found.size, cuda.gridsize(1)):
        found[numbers[i]] = first[i] < last[i]


def mark_covered(numbers: DeviceInts, first: DeviceInts, last: DeviceInts) -> DeviceBools:
    """See `contract.joins.Joins.mark_covered`."""
    found = primitives.empty(len(numbers), np.bool_)
    _cover(len(numbers), numbers, first, last, len(first), found)
    return found


@kernel((INTS32, INTS, INTS, INT, BOOLS))
def _cover(numbers: Any, first: Any, last: Any, ranges: Any, found: Any) -> None:
    for row in range(cuda.grid(1), found.size, cuda.gridsize(1)):
        # of the ranges that begin up to the row the last one ends last
        begun = first_above(first, row, 0, ranges)
        found[numbers[row]] = begun > 0 and last[begun - 1] > row


# ---- pairs


def pair_offsets(first: DeviceInts, last: DeviceInts) -> tuple[DeviceInts, int]:
    """See `contract.joins.Joins.pair_offsets`."""
    counts = primitives.empty(len(first) + 1, np.int64)
    _count_pairs(len(counts), first, last, counts)
    offsets = primitives.running_sum(counts)
    return offsets, int(primitives.to_host(offsets[-1:])[0])


@kernel((INTS, INTS, INTS))
def _count_pairs(first: Any, last: Any, counts: Any) -> None:
    """Count the pairs of the left row before each: so their sum up to it is its offset."""
    for i in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        counts[i] = last[i - 1] - first[i - 1] if i > 0 else 0


def expand_pairs(
    left: DeviceInts, right: DeviceInts, first: DeviceInts, offsets: DeviceInts, begin: int,
    end: int,
) -> tuple[DeviceInts, DeviceInts]:  # fmt: skip
    """See `contract.joins.Joins.expand_pairs`."""
    i, j = (primitives.empty(end - begin, np.int32) for _ in range(2))
    tiles = -(-(end - begin) // TILE)
    owners = primitives.empty(tiles + 1, np.int64)
    _find_owners(len(owners), offsets, begin, end, owners)
    _expand_pairs(len(i), left, right, first, offsets, owners, begin, i, j)
    return i, j


@kernel((INTS, INT, INT, INTS))
def _find_owners(offsets: Any, begin: Any, end: Any, owners: Any) -> None:
    """Find the left row of the first pair of every tile, and that of the last pair of all."""
    for tile in range(cuda.grid(1), owners.size, cuda.gridsize(1)):
        pair = min(begin + tile * TILE, end - 1)
        owners[tile] = first_above(offsets, pair, 0, offsets.size) - 1


@kernel((INTS32, INTS32, INTS, INTS, INTS, INT, INTS32, INTS32))
def _expand_pairs(
    left: Any, right: Any, first: Any, offsets: Any, owners: Any, begin: Any, out_left: Any,
    out_right: Any,
) -> None:  # fmt: skip
    for p in range(cuda.grid(1), out_left.size, cuda.gridsize(1)):
        low, high = owners[p // TILE], owners[p // TILE + 1]
        row = first_above(offsets, begin + p, low + 1, high + 1) - 1
        out_left[p] = left[row]
        out_right[p] = right[first[row] + (begin + p - offsets[row])]


# ---- the nearest


def nearest(
    left: SortedRows, right: SortedRows, lower: int, upper: int, direction: int
) -> DeviceInts:
    """See `contract.joins.Joins.nearest`."""
    sides = left.side, right.side
    if direction == BEFORE:
        _, last = merge_path.bounds(*sides, lower, min(upper, 0), merge_path.UPPER)
        first = last
    elif direction == AFTER:
        first, _ = merge_path.bounds(*sides, max(lower, 0), upper, merge_path.LOWER)
        last = first
    else:
        first, last = merge_path.bounds(*sides, max(lower, 0), min(upper, 0))
    rows, count = len(left.codes), len(right.codes)
    out = primitives.empty(rows, np.int64)
    numbers = left.numbers, right.numbers
    given = lower, upper, direction, first, last
    _choose(rows, *numbers, *sides[0], *sides[1], count, *given, out)
    return out


@kernel((INTS32, INTS32, INTS, INTS, INTS, INTS, INT, INT, INT, INT, INTS, INTS, INTS))
def _choose(
    left_numbers: Any, right_numbers: Any,
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, count: Any,
    lower: Any, upper: Any, direction: Any, first: Any, last: Any, out: Any,
) -> None:  # fmt: skip
    """Choose between the right row before and the one after, of those that match."""
    for i in range(cuda.grid(1), left_codes.size, cuda.gridsize(1)):
        code, ts = left_codes[i], left_ts[i]
        row, after = -1, -1
        if direction != AFTER:
            place = last[i] - 1
            if place >= 0 and right_codes[place] == code:
                row = place if right_ts[place] >= rules.add_saturating(ts, lower) else -1
        if direction != BEFORE:
            place = first[i]
            if place < count and right_codes[place] == code:
                after = place if right_ts[place] <= rules.add_saturating(ts, upper) else -1
        if row < 0 or (
            after >= 0 and not rules.is_earlier_nearer(ts, right_ts[row], right_ts[after])
        ):
            row = after
        out[left_numbers[i]] = right_numbers[row] if row >= 0 else -1
