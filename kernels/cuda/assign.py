"""Assign rows to slices, a thread a row.

The kernel divides by a multiplication with the reciprocal of the slide
(`gpu_windows.rules.division`), and finds late rows by one tick
(`gpu_windows.rules.first_tick_on_time`): so it takes 28 registers on sm_90, where
it took 38. It counts the rows that it did not accept: the statuses of rows leave the device only
where there are some.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceInts
from gpu_windows.kernels.contract.rows import Assigned, Limits, Seen
from gpu_windows.kernels.cuda import primitives, reach
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.rules import slice_by_reciprocal, status_of, unit_by_reciprocal
from gpu_windows.kernels.cuda.types import BOOLS, BYTES, GRID, INT, INTS, RECIPROCAL, UNITS
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
    tick_of,
)


@kernel((INTS, INT, BOOLS, GRID, RECIPROCAL, INT, INT, INT, INTS, BYTES, INTS))
def _assign(
    ts: Any, nullable: Any, valid: Any, grid: Any, slide: Any, low: Any, high: Any, earliest: Any,
    slices: Any, status: Any, marks: Any,
) -> None:  # fmt: skip
    rejected, smallest, greatest = 0, LONG_MAX, LONG_MIN
    # An unsigned index cannot count from the end, and a while loop does not divide to begin with.
    i, count, step = np.uint64(cuda.grid(1)), np.uint64(ts.size), np.uint64(cuda.gridsize(1))
    while i < count:
        t = ts[i]
        index = 0
        if nullable and not valid[i]:
            state = NULL
        elif t < low or t > high:
            state = OUT_OF_RANGE
        else:
            index = slice_by_reciprocal(t, grid, slide)
            state = status_of(t, index, earliest, grid)
        slices[i] = index
        status[i] = state
        if state == ACCEPTED:
            smallest, greatest = min(smallest, index), max(greatest, index)
        else:
            rejected += 1
        i += step
    reach.mark(smallest, greatest, rejected, marks)


def assign_slices(ts: DeviceInts, valid: DeviceBools, grid: Grid, limits: Limits) -> Assigned:
    """See `contract.rows.Assign.assign_slices`."""
    count, nullable = len(ts), int(len(valid) > 0)
    marked = reach.mark_count(count)
    slices, marks, status = primitives.empties(
        (count, np.int64), (marked, np.int64), (count, np.int8)
    )
    if count == 0:
        return Assigned(slices, status, lambda: Seen(0, LONG_MAX, LONG_MIN))
    earliest = first_tick_on_time(limits.lateness, limits.watermark, grid)
    _assign(
        count, ts, nullable, valid, grid, reciprocal(grid.slide), limits.low, limits.high,
        earliest, slices, status, marks,
    )  # fmt: skip

    def summarize() -> Seen:
        smallest, greatest, rejected = reach.read_marks(marks)
        return Seen(rejected, smallest, greatest)

    return Assigned(slices, status, summarize, marks)


@kernel((INTS, UNITS, RECIPROCAL, INT, INT, INTS))
def _count_units(ts: Any, units: Any, length: Any, low: Any, high: Any, numbers: Any) -> None:
    for i in range(cuda.grid(1), ts.size, cuda.gridsize(1)):
        numbers[i] = unit_by_reciprocal(min(max(ts[i], low), high), units, length)


def count_units(ts: DeviceInts, units: Units) -> DeviceInts:
    """See `contract.rows.Assign.count_units`."""
    numbers = primitives.empty(len(ts), np.int64)
    low, high = int(tick_of(units.first, units)), int(tick_of(units.last, units)) - 1
    there = units._replace(
        ticks=primitives.to_device(units.ticks),
        tick_buckets=primitives.to_device(units.tick_buckets),
        numbers=primitives.to_device(units.numbers),
        lasts=primitives.to_device(units.lasts),
        number_buckets=primitives.empty(0, np.int64),  # for the other direction
    )
    _count_units(len(ts), ts, there, reciprocal(units.length), low, high, numbers)
    return numbers
