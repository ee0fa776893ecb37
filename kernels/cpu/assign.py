"""Assign rows to slices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import (
    BOOLS,
    GRID,
    INT,
    INTS,
    OUT_BYTES,
    OUT_INTS,
    RECIPROCAL,
    UNITS,
)
from gpu_windows.kernels.compile import inner, kernel
from gpu_windows.kernels.contract.rows import Assigned, Limits, Seen
from gpu_windows.kernels.cpu.rules import (
    slice_by_reciprocal,
    slice_start,
    status_of,
    tick_of,
    unit_by_reciprocal,
)
from gpu_windows.rules import (
    ACCEPTED,
    LONG_MAX,
    LONG_MIN,
    NULL,
    OUT_OF_RANGE,
    Grid,
    Units,
    first_tick_on_time,
    reciprocal,
)

#: Rows that are looked at together: most blocks lie within one slice.
_BLOCK = 256


@inner(inline="always")
def _all_within(ts: Any, begin: Any, end: Any, first: Any, last: Any) -> Any:
    outside = 0
    for i in range(begin, end):
        outside += (ts[i] < first) | (ts[i] > last)
    return outside == 0


@kernel((INTS, BOOLS, GRID, RECIPROCAL, INT, INT, INT, OUT_INTS, OUT_BYTES))
def _assign(
    ts: Any, valid: Any, grid: Any, slide: Any, low: Any, high: Any, earliest: Any,
    slices: Any, status: Any,
) -> Any:  # fmt: skip
    """Return the number of rows that are accepted, and their least and greatest slice."""
    accepted, min_slice, max_slice = 0, LONG_MAX, LONG_MIN
    first, last = 1, 0  # ticks of one slice and status: rows near in time share them
    index, state = 0, ACCEPTED
    for block in range(0, ts.size, _BLOCK):
        stop = min(block + _BLOCK, ts.size)
        if valid.size == 0 and _all_within(ts, block, stop, first, last):
            slices[block:stop] = index
            status[block:stop] = state
            accepted += stop - block if state == ACCEPTED else 0
            continue
        for i in range(block, stop):
            t = ts[i]
            if valid.size > 0 and not valid[i]:
                slices[i], status[i] = 0, NULL
                continue
            if t < first or t > last:
                if t < low or t > high:
                    slices[i], status[i] = 0, OUT_OF_RANGE
                    continue
                index = slice_by_reciprocal(t, grid, slide)
                state = status_of(t, index, earliest, grid)
                first = max(slice_start(index, grid), low)
                last = min(slice_start(index + 1, grid) - 1, high)
                if t < earliest:  # a gap may hold late rows and others
                    last = min(last, earliest - 1)
                else:
                    first = max(first, earliest)
                if state == ACCEPTED:
                    min_slice, max_slice = min(min_slice, index), max(max_slice, index)
            slices[i] = index
            status[i] = state
            accepted += state == ACCEPTED
    return accepted, min_slice, max_slice


def assign_slices(
    ts: NDArray[np.int64], valid: NDArray[np.bool_], grid: Grid, limits: Limits
) -> Assigned:
    """See `contract.rows.Assign.assign_slices`."""
    slices, status = np.empty(len(ts), np.int64), np.empty(len(ts), np.int8)
    earliest = first_tick_on_time(limits.lateness, limits.watermark, grid)
    slide = reciprocal(grid.slide)
    accepted, min_slice, max_slice = _assign(
        ts, valid, grid, slide, limits.low, limits.high, earliest, slices, status
    )
    return Assigned(slices, status, lambda: Seen(len(ts) - accepted, min_slice, max_slice))


@kernel((INTS, UNITS, RECIPROCAL, OUT_INTS))
def _count_units(ts: Any, units: Any, length: Any, numbers: Any) -> None:
    low, high = tick_of(units.first, units), tick_of(units.last, units) - 1
    first, last, number = 1, 0, 0  # ticks of one unit: rows near in time share them
    for block in range(0, ts.size, _BLOCK):
        stop = min(block + _BLOCK, ts.size)
        if _all_within(ts, block, stop, first, last):
            numbers[block:stop] = number
            continue
        for i in range(block, stop):
            numbers[i] = unit_by_reciprocal(min(max(ts[i], low), high), units, length)
        number = numbers[stop - 1]
        first, last = tick_of(number, units), tick_of(number + 1, units) - 1


def count_units(ts: NDArray[np.int64], units: Units) -> NDArray[np.int64]:
    """See `contract.rows.Assign.count_units`."""
    numbers = np.empty(len(ts), np.int64)
    _count_units(ts, units, reciprocal(units.length), numbers)
    return numbers
