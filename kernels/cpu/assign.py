"""Assign rows to slices."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.contract.rows import Assigned, Limits
from gpu_windows.kernels.cpu.rules import is_gap, slice_of, slice_start, status_of
from gpu_windows.kernels.cpu.types import BOOLS, GRID, INT, INTS, OUT_BYTES, OUT_INTS
from gpu_windows.rules import ACCEPTED, LONG_MAX, LONG_MIN, NULL, OUT_OF_RANGE, Grid

#: Rows that are looked at together: most blocks lie within one slice.
_BLOCK = 256


@numba.njit(inline="always")
def _all_within(ts: Any, begin: Any, end: Any, low: Any, high: Any) -> Any:
    outside = 0
    for i in range(begin, end):
        outside += (ts[i] < low) | (ts[i] > high)
    return outside == 0


@kernel((INTS, BOOLS, GRID, INT, INT, INT, INT, OUT_INTS, OUT_BYTES))
def _assign(
    ts: Any, valid: Any, grid: Any, low: Any, high: Any, lateness: Any, watermark: Any,
    slices: Any, status: Any,
) -> Any:  # fmt: skip
    """Return the number of rows that are not accepted, and the least and greatest slice."""
    rejected, least, greatest = 0, LONG_MAX, LONG_MIN
    begin, end = 1, 0  # rows near in time share a slice: keep the last one
    index, state = 0, ACCEPTED
    for block in range(0, ts.size, _BLOCK):
        stop = min(block + _BLOCK, ts.size)
        if valid.size == 0 and _all_within(ts, block, stop, max(begin, low), min(end - 1, high)):
            slices[block:stop] = index
            status[block:stop] = state
            if state == ACCEPTED:
                least, greatest = min(least, index), max(greatest, index)
            else:
                rejected += stop - block
            continue
        for i in range(block, stop):
            t = ts[i]
            slices[i] = 0
            if valid.size > 0 and not valid[i]:
                status[i] = NULL
            elif t < low or t > high:
                status[i] = OUT_OF_RANGE
            else:
                if t < begin or t >= end:
                    index = slice_of(t, grid)
                    begin, end = slice_start(index, grid), slice_start(index + 1, grid)
                    state = status_of(t, index, lateness, watermark, grid)
                    if is_gap(index, grid):
                        end = t + 1  # in a gap, lateness is the row's own
                        begin = t
                slices[i] = index
                status[i] = state
            if status[i] == ACCEPTED:
                least, greatest = min(least, index), max(greatest, index)
            else:
                rejected += 1
    return rejected, least, greatest


def assign_slices(
    ts: NDArray[np.int64], valid: NDArray[np.bool_], grid: Grid, limits: Limits,
    slices: NDArray[np.int64], status: NDArray[np.int8],
) -> Assigned:  # fmt: skip
    """See `contract.rows.Assign.assign_slices`."""
    return Assigned(*_assign(ts, valid, grid, *limits, slices, status))
