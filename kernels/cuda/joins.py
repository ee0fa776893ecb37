"""Match the rows of two sides by key and time: all within bounds, or the nearest.

Rows of a side are sorted by (code, ts): both int64, codes from 0 on. A left row matches the right
rows of its code with ``ts + lower <= right_ts <= ts + upper``, ``lower <= upper``, where a sum
beyond int64 is the end of int64. The matches of a left row are one range of right rows.

A thread searches for one left row, or one pair. Kernels are told how many rows there are: an array
without any is not to be looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.cuda import grouping, primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.search import first_above, first_after, first_from
from gpu_windows.kernels.cuda.types import BOOLS, INT, INTS
from gpu_windows.rules import AFTER, BEFORE

#: Pairs of which the left rows lie between two that are searched for beforehand.
TILE = 256


def sorted_by_time(codes: Any, ts: Any) -> Any:
    """Return what sorts rows by (code, ts), equal ones in their order.

    Parameters
    ----------
    codes, ts : int64[n]

    Returns
    -------
    int64[n] or None
        None if they are sorted already.
    """
    unsorted = primitives.to_device(np.zeros(1, np.int64))
    _find_unsorted(len(codes), codes, ts, unsorted)
    if int(primitives.to_host(unsorted)[0]) == 0:
        return None
    _, most = primitives.extremes(codes)
    return grouping.sort(codes, ts, most + 1)


@kernel((INTS, INTS, INTS))
def _find_unsorted(codes: Any, ts: Any, unsorted: Any) -> None:
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        if i > 0 and rules.precedes(codes[i], ts[i], codes[i - 1], ts[i - 1]):
            unsorted[0] = 1  # all that write write the same


# ---- all within bounds


def range_bounds(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, lower: int, upper: int
) -> tuple[Any, Any]:
    """Return the range of right rows that every left row matches.

    Parameters
    ----------
    left_codes, left_ts : int64[n]
    right_codes, right_ts : int64[m]
    lower, upper : int
        Ticks.

    Returns
    -------
    first, last : int64[n]
        The first right row and the one after the last; equal if there is none. Both ascend.
    """
    rows = len(left_codes)
    first, last = (primitives.empty(rows, np.int64) for _ in range(2))
    right = right_codes, right_ts, len(right_codes)
    _range_bounds(rows, left_codes, left_ts, *right, lower, upper, first, last)
    return first, last


@kernel((INTS, INTS, INTS, INTS, INT, INT, INT, INTS, INTS))
def _range_bounds(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, count: Any,
    lower: Any, upper: Any, first: Any, last: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), left_codes.size, cuda.gridsize(1)):
        low, high = rules.shifted(left_ts[i], lower), rules.shifted(left_ts[i], upper)
        begin = first_from(right_codes, right_ts, left_codes[i], low, 0, count)
        first[i] = begin
        last[i] = first_after(right_codes, right_ts, left_codes[i], high, begin, count)


def has_match(first: Any, last: Any) -> Any:
    """Return which left rows match any right row: bool[n]."""
    found = primitives.empty(len(first), np.bool_)
    _match(len(first), first, last, found)
    return found


@kernel((INTS, INTS, BOOLS))
def _match(first: Any, last: Any, found: Any) -> None:
    for i in range(cuda.grid(1), first.size, cuda.gridsize(1)):
        found[i] = first[i] < last[i]


def covered(first: Any, last: Any, count: int) -> Any:
    """Return which right rows match any left row.

    Parameters
    ----------
    first, last : int64[n]
        Of `range_bounds`: both ascend.
    count : int
        Number of right rows.

    Returns
    -------
    bool[count]
    """
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


def pair_offsets(first: Any, last: Any) -> Any:
    """Return how many pairs are made of the left rows before each, and at the end of all.

    Parameters
    ----------
    first, last : int64[n]
        Of `range_bounds`.

    Returns
    -------
    int64[n + 1]
    """
    rows = len(first)
    counts = primitives.empty(rows + 1, np.int64)
    _count_pairs(rows + 1, first, last, rows, counts)
    offsets, _ = primitives.exclusive_scan(counts)
    return offsets


@kernel((INTS, INTS, INT, INTS))
def _count_pairs(first: Any, last: Any, rows: Any, counts: Any) -> None:
    for i in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        counts[i] = last[i] - first[i] if i < rows else 0


def expand_pairs(first: Any, offsets: Any, begin: int, end: int) -> tuple[Any, Any]:
    """Return some of the pairs of left and right rows that match.

    Pairs are numbered by left row, those of a left row by right row.

    Parameters
    ----------
    first : int64[n]
        Of `range_bounds`.
    offsets : int64[n + 1]
        Of `pair_offsets`.
    begin, end : int
        Number of the first pair, and of the one after the last; ``end`` is at most their number.

    Returns
    -------
    left, right : int64[end - begin]
        Places of the rows.
    """
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


def nearest(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, lower: int, upper: int,
    direction: int,
) -> Any:  # fmt: skip
    """Return the right row that is nearest in time to every left row, of those that it matches.

    Parameters
    ----------
    left_codes, left_ts : int64[n]
    right_codes, right_ts : int64[m]
    lower, upper : int
        Ticks.
    direction : int
        BEFORE: of the rows up to the left row's time the latest, of those of equal time the last.
        AFTER: of the rows from the left row's time on the earliest, of those of equal time the
        first. EITHER: the nearer of the two, BEFORE if equally near (`gpu_windows.rules`).

    Returns
    -------
    int64[n]
        -1 where there is none.
    """
    rows = len(left_codes)
    sides = left_codes, left_ts, right_codes, right_ts, len(right_codes), lower, upper
    chosen = primitives.empty(rows, np.int64)
    if direction == AFTER:
        _latter(rows, *sides, chosen)
        return chosen
    _former(rows, *sides, chosen)
    if direction == BEFORE:
        return chosen
    later = primitives.empty(rows, np.int64)
    _latter(rows, *sides, later)
    _choose(rows, left_ts, right_ts, later, chosen)
    return chosen


@kernel((INTS, INTS, INTS, INTS, INT, INT, INT, INTS))
def _former(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, count: Any,
    lower: Any, upper: Any, out: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), left_codes.size, cuda.gridsize(1)):
        code, ts = left_codes[i], left_ts[i]
        latest = min(ts, rules.shifted(ts, upper))
        row = first_after(right_codes, right_ts, code, latest, 0, count) - 1
        known = row >= 0 and right_codes[row] == code
        out[i] = row if known and right_ts[row] >= rules.shifted(ts, lower) else -1


@kernel((INTS, INTS, INTS, INTS, INT, INT, INT, INTS))
def _latter(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, count: Any,
    lower: Any, upper: Any, out: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), left_codes.size, cuda.gridsize(1)):
        code, ts = left_codes[i], left_ts[i]
        earliest = max(ts, rules.shifted(ts, lower))
        row = first_from(right_codes, right_ts, code, earliest, 0, count)
        known = row < count and right_codes[row] == code
        out[i] = row if known and right_ts[row] <= rules.shifted(ts, upper) else -1


@kernel((INTS, INTS, INTS, INTS))
def _choose(left_ts: Any, right_ts: Any, later: Any, chosen: Any) -> None:
    """Choose between the row before, if any, in ``chosen`` and the one after."""
    for i in range(cuda.grid(1), left_ts.size, cuda.gridsize(1)):
        before, after = chosen[i], later[i]
        if before < 0 or (
            after >= 0
            and not rules.is_earlier_nearer(left_ts[i], right_ts[before], right_ts[after])
        ):
            chosen[i] = after
