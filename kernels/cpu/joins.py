"""Match the rows of two sides by key and time, in one walk along both.

A search begins where that of the row before ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.contract.joins import Side
from gpu_windows.kernels.cpu import rules, search, sorting
from gpu_windows.kernels.cpu.types import INT, INTS, OUT_BOOLS, OUT_INTS
from gpu_windows.rules import AFTER, BEFORE

Ints = NDArray[np.int64]


def sorted_by_time(codes: Ints, ts: Ints) -> Ints | None:
    """See `contract.joins.Joins.sorted_by_time`."""
    return None if sorting.are_sorted(codes, ts) else sorting.order_by_time(codes, ts)


# ---- all within bounds


def range_bounds(left: Side, right: Side, lower: int, upper: int) -> tuple[Ints, Ints]:
    """See `contract.joins.Joins.range_bounds`."""
    first, last = np.empty(len(left.codes), np.int64), np.empty(len(left.codes), np.int64)
    _range_bounds(*left, *right, lower, upper, first, last)
    return first, last


@kernel((INTS, INTS, INTS, INTS, INT, INT, OUT_INTS, OUT_INTS))
def _range_bounds(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, lower: Any, upper: Any,
    first: Any, last: Any,
) -> None:  # fmt: skip
    begin, end = 0, 0
    for i in range(left_codes.size):
        low, high = rules.add_saturating(left_ts[i], lower), rules.add_saturating(left_ts[i], upper)
        begin = search.first_from(right_codes, right_ts, left_codes[i], low, begin)
        end = search.first_after(right_codes, right_ts, left_codes[i], high, max(begin, end))
        first[i] = begin
        last[i] = end


def has_match(first: Ints, last: Ints) -> NDArray[np.bool_]:
    """See `contract.joins.Joins.has_match`."""
    return first < last


def mark_covered(first: Ints, last: Ints, count: int) -> NDArray[np.bool_]:
    """See `contract.joins.Joins.mark_covered`."""
    found = np.zeros(count, np.bool_)
    _cover(first, last, found)
    return found


@kernel((INTS, INTS, OUT_BOOLS))
def _cover(first: Any, last: Any, found: Any) -> None:
    done = 0
    for i in range(first.size):
        for place in range(max(first[i], done), last[i]):
            found[place] = True
        done = max(done, last[i])


# ---- pairs


def pair_offsets(first: Ints, last: Ints) -> Ints:
    """See `contract.joins.Joins.pair_offsets`."""
    offsets = np.empty(len(first) + 1, np.int64)
    _pair_offsets(first, last, offsets)
    return offsets


@kernel((INTS, INTS, OUT_INTS))
def _pair_offsets(first: Any, last: Any, offsets: Any) -> None:
    pairs = 0
    for i in range(first.size):
        offsets[i] = pairs
        pairs += last[i] - first[i]
    offsets[first.size] = pairs


def expand_pairs(first: Ints, offsets: Ints, begin: int, end: int) -> tuple[Ints, Ints]:
    """See `contract.joins.Joins.expand_pairs`."""
    left, right = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
    _expand_pairs(first, offsets, begin, end, left, right)
    return left, right


@kernel((INTS, INTS, INT, INT, OUT_INTS, OUT_INTS))
def _expand_pairs(first: Any, offsets: Any, begin: Any, end: Any, left: Any, right: Any) -> None:
    row = search.owner(offsets, begin)
    pair = begin
    while pair < end:
        stop = min(offsets[row + 1], end)
        place = first[row] - offsets[row]
        for p in range(pair, stop):
            left[p - begin] = row
            right[p - begin] = place + p
        pair = stop
        row += 1


# ---- the nearest


def nearest(left: Side, right: Side, lower: int, upper: int, direction: int) -> Ints:
    """See `contract.joins.Joins.nearest`."""
    sides = *left, *right, lower, upper
    out = np.empty(len(left.codes), np.int64)
    if direction == AFTER:
        _find_later(*sides, out)
        return out
    _find_earlier(*sides, out)
    if direction == BEFORE:
        return out
    later = np.empty(len(left.codes), np.int64)
    _find_later(*sides, later)
    _choose(left.ts, right.ts, later, out)
    return out


@kernel((INTS, INTS, INTS, INTS, INT, INT, OUT_INTS))
def _find_earlier(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, lower: Any, upper: Any, out: Any
) -> None:
    end = 0
    for i in range(left_codes.size):
        code, ts = left_codes[i], left_ts[i]
        latest = min(ts, rules.add_saturating(ts, upper))
        end = search.first_after(right_codes, right_ts, code, latest, end)
        row = end - 1
        if (
            row >= 0
            and right_codes[row] == code
            and right_ts[row] >= rules.add_saturating(ts, lower)
        ):
            out[i] = row
        else:
            out[i] = -1


@kernel((INTS, INTS, INTS, INTS, INT, INT, OUT_INTS))
def _find_later(
    left_codes: Any, left_ts: Any, right_codes: Any, right_ts: Any, lower: Any, upper: Any, out: Any
) -> None:
    row = 0
    for i in range(left_codes.size):
        code, ts = left_codes[i], left_ts[i]
        earliest = max(ts, rules.add_saturating(ts, lower))
        row = search.first_from(right_codes, right_ts, code, earliest, row)
        is_found = row < right_codes.size and right_codes[row] == code
        out[i] = row if is_found and right_ts[row] <= rules.add_saturating(ts, upper) else -1


@kernel((INTS, INTS, INTS, OUT_INTS))
def _choose(left_ts: Any, right_ts: Any, later: Any, out: Any) -> None:
    """Choose between the row before, if any, in ``out`` and the one after."""
    for i in range(left_ts.size):
        before, after = out[i], later[i]
        if before < 0 or (
            after >= 0
            and not rules.is_earlier_nearer(left_ts[i], right_ts[before], right_ts[after])
        ):
            out[i] = after
