"""Assign rows to slices, a thread a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceBytes, DeviceInts
from gpu_windows.kernels.contract.rows import Limits
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.rules import slice_by_reciprocal, status_of
from gpu_windows.kernels.cuda.types import BOOLS, BYTES, GRID, INT, INTS, RECIPROCAL
from gpu_windows.rules import NULL, OUT_OF_RANGE, Grid, earliest_kept, reciprocal


@kernel((INTS, INT, BOOLS, GRID, RECIPROCAL, INT, INT, INT, INTS, BYTES))
def _assign(
    ts: Any, nullable: Any, valid: Any, grid: Any, slide: Any, low: Any, high: Any, kept: Any,
    slices: Any, status: Any,
) -> None:  # fmt: skip
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
            state = status_of(t, index, kept, grid)
        slices[i] = index
        status[i] = state
        i += step


def assign_slices(
    ts: DeviceInts, valid: DeviceBools, grid: Grid, limits: Limits,
    slices: DeviceInts, status: DeviceBytes,
) -> None:  # fmt: skip
    """See `contract.rows.Assign.assign_slices`."""
    nullable = int(len(valid) > 0)
    kept = earliest_kept(limits.lateness, limits.watermark, grid)
    _assign(
        len(ts), ts, nullable, valid, grid, reciprocal(grid.slide), limits.low, limits.high, kept,
        slices, status,
    )  # fmt: skip
