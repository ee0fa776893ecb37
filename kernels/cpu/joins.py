"""Match the rows of two sides by key and time, in one walk along both.

A search begins where that of the row before ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import INT, INTS, INTS32, OUT_BOOLS, OUT_INTS, OUT_INTS32
from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.contract.joins import Side, SortedRows
from gpu_windows.kernels.cpu import rules, search, sorting
from gpu_windows.rules import AFTER, BEFORE

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]


def sort(codes: Ints, ts: Ints) -> SortedRows:
    """See `contract.joins.Joins.sort`."""
    if sorting.are_sorted(codes, ts):
        return SortedRows(np.arange(len(codes), dtype=np.int32), codes, ts, were_sorted=True)
    order = sorting.order_by_time(codes, ts)
    return SortedRows(order.astype(np.int32), codes[order], ts[order], were_sorted=False)


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


def has_match(numbers: Ints32, first: Ints, last: Ints) -> NDArray[np.bool_]:
    """See `contract.joins.Joins.has_match`."""
    found = np.empty(len(numbers), np.bool_)
    found[numbers] = first < last
    return found


def mark_covered(numbers: Ints32, first: Ints, last: Ints) -> NDArray[np.bool_]:
    """See `contract.joins.Joins.mark_covered`."""
    found = np.zeros(len(numbers), np.bool_)
    _cover(numbers, first, last, found)
    return found


@kernel((INTS32, INTS, INTS, OUT_BOOLS))
def _cover(numbers: Any, first: Any, last: Any, found: Any) -> None:
    done = 0
    for i in range(first.size):
        for place in range(max(first[i], done), last[i]):
            found[numbers[place]] = True
        done = max(done, last[i])


# ---- pairs


def pair_offsets(first: Ints, last: Ints) -> tuple[Ints, int]:
    """See `contract.joins.Joins.pair_offsets`."""
    offsets = np.empty(len(first) + 1, np.int64)
    _pair_offsets(first, last, offsets)
    return offsets, int(offsets[-1])


@kernel((INTS, INTS, OUT_INTS))
def _pair_offsets(first: Any, last: Any, offsets: Any) -> None:
    pairs = 0
    for i in range(first.size):
        offsets[i] = pairs
        pairs += last[i] - first[i]
    offsets[first.size] = pairs


def expand_pairs(
    left: Ints32, right: Ints32, first: Ints, offsets: Ints, begin: int, end: int
) -> tuple[Ints32, Ints32]:
    """See `contract.joins.Joins.expand_pairs`."""
    i, j = np.empty(end - begin, np.int32), np.empty(end - begin, np.int32)
    _expand_pairs(left, right, first, offsets, begin, end, i, j)
    return i, j


@kernel((INTS32, INTS32, INTS, INTS, INT, INT, OUT_INTS32, OUT_INTS32))
def _expand_pairs(
    left: Any, right: Any, first: Any, offsets: Any, begin: Any, end: Any, out_left: Any,
    out_right: Any,
) -> None:  # fmt: skip
    row = search.owner(offsets, begin)
    pair = begin
    while pair < end:
        stop = min(offsets[row + 1], end)
        place = first[row] - offsets[row]
        for p in range(pair, stop):
            out_left[p - begin] = left[row]
            out_right[p - begin] = right[place + p]
        pair = stop
        row += 1


# ---- the nearest


def nearest(left: SortedRows, right: SortedRows, lower: int, upper: int, direction: int) -> Ints:
    """See `contract.joins.Joins.nearest`."""
    sides = *left.side, *right.side, lower, upper
    earlier, later = np.full((2, len(left.codes)), -1)
    if direction != AFTER:
        _find_earlier(*sides, earlier)
    if direction != BEFORE:
        _find_later(*sides, later)
    out = np.empty(len(earlier), np.int64)
    _choose(left.numbers, left.ts, right.numbers, right.ts, earlier, later, out)
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


@kernel((INTS32, INTS, INTS32, INTS, INTS, INTS, OUT_INTS))
def _choose(
    left_numbers: Any, left_ts: Any, right_numbers: Any, right_ts: Any, earlier: Any, later: Any,
    out: Any,
) -> None:  # fmt: skip
    """Choose between the row before, if any, and the one after."""
    for i in range(left_ts.size):
        row, after = earlier[i], later[i]
        if row < 0 or (
            after >= 0 and not rules.is_earlier_nearer(left_ts[i], right_ts[row], right_ts[after])
        ):
            row = after
        out[left_numbers[i]] = right_numbers[row] if row >= 0 else -1
