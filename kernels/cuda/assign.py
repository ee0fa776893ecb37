"""Assign rows to slices, a thread a row."""

from __future__ import annotations

from typing import Any

from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceBytes, DeviceInts
from gpu_windows.kernels.contract.rows import Limits
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.rules import slice_of, status_of
from gpu_windows.kernels.cuda.types import BOOLS, BYTES, GRID, INT, INTS
from gpu_windows.rules import NULL, OUT_OF_RANGE, Grid


@kernel((INTS, INT, BOOLS, GRID, INT, INT, INT, INT, INTS, BYTES))
def _assign(
    ts: Any, nullable: Any, valid: Any, grid: Any, low: Any, high: Any, lateness: Any,
    watermark: Any, slices: Any, status: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), ts.size, cuda.gridsize(1)):
        t = ts[i]
        index = 0
        if nullable and not valid[i]:
            state = NULL
        elif t < low or t > high:
            state = OUT_OF_RANGE
        else:
            index = slice_of(t, grid)
            state = status_of(t, index, lateness, watermark, grid)
        slices[i] = index
        status[i] = state


def assign_slices(
    ts: DeviceInts, valid: DeviceBools, grid: Grid, limits: Limits,
    slices: DeviceInts, status: DeviceBytes,
) -> None:  # fmt: skip
    """See `contract.rows.Assign.assign_slices`."""
    nullable = int(len(valid) > 0)
    _assign(len(ts), ts, nullable, valid, grid, *limits, slices, status)
