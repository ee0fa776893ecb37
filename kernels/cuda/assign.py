"""Assign rows to slices, a thread a row."""

from __future__ import annotations

from typing import Any

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
    ts: Any, valid: Any, grid: Grid, low: int, high: int, lateness: int, watermark: int,
    slices: Any, status: Any,
) -> None:  # fmt: skip
    """Write the slice and the status of every row.

    Parameters
    ----------
    ts : int64[n]
        Timestamps, in ticks.
    valid : bool[n] or bool[0]
        False for a null timestamp; empty if there is none.
    grid : Grid
    low, high : int64
        Timestamps outside [low, high] are OUT_OF_RANGE.
    lateness, watermark : int64
        Allowed lateness and the current watermark, in ticks.
    slices : int64[n], out
        0 where the status is NULL or OUT_OF_RANGE.
    status : int8[n], out
        ACCEPTED, LATE, GAP, OUT_OF_RANGE or NULL.
    """
    nullable = int(len(valid) > 0)
    _assign(len(ts), ts, nullable, valid, grid, low, high, lateness, watermark, slices, status)
