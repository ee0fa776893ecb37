"""Match the rows of two sides by key and time: all within bounds, or the nearest.

A thread searches for one left row, or one pair. Kernels are told how many rows there are: an array
without any is not to be looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceInts
from gpu_windows.kernels.contract.joins import Side
from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda, load_relaxed
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.reach import reach_of
from gpu_windows.kernels.cuda.search import first_above, first_after, first_from
from gpu_windows.kernels.cuda.sorting import sort
from gpu_windows.kernels.cuda.types import BOOLS, INT, INTS
from gpu_windows.rules import AFTER, BEFORE

#: Rows of a tile. The bounds of its first row and of the next tile's are found first; the others
#: search between them.
TILE = 256


def sorted_by_time(codes: DeviceInts, ts: DeviceInts) -> DeviceInts | None:
    """See `contract.joins.Joins.sorted_by_time`."""
    unsorted = primitives.to_device(np.zeros(1, np.int64))
    _find_unsorted(len(codes), codes, ts, unsorted)
    if int(primitives.to_host(unsorted)[0]) == 0:
        return None
    _, last_code = reach_of(codes)
    return sort(codes, ts, last_code + 1, reach_of(ts))


@kernel((INTS, INTS, INTS))
def _find_unsorted(codes: Any, ts: Any, unsorted: Any) -> None:
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        is_late = i > 0 and rules.precedes(codes[i], ts[i], codes[i - 1], ts[i - 1])
        if is_late and load_relaxed(unsorted, 0) == 0:
            cuda.atomic.max(unsorted, 0, 1)


# ---- all within bounds


def range_bounds(left: Side, right: Side, lower: int, upper: int) -> tuple[DeviceInts, DeviceInts]:
    """See `contract.joins.Joins.range_bounds`."""
    rows = len(left.codes)
    first, last = (primitives.empty(rows, np.int64) for _ in range(2))
    tiles = -(-rows // TILE)
    edges = [primitives.empty(tiles + 1, np.int64) for _ in range(2)]
    sides = *left, *right, len(right.codes), lower, upper
    _tile_bounds(tiles + 1 if rows else 0, *sides, *edges)
    _range_bounds(rows, *left, *right, lower, upper, *edges, first, last)
    return first, last


@kernel((INTS, INTS, INTS, INTS, INT, INT, INT, INTS, INTS))
def _tile_bounds(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, count: Any,
    lower: Any, upper: Any, firsts: Any, lasts: Any,
) -> None:  # fmt: skip
    """Find the range of the first left row of every tile, and that of the last row of all."""
    for tile in range(cuda.grid(1), firsts.size, cuda.gridsize(1)):
        row = min(tile * TILE, left_codes.size - 1)
        low, high = (
            rules.add_saturating(left_ts[row], lower),
            rules.add_saturating(left_ts[row], upper),
        )
        begin = first_from(right_codes, right_ts, left_codes[row], low, 0, count)
        firsts[tile] = begin
        lasts[tile] = first_after(right_codes, right_ts, left_codes[row], high, begin, count)


@kernel((INTS, INTS, INTS, INTS, INT, INT, INTS, INTS, INTS, INTS))
def _range_bounds(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, lower: Any, upper: Any,
    firsts: Any, lasts: Any, first: Any, last: Any,
) -> None:  # fmt: skip
    """Search between the bounds of the tile, for both ascend with the left rows."""
    for i in range(cuda.grid(1), left_codes.size, cuda.gridsize(1)):
        code, tile = left_codes[i], i // TILE
        low, high = rules.add_saturating(left_ts[i], lower), rules.add_saturating(left_ts[i], upper)
        begin = first_from(right_codes, right_ts, code, low, firsts[tile], firsts[tile + 1])
        first[i] = begin
        low_row, high_row = max(begin, lasts[tile]), max(begin, lasts[tile + 1])
        last[i] = first_after(right_codes, right_ts, code, high, low_row, high_row)


def has_match(first: DeviceInts, last: DeviceInts) -> DeviceBools:
    """See `contract.joins.Joins.has_match`."""
    found = primitives.empty(len(first), np.bool_)
    _match(len(first), first, last, found)
    return found


@kernel((INTS, INTS, BOOLS))
def _match(first: Any, last: Any, found: Any) -> None:
    for i in range(cuda.grid(1), first.size, cuda.gridsize(1)):
        found[i] = first[i] < last[i]


def mark_covered(first: DeviceInts, last: DeviceInts, count: int) -> DeviceBools:
    """See `contract.joins.Joins.mark_covered`."""
    found = primitives.empty(count, np.bool_)
    _cover(count, first, last, len(first), found)
    return found


@kernel((INTS, INTS, INT, BOOLS))
def _cover(first: Any, last: Any, ranges: Any, found: Any) -> None:
    for row in range(cuda.grid(1), found.size, cuda.gridsize(1)):
        # of the ranges that begin up to the row the last one ends last
        begun = first_above(first, row, 0, ranges)
        found[row] = begun > 0 and last[begun - 1] > row


# ---- pairs


def pair_offsets(first: DeviceInts, last: DeviceInts) -> DeviceInts:
    """See `contract.joins.Joins.pair_offsets`."""
    rows = len(first)
    counts = primitives.empty(rows + 1, np.int64)
    _count_pairs(rows + 1, first, last, rows, counts)
    offsets, _ = primitives.exclusive_scan(counts)
    return offsets


@kernel((INTS, INTS, INT, INTS))
def _count_pairs(first: Any, last: Any, rows: Any, counts: Any) -> None:
    for i in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        counts[i] = last[i] - first[i] if i < rows else 0


def expand_pairs(
    first: DeviceInts, offsets: DeviceInts, begin: int, end: int
) -> tuple[DeviceInts, DeviceInts]:
    """See `contract.joins.Joins.expand_pairs`."""
    left, right = (primitives.empty(end - begin, np.int64) for _ in range(2))
    tiles = -(-(end - begin) // TILE)
    owners = primitives.empty(tiles + 1, np.int64)
    _find_owners(len(owners), offsets, begin, end, owners)
    _expand_pairs(len(left), first, offsets, owners, begin, left, right)
    return left, right


@kernel((INTS, INT, INT, INTS))
def _find_owners(offsets: Any, begin: Any, end: Any, owners: Any) -> None:
    """Find the left row of the first pair of every tile, and that of the last pair of all."""
    for tile in range(cuda.grid(1), owners.size, cuda.gridsize(1)):
        pair = min(begin + tile * TILE, end - 1)
        owners[tile] = first_above(offsets, pair, 0, offsets.size) - 1


@kernel((INTS, INTS, INTS, INT, INTS, INTS))
def _expand_pairs(first: Any, offsets: Any, owners: Any, begin: Any, left: Any, right: Any) -> None:
    for p in range(cuda.grid(1), left.size, cuda.gridsize(1)):
        low, high = owners[p // TILE], owners[p // TILE + 1]
        row = first_above(offsets, begin + p, low + 1, high + 1) - 1
        left[p] = row
        right[p] = first[row] + (begin + p - offsets[row])


# ---- the nearest


def nearest(left: Side, right: Side, lower: int, upper: int, direction: int) -> DeviceInts:
    """See `contract.joins.Joins.nearest`."""
    rows = len(left.codes)
    sides = *left, *right, len(right.codes), lower, upper
    out = primitives.empty(rows, np.int64)
    if direction == AFTER:
        _find_later(rows, *sides, out)
        return out
    _find_earlier(rows, *sides, out)
    if direction == BEFORE:
        return out
    later = primitives.empty(rows, np.int64)
    _find_later(rows, *sides, later)
    _choose(rows, left.ts, right.ts, later, out)
    return out


@kernel((INTS, INTS, INTS, INTS, INT, INT, INT, INTS))
def _find_earlier(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, count: Any,
    lower: Any, upper: Any, out: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), left_codes.size, cuda.gridsize(1)):
        code, ts = left_codes[i], left_ts[i]
        latest = min(ts, rules.add_saturating(ts, upper))
        row = first_after(right_codes, right_ts, code, latest, 0, count) - 1
        is_found = row >= 0 and right_codes[row] == code
        out[i] = row if is_found and right_ts[row] >= rules.add_saturating(ts, lower) else -1


@kernel((INTS, INTS, INTS, INTS, INT, INT, INT, INTS))
def _find_later(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, count: Any,
    lower: Any, upper: Any, out: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), left_codes.size, cuda.gridsize(1)):
        code, ts = left_codes[i], left_ts[i]
        earliest = max(ts, rules.add_saturating(ts, lower))
        row = first_from(right_codes, right_ts, code, earliest, 0, count)
        is_found = row < count and right_codes[row] == code
        out[i] = row if is_found and right_ts[row] <= rules.add_saturating(ts, upper) else -1


@kernel((INTS, INTS, INTS, INTS))
def _choose(left_ts: Any, right_ts: Any, later: Any, out: Any) -> None:
    """Choose between the row before, if any, in ``out`` and the one after."""
    for i in range(cuda.grid(1), left_ts.size, cuda.gridsize(1)):
        before, after = out[i], later[i]
        if before < 0 or (
            after >= 0
            and not rules.is_earlier_nearer(left_ts[i], right_ts[before], right_ts[after])
        ):
            out[i] = after
