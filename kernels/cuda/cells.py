"""A table of all cells, those of (key code, slice), into which rows are folded by atomics.

Where a batch has not many more cells than rows, no row needs to be sorted: a row adds to its cell
(`gpu_windows.kernels.cuda.replicas`). What is folded are integers, because their sums, least and
greatest are the same in any order; floats become integers (`gpu_windows.kernels.cuda.float_cells`).

How many cells there are depends on the slices of the batch, which only the device knows. It finds
the size of the table by itself: what is allocated is the most that it may be, which a device's
cache holds. The host waits once, for how many cells have rows, and learns on this occasion how many
rows were rejected. These have a cell of their own after all others, which is no group.

From rows to a sum by key and slice kernels read and write 50 bytes a row (17 by assign, 21 and 12
here), of floats 70, besides atomics: `tests/ptx/bytes_equal.py`. Tables take about 32 bytes a cell
for every fold. Moments are folded in the order of rows, which are sorted by the 32 bits of their
cell once a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpu_windows.kernels.contract.rows import Seen
from gpu_windows.kernels.cuda import float_cells, primitives, reach, replicas, rules
from gpu_windows.kernels.cuda.blocks import fold_team, sum_before
from gpu_windows.kernels.cuda.compiler import cuda, device_function, load_relaxed
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.primitives import THREADS
from gpu_windows.kernels.cuda.replicas import TEAM, replicas_of
from gpu_windows.kernels.cuda.types import BOOLS, BYTES, INT, INTS, INTS32
from gpu_windows.rules import ACCEPTED, ADD, LONG_MAX, MAX, MIN

#: Cells a row up to which a table of all cells is cheaper than sorting the rows.
_CELLS_PER_ROW = 4
_CELLS_ALWAYS = 1 << 16
#: Of cells, for they are numbered by int32; of rows, whose halves are added in 64 bits.
_MAX_CELLS = 2**31 - 1
#: Bytes of a cell in the tables that have one place for it.
_CELL_BYTES = 16
#: Cells of a part of the table, about, and how many parts there are at least and at most: the
#: cells that have rows are counted and written part by part.
_PART, _MIN_PARTS, _MAX_PARTS = 1 << 12, 16, 256
#: Threads that make a table ready, at least and at most: each block puts all marks together.
_MIN_READY, _MAX_READY = 1 << 12, 1 << 16

#: What is found of a batch: the least slice, how many slices there may be, the greatest one; how
#: many rows were rejected; how many cells there are (0: too many), places of each, and how many
#: cells have rows.
_LOW, _WIDTH, _HIGH, _REJECTED, _SIZE, _REPLICAS, _COUNT, _HEAD = range(8)


@dataclass(frozen=True)
class Cells:
    """The cells of a batch.

    Parameters
    ----------
    of_rows : int32[n]
        The cell of every row: ``code * width + (slice - low)``; ``size - 1`` if it was rejected.
    size : int
        Number of cells, with that of rejected rows.
    replicas : int
        Places of a cell in ``sums``.
    sums : int64[2 * size * replicas]
        Two tables of zeros into which integers are added; all of the last cell may be other than 0.
    occupied : int64[count]
        The cells that have rows, ascending.
    """

    of_rows: Any
    size: int
    replicas: int
    sums: Any
    occupied: Any

    def order(self) -> Any:
        """Return int64[n]: the rows by cell, those of a cell in their order."""
        return primitives.argsort(self.of_rows)

    def count(self, valid: Any) -> Any:
        """Return int64[count]: the valid rows of every occupied cell."""
        _count(len(self.of_rows), self.of_rows, self.replicas, valid, self.sums)
        return self._take_sums(1)

    def fold(self, how: int, values: Any, valid: Any) -> Any:
        """Return int64[count] or float64[count]: the valid values of occupied cells folded."""
        if values.dtype == np.float64:
            return float_cells.fold(how, self.of_rows, self.size, self.occupied, values, valid)
        if how == ADD:
            self._fold_into(ADD, values, valid, self.replicas, self.sums)
            return self._take_sums(1)
        places, table = replicas.table(how, self.size)
        self._fold_into(how, values, valid, places, table)
        return replicas.take_folded(how, places, 1, table, self.occupied)

    def exact_sum(self, values: Any, valid: Any) -> tuple[Any, Any]:
        """Return int64[count] twice: the high and the low halves of the valid values summed."""
        masked, count = int(len(valid) > 0), len(self.occupied)
        _exact_sum(len(values), self.of_rows, self.replicas, values, masked, valid, self.sums)
        sums = self._take_sums(2)
        return sums[:count], sums[count:]

    def pick(self, rank: Any, valid: Any) -> Any:
        """Return int64[count]: the valid row of least rank, the first of equals; else -1."""
        places, table = replicas.table(MIN, self.size)
        self._fold_into(MIN, rank, valid, places, table)
        best, (places, table) = (
            replicas.fold_replicas(MIN, places, table),
            replicas.table(MIN, self.size),
        )
        masked = int(len(valid) > 0)
        _first(len(rank), self.of_rows, places, best, rank, masked, valid, table)
        found = replicas.take_folded(MIN, places, 1, table, self.occupied)
        _none_is_minus_one(len(found), found)
        return found

    def _fold_into(self, how: int, values: Any, valid: Any, places: int, table: Any) -> None:
        masked = int(len(valid) > 0)
        _fold(len(values), how, self.of_rows, places, values, masked, valid, table)

    def _take_sums(self, tables: int) -> Any:
        """Return the sums of occupied cells in one table or two, which are zeros afterwards."""
        half = len(self.sums) // 2
        return replicas.take_folded(
            ADD, self.replicas, tables, self.sums[: tables * half], self.occupied
        )


class Found(NamedTuple):
    """The cells of a batch, and what else was found.

    Parameters
    ----------
    seen : Seen
        How many rows were rejected, and the reach of the others.
    cells : Cells or None
        None where there are too many, or no row was accepted.
    codes, slices, rows : int64[count]
        Of the cells that have rows: key code, slice, number of rows.
    """

    seen: Seen
    cells: Cells | None = None
    codes: Any = None
    slices: Any = None
    rows: Any = None


def cells_of(
    codes: Any, slices: Any, key_count: int, reach_or_marks: tuple[int, int] | Any, status: Any
) -> Found:
    """Return the cells of rows; wait for how many there are.

    Parameters
    ----------
    codes, slices : int64[n]
        At least one row.
    key_count : int
    reach_or_marks : (int, int) or int64 marks
        The least and the greatest slice, or the marks of those (`gpu_windows.kernels.cuda.reach`).
    status : int8[n] or int8[0]
        Which rows were accepted; empty: all.
    """
    given = isinstance(reach_or_marks, tuple)
    low, high = reach_or_marks if given else (0, 0)
    limit = _limit(len(codes))
    if given and (len(codes) > _MAX_CELLS or key_count * (high - low + 1) > limit):
        return Found(Seen(0, low, high))
    marks = _NO_MARKS if given else reach_or_marks
    parts = min(max(limit // _PART, _MIN_PARTS), _MAX_PARTS)
    places = 2 * max(replicas.places(), limit + 1)
    wanted = (len(codes), np.int32), (places, np.int64), (parts, np.int64), (_HEAD, np.int64)
    of_rows, table, tiles, head = primitives.empties(*wanted)
    ready = min(max(len(codes), _MIN_READY), _MAX_READY)
    begin = key_count, limit, replicas.places(), int(given), low, high
    _begin(ready, *begin, marks, head, table)
    _place(len(codes), head, codes, slices, int(len(status) > 0), status, of_rows, table)
    _count_occupied(parts * THREADS, head, table, tiles)
    low, _, high, rejected, size, places, count, *_ = primitives.to_host(head).tolist()
    seen = Seen(rejected, low, high)
    if size == 0:
        return Found(seen)
    found, numbers, rows, occupied = primitives.empties(*[(count, np.int64)] * 4)
    _write_occupied(parts * THREADS, head, table, tiles, found, numbers, rows, occupied)
    sums = table[: 2 * (size + 1) * places]
    return Found(seen, Cells(of_rows, size + 1, places, sums, occupied), found, numbers, rows)


_NO_MARKS = np.empty(0, np.int64)


def _limit(rows: int) -> int:
    """Return how many cells rows may have: no more than the cache holds, where atomics are fast."""
    cached = primitives.cache_bytes() // _CELL_BYTES
    return min(max(_CELLS_PER_ROW * rows, _CELLS_ALWAYS), max(cached, _CELLS_ALWAYS), _MAX_CELLS)


@kernel((INT, INT, INT, INT, INT, INT, INTS, INTS, INTS))
def _begin(
    key_count: Any, limit: Any, max_places: Any, given: Any, low: Any, high: Any, marks: Any,
    head: Any, table: Any,
) -> None:  # fmt: skip
    """Find the size of the tables, and make them ready."""
    rejected = 0
    if not given:
        low, high, rejected = reach.fold_marks(marks)
    width = high - low + 1
    # modulo 2**64: of slices that are further apart it is negative
    if high < low or width <= 0 or width > limit // key_count:
        width = 0
    size = key_count * width
    places = replicas_of(size + 1, max_places)
    if cuda.grid(1) == 0:
        head[_LOW], head[_WIDTH], head[_HIGH], head[_REJECTED] = low, width, high, rejected
        head[_SIZE], head[_REPLICAS], head[_COUNT] = size, places, 0
        head[_HEAD - 1] = 0
    for place in range(cuda.grid(1), 2 * (size + 1) * places, cuda.gridsize(1)):
        table[place] = 0


@kernel((INTS, INTS, INTS, INT, BYTES, INTS32, INTS))
def _place(
    head: Any, codes: Any, slices: Any, checked: Any, status: Any, cells: Any, counts: Any
) -> None:
    low, width, size, replicas = head[_LOW], head[_WIDTH], head[_SIZE], head[_REPLICAS]
    if size == 0:
        return
    replica = cuda.grid(1) % replicas
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        if checked and status[i] != ACCEPTED:
            cells[i] = size
            continue
        cell = codes[i] * width + (slices[i] - low)
        cells[i] = cell
        cuda.atomic.add(counts, cell * replicas + replica, 1)


@device_function
def _part_of(size: Any, parts: Any, part: Any) -> Any:
    """Return the first cell of a part of the table, and the one after its last."""
    length = max((size + parts - 1) // parts, TEAM)
    return min(part * length, size), min(part * length + length, size)


@kernel((INTS, INTS, INTS))
def _count_occupied(head: Any, table: Any, tiles: Any) -> None:
    """Fold the counts of every cell into its first place, and count the cells that have rows."""
    size, replicas = head[_SIZE], head[_REPLICAS]
    team, lane = min(replicas, TEAM), cuda.threadIdx.x
    for tile in range(cuda.blockIdx.x, tiles.size, cuda.gridDim.x):
        begin, end = _part_of(size, tiles.size, tile)
        occupied = 0
        for first in range(begin, end, THREADS // team):
            cell, total = first + lane // team, 0
            if cell < end:
                for replica in range(lane % team, replicas, team):
                    total += table[cell * replicas + replica]
                    table[cell * replicas + replica] = 0
            total = fold_team(ADD, team, total)
            if total > 0 and lane % team == 0:
                table[cell * replicas] = total
                occupied += 1
        _, found = sum_before(occupied)
        if lane == 0:
            tiles[tile] = found
            cuda.atomic.add(head, _COUNT, found)


@kernel((INTS, INTS, INTS, INTS, INTS, INTS, INTS))
def _write_occupied(
    head: Any, table: Any, tiles: Any, codes: Any, slices: Any, rows: Any, occupied: Any
) -> None:
    """Write the cells that have rows, ascending; their counts are 0 afterwards."""
    low, width, replicas, lane = head[_LOW], head[_WIDTH], head[_REPLICAS], cuda.threadIdx.x
    for tile in range(cuda.blockIdx.x, tiles.size, cuda.gridDim.x):
        before = 0
        for other in range(lane, tile, THREADS):
            before += tiles[other]
        _, at = sum_before(before)
        begin, end = _part_of(head[_SIZE], tiles.size, tile)
        for first in range(begin, end, THREADS):
            cell, count = first + lane, 0
            if cell < end:
                count = table[cell * replicas]
                table[cell * replicas] = 0
            own, every = sum_before(1 if count > 0 else 0)
            if count > 0:
                entry = at + own
                codes[entry], slices[entry] = cell // width, low + cell % width
                rows[entry], occupied[entry] = count, cell
            at += every


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


@kernel((INTS32, INT, INTS, INT, BOOLS, INTS))
def _exact_sum(cells: Any, replicas: Any, values: Any, masked: Any, valid: Any, sums: Any) -> None:
    replica, low = cuda.grid(1) % replicas, sums.size // 2
    for i in range(cuda.grid(1), cells.size, cuda.gridsize(1)):
        if masked and not valid[i]:
            continue
        place = cells[i] * replicas + replica
        cuda.atomic.add(sums, place, rules.high_half(values[i]))
        cuda.atomic.add(sums, low + place, rules.low_half(values[i]))


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
