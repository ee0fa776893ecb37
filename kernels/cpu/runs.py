"""Sort runs: the rows of every key, or of every window, each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.cpu.types import INTS, OUT_INTS

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
    if _are_sorted(begins, values):
        return
    order = np.arange(len(values))
    order_runs(np.append(begins[1:], begins[-1]), values, order, np.empty_like(order))
    values[:] = values[order]


@kernel((INTS, INTS))
def _are_sorted(begins: Any, values: Any) -> Any:
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
