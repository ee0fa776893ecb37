"""A table of all cells, those of (key code, slice), into which rows are folded by atomics.

Where a batch has not many more cells than rows, no row needs to be sorted: a row adds to its cell
(`gpu_windows.kernels.cuda.replicas`). What is folded are integers, because their sums, least and
greatest are the same in any order; floats become integers (`gpu_windows.kernels.cuda.float_cells`).

From rows to a sum by key and slice kernels read and write 49 bytes a row (17 by assign, 20 and 12
here), of floats 69, besides atomics: `tests/ptx/bytes_equal.py`. Tables take about 32 bytes a cell
for every fold. Moments are folded in the order of rows, which are sorted by the 32 bits of their
cell once a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_windows.kernels.cuda import float_cells, primitives, rules
from gpu_windows.kernels.cuda.compiler import cuda, load_relaxed
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.replicas import fold_replicas as _together
from gpu_windows.kernels.cuda.replicas import table as _table
from gpu_windows.kernels.cuda.types import BOOLS, INT, INTS, INTS32
from gpu_windows.rules import ADD, LONG_MAX, MAX, MIN

#: Cells a row up to which a table of all cells is cheaper than sorting the rows.
_CELLS_PER_ROW = 4
_CELLS_ALWAYS = 1 << 16
#: Of cells, for they are numbered by int32; of rows, whose halves are added in 64 bits.
_MAX_CELLS = 2**31 - 1


@dataclass(frozen=True)
class Cells:
    """The cells of a batch.

    Parameters
    ----------
    of_rows : int32[n]
        The cell of every row: ``code * width + (slice - low)``.
    size : int
        Number of cells.
    occupied : int64[count]
        The cells that have rows, ascending.
    """

    of_rows: Any
    size: int
    occupied: Any

    def order(self) -> Any:
        """Return int64[n]: the rows by cell, those of a cell in their order."""
        return primitives.argsort(self.of_rows)

    def count(self, valid: Any) -> Any:
        """Return int64[count]: the valid rows of every occupied cell."""
        replicas, table = _table(ADD, self.size)
        _count(len(self.of_rows), self.of_rows, replicas, valid, table)
        return primitives.gather(_together(ADD, replicas, table), self.occupied)

    def fold(self, how: int, values: Any, valid: Any) -> Any:
        """Return int64[count] or float64[count]: the valid values of occupied cells folded."""
        if values.dtype == np.float64:
            return float_cells.fold(how, self.of_rows, self.size, self.occupied, values, valid)
        return primitives.gather(self._fold(how, values, valid), self.occupied)

    def exact_sum(self, values: Any, valid: Any) -> tuple[Any, Any]:
        """Return int64[count] twice: the high and the low halves of the valid values summed."""
        (replicas, high), (_, low) = (_table(ADD, self.size) for _ in range(2))
        masked = int(len(valid) > 0)
        _exact_sum(len(values), self.of_rows, replicas, values, masked, valid, high, low)
        sums = (_together(ADD, replicas, table) for table in (high, low))
        high, low = (primitives.gather(table, self.occupied) for table in sums)
        return high, low

    def pick(self, rank: Any, valid: Any) -> Any:
        """Return int64[count]: the valid row of least rank, the first of equals; else -1."""
        best, (replicas, table) = self._fold(MIN, rank, valid), _table(MIN, self.size)
        masked = int(len(valid) > 0)
        _first(len(rank), self.of_rows, replicas, best, rank, masked, valid, table)
        found = primitives.gather(_together(MIN, replicas, table), self.occupied)
        _none_is_minus_one(len(found), found)
        return found

    def _fold(self, how: int, values: Any, valid: Any) -> Any:
        """Return int64[size]: the valid values of every cell folded."""
        replicas, table = _table(how, self.size)
        masked = int(len(valid) > 0)
        _fold(len(values), how, self.of_rows, replicas, values, masked, valid, table)
        return _together(how, replicas, table)


def cells_of(
    codes: Any, slices: Any, key_count: int, reach: tuple[int, int]
) -> tuple[Cells, Any] | None:
    """Return the cells of rows, and int64[count]: how many rows the occupied ones have.

    Parameters
    ----------
    codes, slices : int64[n]
    key_count : int
    reach : (int, int)
        The least and the greatest slice.

    Returns
    -------
    (Cells, int64[count]) or None
        None where there are too many.
    """
    low, width = reach[0], reach[1] - reach[0] + 1
    size, limit = key_count * width, max(_CELLS_PER_ROW * len(codes), _CELLS_ALWAYS)
    if size > min(limit, _MAX_CELLS) or len(codes) > _MAX_CELLS:
        return None
    of_rows = primitives.empty(len(codes), np.int32)
    replicas, table = _table(ADD, size)
    _place(len(codes), codes, slices, low, width, replicas, of_rows, table)
    counts = _together(ADD, replicas, table)
    occupied = primitives.where(counts)
    return Cells(of_rows, size, occupied), primitives.gather(counts, occupied)


@kernel((INTS, INTS, INT, INT, INT, INTS32, INTS))
def _place(
    codes: Any, slices: Any, low: Any, width: Any, replicas: Any, cells: Any, counts: Any
) -> None:
    replica = cuda.grid(1) % replicas
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        cell = codes[i] * width + (slices[i] - low)
        cells[i] = cell
        cuda.atomic.add(counts, cell * replicas + replica, 1)


@kernel((INTS32, INT, BOOLS, INTS))
def _count(cells: Any, replicas: Any, valid: Any, table: Any) -> None:
    replica = cuda.grid(1) % replicas
    for i in range(cuda.grid(1), cells.size, cuda.gridsize(1)):
        if valid[i]:
            cuda.atomic.add(table, cells[i] * replicas + replica, 1)


@kernel((INT, INTS32, INT, INTS, INT, BOOLS, INTS))
def _fold(
    how: Any, cells: Any, replicas: Any, values: Any, masked: Any, valid: Any, table: Any
) -> None:
    replica = cuda.grid(1) % replicas
    for i in range(cuda.grid(1), cells.size, cuda.gridsize(1)):
        if masked and not valid[i]:
            continue
        place = cells[i] * replicas + replica
        if how == ADD:
            cuda.atomic.add(table, place, values[i])
        elif how == MAX:
            if values[i] > load_relaxed(table, place):
                cuda.atomic.max(table, place, values[i])
        elif values[i] < load_relaxed(table, place):
            cuda.atomic.min(table, place, values[i])


@kernel((INTS32, INT, INTS, INT, BOOLS, INTS, INTS))
def _exact_sum(
    cells: Any, replicas: Any, values: Any, masked: Any, valid: Any, high: Any, low: Any
) -> None:
    replica = cuda.grid(1) % replicas
    for i in range(cuda.grid(1), cells.size, cuda.gridsize(1)):
        if masked and not valid[i]:
            continue
        place = cells[i] * replicas + replica
        cuda.atomic.add(high, place, rules.high_half(values[i]))
        cuda.atomic.add(low, place, rules.low_half(values[i]))


@kernel((INTS32, INT, INTS, INTS, INT, BOOLS, INTS))
def _first(
    cells: Any, replicas: Any, best: Any, rank: Any, masked: Any, valid: Any, table: Any
) -> None:
    replica = cuda.grid(1) % replicas
    for i in range(cuda.grid(1), cells.size, cuda.gridsize(1)):
        if rank[i] == best[cells[i]] and (not masked or valid[i]):
            cuda.atomic.min(table, cells[i] * replicas + replica, i)


@kernel((INTS,))
def _none_is_minus_one(rows: Any) -> None:
    for g in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        if rows[g] == LONG_MAX:
            rows[g] = -1
