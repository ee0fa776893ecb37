"""Rows and windows of slices that count units (`gpu_windows.rules.slicing`)."""

from __future__ import annotations

import numpy as np

from gpu_windows import rules
from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceInts
from gpu_windows.kernels.contract.rows import Limits
from gpu_windows.kernels.contract.windows import Windows
from gpu_windows.operators.columns.numeric import NumericColumn
from gpu_windows.rules import Grid, Units


def units_on_device(
    backend: Backend, times: NumericColumn, units: Units
) -> tuple[DeviceInts, DeviceBools]:
    """Return the units that hold times, and which times are there, in the back end's memory."""
    ts, valid = backend.to_device(times.values), backend.to_device(times.valid)
    return (ts if units.length == 1 else backend.assign.count_units(ts, units)), valid


def limits_of(grid: Grid, units: Units, watermark: int, lateness: int = 0) -> Limits:
    """Return which units rows may be in.

    Parameters
    ----------
    grid : Grid
    units : Units
    watermark, lateness : int
        In ticks.
    """
    usable = rules.earliest_unit(grid, units), rules.latest_unit(grid, units)
    if units.length == 1:
        return Limits(*usable, lateness, watermark)
    return Limits(*usable, 0, rules.last_complete_unit(watermark - lateness, units))


def drop_repeated(backend: Backend, found: Windows, grid: Grid, units: Units) -> Windows:
    """Return windows without the cumulative ones that have the bounds of the one before."""
    if grid.steps == 0:
        return found
    some = ~rules.is_repeated(backend.to_host(found.numbers), grid, units)
    return (
        found if some.all() else found.take(backend.to_device(np.flatnonzero(some)), backend.take)
    )
