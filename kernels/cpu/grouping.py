"""Group rows by (key code, slice), or by session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import INT, INTS, INTS32, OUT_INTS, OUT_INTS32
from gpu_windows.kernels.compile import kernel
from gpu_windows.kernels.contract import groups
from gpu_windows.kernels.contract.rows import Assigned
from gpu_windows.kernels.cpu.keys import Encoder
from gpu_windows.kernels.cpu.sorting import order_runs

#: Cells a row up to which a table of all (key, slice) cells is cheaper than hashing the pairs.
_DENSE_CELLS_PER_ROW = 4
_DENSE_CELLS_ALWAYS = 1 << 16
_MAX_CELLS = 2**31 - 1


@dataclass(frozen=True)
class Groups(groups.Groups):
    """The rows of a batch by group, by way of cells.

    Parameters
    ----------
    cells : int32[n]
        The cell of every row.
    size : int
        Number of cells.
    occupied : int64[count], optional
        The cell of every group; None where every cell is a group, in their order.
    """

    cells: NDArray[np.int32]
    size: int
    occupied: NDArray[np.int64] | None

    def take(self, of_cells: NDArray[Any]) -> NDArray[Any]:
        """Return what belongs to the groups of an array over cells."""
        return of_cells if self.occupied is None else of_cells[self.occupied]


def group(
    codes: NDArray[np.int64],
    slices: NDArray[np.int64],
    key_count: int,
    reach: tuple[int, int] | None = None,
) -> Groups:
    """See `contract.groups.Grouping.group`."""
    rows = len(codes)
    if reach is None or rows == 0:
        reach = (int(slices.min()), int(slices.max())) if rows else (0, 0)
    low, high = reach
    width = high - low + 1
    limit = max(_DENSE_CELLS_PER_ROW * rows, _DENSE_CELLS_ALWAYS)
    if key_count * width <= min(limit, _MAX_CELLS):
        return _group_dense(codes, slices, low, width, key_count)
    return _group_hashed(codes, slices)


def group_accepted(codes: NDArray[np.int64], assigned: Assigned, key_count: int) -> Groups | None:
    """See `contract.groups.Grouping.group_accepted`."""
    if assigned.summary.rejected:
        return None
    return group(codes, assigned.slices, key_count, assigned.reach)


def runs(lengths: NDArray[np.int64]) -> Groups:
    """See `contract.groups.Grouping.runs`."""
    count = len(lengths)
    cells = np.repeat(np.arange(count, dtype=np.int32), lengths)
    return Groups(np.arange(count), np.zeros(count, np.int64), lengths, cells, count, None)


def order_of(groups: Groups) -> NDArray[np.int64]:
    """See `contract.groups.Grouping.order_of`."""
    begins = np.zeros(groups.size, np.int64)
    where = slice(None) if groups.occupied is None else groups.occupied
    begins[where] = np.cumsum(groups.rows) - groups.rows
    order = np.empty(len(groups.cells), np.int64)
    _order(groups.cells, begins, order)
    return order


@kernel((INTS32, OUT_INTS, OUT_INTS))
def _order(cells: Any, begins: Any, order: Any) -> None:
    for i in range(cells.size):
        order[begins[cells[i]]] = i
        begins[cells[i]] += 1


def _group_dense(
    codes: NDArray[np.int64], slices: NDArray[np.int64], low: int, width: int, key_count: int
) -> Groups:
    size = key_count * width
    cells = np.empty(len(codes), np.int32)
    counts = np.zeros(size, np.int64)
    _dense_cells(codes, slices, low, width, cells, counts)
    count = int(np.count_nonzero(counts))
    if count == size:
        key = np.repeat(np.arange(key_count), width)
        return Groups(
            key, np.tile(np.arange(low, low + width), key_count), counts, cells, size, None
        )
    key, slice_, rows, occupied = (np.empty(count, np.int64) for _ in range(4))
    _find_occupied(counts, low, width, key, slice_, rows, occupied)
    return Groups(key, slice_, rows, cells, size, occupied)


def _group_hashed(codes: NDArray[np.int64], slices: NDArray[np.int64]) -> Groups:
    numbers = Encoder()
    slice_codes = numbers.encode(slices)
    pairs = Encoder()
    cells = pairs.encode(codes * max(numbers.count, 1) + slice_codes)
    key, slice_code = np.divmod(pairs.values, max(numbers.count, 1))
    slice_ = numbers.values[slice_code]
    order = np.lexsort((slice_, key))
    counts = np.bincount(cells, minlength=pairs.count)
    narrow = cells.astype(np.int32)
    return Groups(key[order], slice_[order], counts[order], narrow, pairs.count, order)


@kernel((INTS, INTS, INT, INT, OUT_INTS32, OUT_INTS))
def _dense_cells(codes: Any, slices: Any, low: Any, width: Any, cells: Any, counts: Any) -> None:
    for i in range(codes.size):
        cell = codes[i] * width + (slices[i] - low)
        cells[i] = cell
        counts[cell] += 1


@kernel((INTS, INT, INT, OUT_INTS, OUT_INTS, OUT_INTS, OUT_INTS))
def _find_occupied(
    counts: Any, low: Any, width: Any, codes: Any, slices: Any, rows: Any, occupied: Any
) -> None:
    group = 0
    for code in range(counts.size // width):
        for place in range(width):
            cell = code * width + place
            if counts[cell] > 0:
                codes[group] = code
                slices[group] = low + place
                rows[group] = counts[cell]
                occupied[group] = cell
                group += 1


# ---- sessions: spans of time of the same key that intersect or touch

#: Key codes a row up to which counting them is cheaper than comparing rows.
_CODES_PER_ROW = 4


def group_sessions(
    codes: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64], key_count: int
) -> Groups:
    """See `contract.groups.Grouping.group_sessions`."""
    count = len(codes)
    cells = np.empty(count, np.int32)
    heads = np.empty(count, np.int64)
    rows = np.zeros(count, np.int64)
    order = _order_spans(codes, starts, key_count)
    found = _sessions(order, codes, starts, ends, cells, heads, rows)
    heads = heads[:found]
    return Groups(codes[heads], starts[heads], rows[:found].copy(), cells, found, None)


def _order_spans(
    codes: NDArray[np.int64], starts: NDArray[np.int64], key_count: int
) -> NDArray[np.int64]:
    if key_count > _CODES_PER_ROW * len(codes):
        return np.lexsort((starts, codes))
    order, spare = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    edges = np.zeros(key_count + 1, np.int64)
    _by_code(codes, edges, order)
    order_runs(edges, starts, order, spare)
    return order


@kernel((INTS, OUT_INTS, OUT_INTS))
def _by_code(codes: Any, edges: Any, order: Any) -> None:
    """Sort rows by code, stable; ``edges[code]`` becomes the end of the code's rows."""
    for i in range(codes.size):
        edges[codes[i] + 1] += 1
    for code in range(edges.size - 1):
        edges[code + 1] += edges[code]
    for i in range(codes.size):
        order[edges[codes[i]]] = i
        edges[codes[i]] += 1


@kernel((INTS, INTS, INTS, INTS, OUT_INTS32, OUT_INTS, OUT_INTS))
def _sessions(
    order: Any, codes: Any, starts: Any, ends: Any, cells: Any, heads: Any, rows: Any
) -> Any:
    """Number the session of every row; return how many there are."""
    session, code, end = -1, -1, 0
    for i in range(order.size):
        row = order[i]
        if codes[row] != code or starts[row] > end:
            session += 1
            heads[session] = row
            code, end = codes[row], ends[row]
        else:
            end = max(end, ends[row])
        cells[row] = session
        rows[session] += 1
    return session + 1
