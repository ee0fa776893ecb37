"""Assign rows to slices, a thread a row."""

from __future__ import annotations

from typing import Any

from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceBytes, DeviceInts
from gpu_windows.kernels.contract.rows import Assigned, Limits
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.reach import PLACES, note, places
from gpu_windows.kernels.cuda.rules import slice_of, status_of
from gpu_windows.kernels.cuda.types import BOOLS, BYTES, GRID, INT, INTS
from gpu_windows.rules import ACCEPTED, LONG_MAX, LONG_MIN, NULL, OUT_OF_RANGE, Grid


@kernel((INTS, INT, BOOLS, GRID, INT, INT, INT, INT, INTS, BYTES, INTS, INTS, INTS))
def _assign(
    ts: Any, nullable: Any, valid: Any, grid: Any, low: Any, high: Any, lateness: Any,
    watermark: Any, slices: Any, status: Any, rejections: Any, lows: Any, highs: Any,
) -> None:  # fmt: skip
    rejected, least, greatest = 0, LONG_MAX, LONG_MIN
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
        if state == ACCEPTED:
            least, greatest = min(least, index), max(greatest, index)
        else:
            rejected += 1
    if cuda.grid(1) < ts.size:
        note(cuda.grid(1), least, greatest, lows, highs)
        cuda.atomic.add(rejections, cuda.grid(1) % rejections.size, rejected)


def assign_slices(
    ts: DeviceInts, valid: DeviceBools, grid: Grid, limits: Limits,
    slices: DeviceInts, status: DeviceBytes,
) -> Assigned:  # fmt: skip
    """See `contract.rows.Assign.assign_slices`."""
    if len(ts) == 0:
        return Assigned(0, LONG_MAX, LONG_MIN)
    nullable, rejections, reach = int(len(valid) > 0), primitives.full(PLACES, 0), places()
    _assign(len(ts), ts, nullable, valid, grid, *limits, slices, status, rejections, *reach)
    least, greatest, rejected = primitives.summary(*reach, rejections)
    return Assigned(rejected, least, greatest)
