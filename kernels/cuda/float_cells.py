"""Floats folded into the cells of a batch, as integers: no order of rows changes a result.

A sum is that of the floats as multiples of a unit of their cell (`gpu_windows.rules.fixed_point`):
the rows are read once for the greatest exponent of every cell, and once more to be added. Of the
least and the greatest, floats are integers of the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_windows.kernels.compile import specialize
from gpu_windows.kernels.contract.arrays import DeviceBools, DeviceFloats, DeviceInts
from gpu_windows.kernels.cuda import primitives, replicas, rules
from gpu_windows.kernels.cuda.blocks import (
    SLOTS,
    clear_table,
    keep_greatest,
    put_away,
    rows_of_block,
)
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.primitives import THREADS
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
    _exponents(len(cells), 0, cells, places, bits, masked, valid, table)
    exponents = replicas.fold_replicas(MAX, places, table)
    (places, high), (_, middle), (_, low) = (replicas.table(ADD, size) for _ in range(3))
    words = high, middle, low
    _add_units(len(cells), cells, places, exponents, bits, masked, valid, *words)
    sums = (replicas.fold_replicas(ADD, places, table) for table in words)
    out = primitives.empty(len(occupied), np.float64)
    _sums(len(out), occupied, exponents, *sums, out)
    return out


def _fold_greatest(
    turned: Any, cells: Any, replicas: Any, bits: Any, masked: Any, valid: Any, table: Any
) -> None:
    owners, greatest = cuda.shared.array(SLOTS, np.int32), cuda.shared.array(SLOTS, np.int64)
    clear_table(owners, greatest)
    begin, end = rows_of_block(cells.size)
    for i in range(begin + cuda.threadIdx.x, end, THREADS):
        if not masked or valid[i]:
            number = number_of(bits[i]) ^ turned
            keep_greatest(owners, greatest, cells[i], number, replicas, table)
    put_away(owners, greatest, replicas, table)


#: Which number of a float is folded: a kernel of `_fold_greatest` has its own in this place.
number_of: Any = None
_exponents, _fold_in_order = (
    kernel((INT, INTS32, INT, INTS, INT, BOOLS, INTS))(
        specialize(_fold_greatest, name, number_of=number)
    )
    for name, number in (("exponents", rules.exponent_of), ("fold_in_order", rules.order_of))
)


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
    # the greatest of what is turned around is the least
    turned = -1 if how == MIN else 0
    places, table = replicas.table(MAX, size)
    _fold_in_order(len(cells), turned, cells, places, bits, masked, valid, table)
    out = primitives.empty(len(occupied), np.int64)
    orders = replicas.fold_replicas(MAX, places, table)
    _bits_of_cells(len(out), turned, occupied, orders, out)
    return out.view(np.float64)


@kernel((INT, INTS, INTS, INTS))
def _bits_of_cells(turned: Any, occupied: Any, orders: Any, out: Any) -> None:
    for g in range(cuda.grid(1), occupied.size, cuda.gridsize(1)):
        out[g] = rules.bits_of_order(orders[occupied[g]] ^ turned)
