"""Group spans of time of the same key that intersect or touch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu.grouping import Groups
from gpu_windows.kernels.cpu.types import INTS, OUT_CELLS, OUT_INTS

#: Key codes a row up to which counting them is cheaper than comparing rows.
_CODES_PER_ROW = 4
#: Rows that are sorted by insertion before runs are merged.
_RUN = 16


def group(
    codes: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64], key_count: int
) -> Groups:
    """Group spans [start, end) by key and session; groups are sorted by (code, start).

    Parameters
    ----------
    codes : int64[n]
        Key codes, in [0, key_count).
    starts, ends : int64[n]
        The spans. Those that intersect or touch are one session.
    key_count : int
        Number of key codes.

    Returns
    -------
    Groups
        ``slices`` are the starts of the sessions; reduce ``ends`` by GREATEST for their ends.
    """
    count = len(codes)
    cells = np.empty(count, np.int32)
    heads = np.empty(count, np.int64)
    rows = np.zeros(count, np.int64)
    order = _order(codes, starts, key_count)
    found = _sessions(order, codes, starts, ends, cells, heads, rows)
    heads = heads[:found]
    return Groups(codes[heads], starts[heads], rows[:found].copy(), cells, found, None)


def _order(
    codes: NDArray[np.int64], starts: NDArray[np.int64], key_count: int
) -> NDArray[np.int64]:
    if key_count > _CODES_PER_ROW * len(codes):
        return np.lexsort((starts, codes))
    order, spare = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    edges = np.zeros(key_count + 1, np.int64)
    _by_code(codes, edges, order)
    _by_start(edges, starts, order, spare)
    return order


def sort_runs(begins: NDArray[np.int64], values: NDArray[np.int64]) -> None:
    """Sort every run of ``values`` in place; those that are sorted cost a look at each.

    Parameters
    ----------
    begins : int64[r + 1]
        Where every run begins, and where the last one ends.
    values : int64[n]
    """
    if _are_sorted(begins, values):
        return
    order = np.arange(len(values))
    _by_start(np.append(begins[1:], begins[-1]), values, order, np.empty_like(order))
    values[:] = values[order]


@kernel((INTS, INTS))
def _are_sorted(begins: Any, values: Any) -> Any:
    for run in range(begins.size - 1):
        for i in range(begins[run] + 1, begins[run + 1]):
            if values[i - 1] > values[i]:
                return False
    return True


@kernel((INTS, OUT_INTS, OUT_INTS))
def _by_code(codes: Any, edges: Any, order: Any) -> None:
    """Sort rows by code, stable; ``edges[code]`` becomes the end of the code's rows."""
    for i in range(codes.size):
        edges[codes[i] + 1] += 1
    for code in range(edges.size - 1):
        edges[code + 1] += edges[code]
    for i in range(codes.size):
        order[edges[codes[i]]] = i
        edges[codes[i]] += 1


@kernel((INTS, INTS, OUT_INTS, OUT_INTS))
def _by_start(ends: Any, starts: Any, order: Any, spare: Any) -> None:
    """Sort the rows of every code by start, stable: merge sort that leaves sorted runs alone."""
    begin = 0
    for code in range(ends.size - 1):
        end = ends[code]
        for low in range(begin, end, _RUN):
            for i in range(low + 1, min(low + _RUN, end)):
                row, at = order[i], i
                while at > low and starts[order[at - 1]] > starts[row]:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = row
        width = _RUN
        while width < end - begin:
            for low in range(begin, end - width, 2 * width):
                middle, high = low + width, min(low + 2 * width, end)
                if starts[order[middle - 1]] <= starts[order[middle]]:
                    continue
                for i in range(low, middle):
                    spare[i] = order[i]
                left, right, at = low, middle, low
                while left < middle:
                    if right < high and starts[order[right]] < starts[spare[left]]:
                        order[at] = order[right]
                        right += 1
                    else:
                        order[at] = spare[left]
                        left += 1
                    at += 1
            width *= 2
        begin = end


@kernel((INTS, INTS, INTS, INTS, OUT_CELLS, OUT_INTS, OUT_INTS))
def _sessions(
    order: Any, codes: Any, starts: Any, ends: Any, cells: Any, heads: Any, rows: Any
) -> Any:
    """Number the session of every row; return how many there are."""
    session, code, end = -1, -1, 0
    for i in range(order.size):
        row = order[i]
        if codes[row] != code or starts[row] > end:
            session += 1
            heads[session] = row
            code, end = codes[row], ends[row]
        else:
            end = max(end, ends[row])
        cells[row] = session
        rows[session] += 1
    return session + 1
