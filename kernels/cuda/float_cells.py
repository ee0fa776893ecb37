"""Floats folded into the cells of a batch, as integers: no order of rows changes a result.

A sum is that of the floats as multiples of a unit of their cell (`gpu_windows.rules.fixed_point`):
the rows are read once for the greatest exponent of every cell, and once more to be added. Of the
least and the greatest, floats are integers of the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceFloats, DeviceInts
from gpu_windows.kernels.cuda import primitives, replicas, rules
from gpu_windows.kernels.cuda.compiler import cuda, load_relaxed
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.types import BOOLS, FLOATS, INT, INTS, INTS32
from gpu_windows.rules import ADD, MAX, MIN


def fold(
    how: int, of_rows: Any, size: int, occupied: DeviceInts, values: DeviceFloats,
    valid: DeviceBools,
) -> DeviceFloats:  # fmt: skip
    """Return the valid values of every occupied cell folded.

    Parameters
    ----------
    how : int
        ADD, MIN or MAX (`gpu_windows.rules`).
    of_rows : int32[n]
        The cell of every row; n is less than 2**31.
    size : int
        Number of cells.
    occupied : int64[count]
        Those wanted.
    values : float64[n]
    valid : bool[n] or bool[0]
        Which values count; empty: all.

    Returns
    -------
    float64[count]
    """
    rows = of_rows, values.view(np.int64), int(len(valid) > 0), valid
    if how == ADD:
        return _sum(size, occupied, *rows)
    return _extreme(how, size, occupied, *rows)


def _sum(size: int, occupied: Any, cells: Any, bits: Any, masked: int, valid: Any) -> Any:
    places, table = replicas.table(MAX, size)
    _exponents(len(cells), cells, places, bits, masked, valid, table)
    exponents = replicas.fold_replicas(MAX, places, table)
    (places, high), (_, middle), (_, low) = (replicas.table(ADD, size) for _ in range(3))
    words = high, middle, low
    _add_units(len(cells), cells, places, exponents, bits, masked, valid, *words)
    sums = (replicas.fold_replicas(ADD, places, table) for table in words)
    out = primitives.empty(len(occupied), np.float64)
    _sums(len(out), occupied, exponents, *sums, out)
    return out


@kernel((INTS32, INT, INTS, INT, BOOLS, INTS))
def _exponents(cells: Any, replicas: Any, bits: Any, masked: Any, valid: Any, table: Any) -> None:
    replica = cuda.grid(1) % replicas
    for i in range(cuda.grid(1), cells.size, cuda.gridsize(1)):
        if masked and not valid[i]:
            continue
        place, exponent = cells[i] * replicas + replica, rules.exponent_of(bits[i])
        if exponent > load_relaxed(table, place):
            cuda.atomic.max(table, place, exponent)


@kernel((INTS32, INT, INTS, INTS, INT, BOOLS, INTS, INTS, INTS))
def _add_units(
    cells: Any, replicas: Any, exponents: Any, bits: Any, masked: Any, valid: Any,
    highs: Any, middles: Any, lows: Any,
) -> None:  # fmt: skip
    replica = cuda.grid(1) % replicas
    for i in range(cuda.grid(1), cells.size, cuda.gridsize(1)):
        if masked and not valid[i]:
            continue
        high, middle, low = rules.in_units(bits[i], exponents[cells[i]])
        place = cells[i] * replicas + replica
        # floats of few digits, or near the greatest of their cell, have words that are 0
        if high != 0:
            cuda.atomic.add(highs, place, high)
        if middle != 0:
            cuda.atomic.add(middles, place, middle)
        if low != 0:
            cuda.atomic.add(lows, place, low)


@kernel((INTS, INTS, INTS, INTS, INTS, FLOATS))
def _sums(occupied: Any, exponents: Any, highs: Any, middles: Any, lows: Any, out: Any) -> None:
    for g in range(cuda.grid(1), occupied.size, cuda.gridsize(1)):
        cell = occupied[g]
        # where no value is valid there is no exponent, and nothing to round
        out[g] = rules.from_units(highs[cell], middles[cell], lows[cell], max(exponents[cell], 1))


def _extreme(
    how: int, size: int, occupied: Any, cells: Any, bits: Any, masked: int, valid: Any
) -> Any:
    places, table = replicas.table(how, size)
    _fold_in_order(len(cells), how, cells, places, bits, masked, valid, table)
    out = primitives.empty(len(occupied), np.int64)
    _bits_of_cells(len(out), occupied, replicas.fold_replicas(how, places, table), out)
    return out.view(np.float64)


@kernel((INT, INTS32, INT, INTS, INT, BOOLS, INTS))
def _fold_in_order(
    how: Any, cells: Any, replicas: Any, bits: Any, masked: Any, valid: Any, table: Any
) -> None:
    replica = cuda.grid(1) % replicas
    for i in range(cuda.grid(1), cells.size, cuda.gridsize(1)):
        if masked and not valid[i]:
            continue
        place, order = cells[i] * replicas + replica, rules.order_of(bits[i])
        if how == MIN:
            if order < load_relaxed(table, place):
                cuda.atomic.min(table, place, order)
        elif order > load_relaxed(table, place):
            cuda.atomic.max(table, place, order)


@kernel((INTS, INTS, INTS))
def _bits_of_cells(occupied: Any, orders: Any, out: Any) -> None:
    for g in range(cuda.grid(1), occupied.size, cuda.gridsize(1)):
        out[g] = rules.bits_of_order(orders[occupied[g]])
