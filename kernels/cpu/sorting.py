"""Sort rows by (code, time), or by one value, those of every key or of every window apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import INT, INTS, OUT_INTS
from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu import rules

Ints = NDArray[np.int64]

#: Moves a row, of all rows together, after which insertion is given up.
_MOVES_A_ROW = 2
#: Bits that a pass sorts by: a range of 142 years in microseconds takes four passes.
_DIGIT = 13


@kernel((INTS, INTS))
def are_sorted(codes: Any, ts: Any) -> Any:
    """Whether rows, both int64[n], are sorted by (code, ts)."""
    for i in range(1, codes.size):
        if rules.precedes(codes[i], ts[i], codes[i - 1], ts[i - 1]):
            return False
    return True


def order_by_time(codes: Ints, ts: Ints) -> Ints:
    """Return what sorts rows by (code, ts), equal ones in their order: int64[n].

    A radix sort, of ``codes`` alone if ``ts`` ascends. Where it nearly does, as on a stream, rows
    are then inserted into those of their key; else of the last digit of ``ts`` first.

    Parameters
    ----------
    codes, ts : int64[n]
        At least one row.
    """
    order = _sort_by(codes, np.arange(len(ts)))
    if _ascend(ts):
        return order
    sorted_codes, sorted_ts = codes[order], ts[order]
    if _insert(sorted_codes, sorted_ts, order, _MOVES_A_ROW * len(ts)):
        return order
    return _sort_by(codes, _sort_by(ts, np.arange(len(ts))))


@kernel((INTS, OUT_INTS, OUT_INTS, INT))
def _insert(codes: Any, ts: Any, order: Any, max_moves: Any) -> Any:
    """Sort the rows of each key, which stand together, by time; whether that took few moves."""
    moves = 0
    for i in range(1, codes.size):
        time, row, place = ts[i], order[i], i
        while place > 0 and codes[place - 1] == codes[i] and ts[place - 1] > time:
            ts[place], order[place] = ts[place - 1], order[place - 1]
            place -= 1
            moves += 1
            if moves > max_moves:
                return False
        ts[place], order[place] = time, row
    return True


@kernel((INTS,))
def _ascend(values: Any) -> Any:
    i = 1
    while i < values.size and values[i - 1] <= values[i]:
        i += 1
    return i >= values.size


def _sort_by(values: Ints, order: Ints) -> Ints:
    """Sort ``order`` by the values of its rows, equal ones in their order."""
    low, high = int(values.min()), int(values.max())
    keys, edges = values[order], np.empty((1 << _DIGIT) + 1, np.int64)
    other_keys, other = np.empty_like(keys), np.empty_like(order)
    for shift in range(0, (high - low).bit_length(), _DIGIT):
        _sort_by_digit(keys, order, low, shift, edges, other_keys, other)
        keys, order, other_keys, other = other_keys, other, keys, order
    return order


@kernel((INTS, INTS, INT, INT, OUT_INTS, OUT_INTS, OUT_INTS))
def _sort_by_digit(
    keys: Any, order: Any, low: Any, shift: Any, edges: Any, out_keys: Any, out: Any
) -> None:
    base, places = np.uint64(low), np.uint64(shift)  # differences may be beyond int64
    mask = np.uint64(edges.size - 2)
    for digit in range(edges.size):
        edges[digit] = 0
    for i in range(keys.size):
        edges[np.int64(((np.uint64(keys[i]) - base) >> places) & mask) + 1] += 1
    for digit in range(edges.size - 1):
        edges[digit + 1] += edges[digit]
    for i in range(keys.size):
        of_row = np.int64(((np.uint64(keys[i]) - base) >> places) & mask)
        out_keys[edges[of_row]] = keys[i]
        out[edges[of_row]] = order[i]
        edges[of_row] += 1


# ---- runs of rows, each by itself

#: Rows that are sorted by insertion before parts are merged.
_PART = 16


def sort_runs(begins: NDArray[np.int64], values: NDArray[np.int64]) -> None:
    """Sort every run of ``values`` in place; those that are sorted cost a look at each.

    Parameters
    ----------
    begins : int64[r + 1]
        Where every run begins, and where the last one ends.
    values : int64[n]
        Sorted in place, run by run.
    """
    if _are_runs_sorted(begins, values):
        return
    order = np.arange(len(values))
    order_runs(np.append(begins[1:], begins[-1]), values, order, np.empty_like(order))
    values[:] = values[order]


@kernel((INTS, INTS))
def _are_runs_sorted(begins: Any, values: Any) -> Any:
    for run in range(begins.size - 1):
        for i in range(begins[run] + 1, begins[run + 1]):
            if values[i - 1] > values[i]:
                return False
    return True


@kernel((INTS, INTS, OUT_INTS, OUT_INTS))
def order_runs(ends: Any, values: Any, order: Any, spare: Any) -> None:
    """Sort ``order`` by the values of its rows, run by run, stable.

    A merge sort that leaves alone what is sorted. ``ends`` says where the runs end.
    """
    begin = 0
    for run in range(ends.size - 1):
        end = ends[run]
        for low in range(begin, end, _PART):
            for i in range(low + 1, min(low + _PART, end)):
                row, at = order[i], i
                while at > low and values[order[at - 1]] > values[row]:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = row
        width = _PART
        while width < end - begin:
            for low in range(begin, end - width, 2 * width):
                middle, high = low + width, min(low + 2 * width, end)
                if values[order[middle - 1]] <= values[order[middle]]:
                    continue
                for i in range(low, middle):
                    spare[i] = order[i]
                left, right, at = low, middle, low
                while left < middle:
                    if right < high and values[order[right]] < values[spare[left]]:
                        order[at] = order[right]
                        right += 1
                    else:
                        order[at] = spare[left]
                        left += 1
                    at += 1
            width *= 2
        begin = end
