"""Group rows by (key code, slice) or by session; cut groups into pieces that a thread can do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpu_windows.kernels.contract import groups
from gpu_windows.kernels.contract.arrays import DeviceInts, HostInts
from gpu_windows.kernels.contract.rows import Assigned, Seen
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.cells import Cells, Found, cells_of
from gpu_windows.kernels.cuda.compiler import cuda
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.reach import mark_reach, reach_of
from gpu_windows.kernels.cuda.scan import FOLD, Lane
from gpu_windows.kernels.cuda.search import owner
from gpu_windows.kernels.cuda.sorting import sort_pairs
from gpu_windows.kernels.cuda.types import BOOLS, INTS
from gpu_windows.rules import MAX

#: Most items that one thread combines. The pieces of a group are cut from its first row on, so
#: the order in which floats are added depends on the group's rows alone.
PIECE = 32

_EVERY = np.empty(0, np.int8)


@dataclass(frozen=True)
class Pieces:
    """Ranges of items, one a thread.

    Parameters
    ----------
    begins, ends : int64[count]
        First item, and the one after the last.
    """

    begins: Any
    ends: Any

    @property
    def count(self) -> int:
        """Number of pieces."""
        return len(self.begins)


@dataclass(frozen=True)
class Groups(groups.Groups):
    """The rows of a batch by group, by cells or sorted.

    Parameters
    ----------
    cells : Cells, optional
        Of the rows. Where there are none, the rows are sorted:
    sorted_rows : int64[n], optional
        Rows by group, those of a group in their order.
    """

    cells: Cells | None = None
    sorted_rows: Any = None

    @cached_property
    def order(self) -> Any:
        """Rows by group, those of a group in their order: int64[n]."""
        return self.sorted_rows if self.cells is None else self.cells.order()

    @cached_property
    def levels(self) -> tuple[Pieces, ...]:
        """Pieces of the groups, and pieces of pieces.

        The items of the first level are places in `order`, those of every other one are the
        pieces of the level before; the last has one piece a group.
        """
        begins, _ = primitives.exclusive_scan(self.rows)
        return _levels(begins, self.rows)


def group(
    codes: DeviceInts, slices: DeviceInts, key_count: int, reach: tuple[int, int] | None = None
) -> Groups:
    """See `contract.groups.Grouping.group`."""
    count = len(codes)
    if count == 0:
        return none()
    found = cells_of(codes, slices, key_count, reach or mark_reach(slices), _EVERY)
    return _groups_of(found) or _sort(codes, slices, key_count, found.seen)


def group_accepted(codes: DeviceInts, assigned: Assigned, key_count: int) -> Groups | None:
    """See `contract.groups.Grouping.group_accepted`."""
    count, slices = len(codes), assigned.slices
    if count == 0:
        return none()
    found = cells_of(codes, slices, key_count, assigned.marks, assigned.status)
    assigned.summary = found.seen
    if found.seen.rejected == count:
        return none()
    if found.cells is None and found.seen.rejected == 0:
        return _sort(codes, slices, key_count, found.seen)
    return _groups_of(found)


def _groups_of(found: Found) -> Groups | None:
    """Return the groups that occupied cells are."""
    if found.cells is None:
        return None
    return Groups(found.codes, found.slices, found.rows, found.cells)


def _sort(codes: Any, slices: Any, key_count: int, seen: Seen) -> Groups:
    """Return the groups of rows that have too many cells."""
    reach = seen.min_slice, seen.max_slice
    order, codes, slices = sort_pairs(codes, slices, (0, key_count - 1), reach)
    heads = primitives.empty(len(codes), np.bool_)
    _heads(len(codes), codes, slices, heads)
    return groups_at(codes, slices, order, primitives.where(heads))


def key_begins(codes: Any) -> Any:
    """Return int64[keys]: where the rows of every key begin, of codes that ascend."""
    heads = primitives.empty(len(codes), np.bool_)
    _key_heads(len(codes), codes, heads)
    return primitives.where(heads)


@kernel((INTS, BOOLS))
def _key_heads(codes: Any, heads: Any) -> None:
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        heads[i] = i == 0 or codes[i] != codes[i - 1]


def none() -> Groups:
    """Return no group, of no row."""
    nothing = primitives.empty(0, np.int64)
    return Groups(nothing, nothing, nothing, sorted_rows=nothing)


def runs(lengths: HostInts) -> Groups:
    """See `contract.groups.Grouping.runs`."""
    if len(lengths) == 0:
        return none()
    zeros = np.zeros(len(lengths), np.int64)
    codes = primitives.to_device(np.repeat(np.arange(len(lengths)), lengths))
    begins = primitives.to_device(np.cumsum(lengths) - lengths)
    rows = primitives.to_device(np.arange(int(lengths.sum())))
    slices = primitives.to_device(np.repeat(zeros, lengths))
    return groups_at(codes, slices, rows, begins)


def order_of(groups: Groups) -> DeviceInts:
    """See `contract.groups.Grouping.order_of`."""
    return groups.order


def groups_at(codes: Any, slices: Any, order: Any, begins: Any) -> Groups:
    """Return the groups that begin at some places of ``order``, in which codes and slices are."""
    key, slice_, rows = (primitives.empty(len(begins), np.int64) for _ in range(3))
    _groups(len(begins), codes, slices, begins, key, slice_, rows)
    return Groups(key, slice_, rows, sorted_rows=order)


@kernel((INTS, INTS, BOOLS))
def _heads(codes: Any, slices: Any, heads: Any) -> None:
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        heads[i] = i == 0 or codes[i] != codes[i - 1] or slices[i] != slices[i - 1]


@kernel((INTS, INTS, INTS, INTS, INTS, INTS))
def _groups(
    codes: Any, slices: Any, begins: Any, group_codes: Any, group_slices: Any, rows: Any
) -> None:
    for g in range(cuda.grid(1), begins.size, cuda.gridsize(1)):
        begin = begins[g]
        group_codes[g] = codes[begin]
        group_slices[g] = slices[begin]
        end = begins[g + 1] if g + 1 < begins.size else codes.size
        rows[g] = end - begin


# ---- sessions: spans of time of the same key that intersect or touch


def group_sessions(
    codes: DeviceInts, starts: DeviceInts, ends: DeviceInts, key_count: int
) -> Groups:
    """See `contract.groups.Grouping.group_sessions`."""
    count = len(codes)
    if count == 0:
        return none()
    order, codes, starts = sort_pairs(codes, starts, (0, key_count - 1), reach_of(starts))
    sorted_ends = primitives.gather(ends, order)
    latest = FOLD.up_to(MAX, key_begins(codes), Lane(sorted_ends)).values
    heads = primitives.empty(count, np.bool_)
    _session_heads(count, codes, starts, latest, heads)
    return groups_at(codes, starts, order, primitives.where(heads))


@kernel((INTS, INTS, INTS, BOOLS))
def _session_heads(codes: Any, starts: Any, latest: Any, heads: Any) -> None:
    """Mark the first row of every session: it starts after all those before it have ended."""
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        heads[i] = i == 0 or codes[i] != codes[i - 1] or starts[i] > latest[i - 1]


# ---- pieces


def _levels(begins: Any, counts: Any) -> tuple[Pieces, ...]:
    """Cut groups of items into pieces, the pieces again, until every group is one piece."""
    if len(counts) == 0:
        return (Pieces(begins, counts),)
    levels = []
    _, largest = reach_of(counts)
    while largest > PIECE:
        pieces = primitives.empty(len(counts), np.int64)
        _count_pieces(len(counts), counts, pieces)
        starts, total = primitives.exclusive_scan(pieces)
        first, end = (primitives.empty(total, np.int64) for _ in range(2))
        _cut(total, begins, counts, starts, first, end)
        levels.append(Pieces(first, end))
        begins, counts, largest = starts, pieces, -(-largest // PIECE)
    ends = primitives.empty(len(counts), np.int64)
    _ends(len(counts), begins, counts, ends)
    return (*levels, Pieces(begins, ends))


@kernel((INTS, INTS))
def _count_pieces(counts: Any, pieces: Any) -> None:
    for g in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        pieces[g] = (counts[g] + PIECE - 1) // PIECE


@kernel((INTS, INTS, INTS, INTS, INTS))
def _cut(begins: Any, counts: Any, starts: Any, first: Any, end: Any) -> None:
    for p in range(cuda.grid(1), first.size, cuda.gridsize(1)):
        g = owner(starts, p)
        first[p] = begins[g] + (p - starts[g]) * PIECE
        end[p] = min(first[p] + PIECE, begins[g] + counts[g])


@kernel((INTS, INTS, INTS))
def _ends(begins: Any, counts: Any, ends: Any) -> None:
    for g in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        ends[g] = begins[g] + counts[g]
