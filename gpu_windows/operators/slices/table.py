"""The state of the slices strategy: the non-empty slices of some keys, one partial each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.rows import Limits
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.columns.partial_columns import table_columns
from gpu_windows.operators.columns.partials import Rows, State, entries_within
from gpu_windows.operators.columns.reducing import reduce_columns
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.encoding import encoded
from gpu_windows.operators.rejected import Rejected
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import SLICE

#: Entries that may wait to be merged before a state of the same size is merged, and about how many
#: bytes.
_PENDING_ENTRIES, _PENDING_BYTES = 1 << 22, 1 << 29


@dataclass(frozen=True)
class Entries:
    """Slices of keys, with one state a partial; arrays may be those that a back end keeps.

    Parameters
    ----------
    codes, slices : int64[m]
        Key codes and slice numbers.
    states : tuple of State
    merged : bool
        Whether they are sorted by (code, slice), each pair once.
    known_reach : (int, int), optional
        Between which the slices are, where that is known.
    """

    codes: NDArray[np.int64]
    slices: NDArray[np.int64]
    states: tuple[State, ...]
    merged: bool = True
    known_reach: tuple[int, int] | None = None

    @property
    def reach(self) -> tuple[int, int]:
        """Between which the slices are, of at least one."""
        return self.known_reach or (int(self.slices.min()), int(self.slices.max()))

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class KeyedRows:
    """Rows that kernels take at once.

    Parameters
    ----------
    rows : pyarrow.RecordBatch
        Rows that are in a slice.
    codes : int64[n]
        Codes of their keys; the back end may keep them.
    key_count : int
        Number of codes when they were made.
    numbers : int64[n]
        Numbers of the rows among those of their key; empty where they do not matter.
    """

    rows: pa.RecordBatch
    codes: NDArray[np.int64]
    key_count: int
    numbers: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.codes)

    def halves(self) -> tuple[Self, Self]:
        """Return the first and the second half."""
        middle = len(self) // 2
        return self._part(0, middle), self._part(middle, len(self))

    def _part(self, begin: int, end: int) -> Self:
        rows = self.rows.slice(begin, end - begin)
        numbers = self.numbers[begin:end]
        return type(self)(rows, self.codes[begin:end], self.key_count, numbers)


@dataclass(frozen=True)
class Placed:
    """The slices of rows or entries.

    Parameters
    ----------
    slices : int64[n], in the back end's memory
        Anything for a row that is rejected.
    reach : (int, int), optional
        Between which the others are, where that is known.
    """

    slices: Any
    reach: tuple[int, int] | None = None


class SliceTable:
    """The non-empty slices of some keys; rows and partials are added, entries read.

    Merging waits until it is worth it, so that adding a batch costs what the batch costs.
    """

    def __init__(self, plan: WindowPlan, kernels: Kernels) -> None:
        self.columns = table_columns(plan)
        self.keys = KeyEncoder([plan.query.schema.field(name).type for name in plan.query.keys])
        self._plan = plan
        self._names = plan.query.keys
        self._kernels = kernels
        self._merged: Entries | None = None
        self._pending: list[Entries] = []
        self._waiting = 0  # entries in them

    def add_rows(self, table: pa.Table, watermark: int) -> Rejected:
        """Aggregate the rows that are in a window by (key, slice); return the others.

        Every chunk of the table is a kernel call of its own, several at a time.
        """
        taken = self._kernels.each(
            self._keyed(table), lambda backend, piece: self._take(backend, piece, watermark)
        )
        for entries, _ in taken:
            self.add(entries)
        return Rejected.together([rejected for _, rejected in taken])

    def add_partials(self, table: pa.Table) -> None:
        """Add a table of partials, as `to_arrow` makes it."""
        columns = [table.column(name) for name in self._names]
        codes = encoded(self._kernels, self.keys, columns)
        self.add(self.from_arrow(codes, table))

    def add(self, entries: Entries) -> None:
        """Add entries of this table's keys; they are later than those that are there."""
        self._pending.append(entries)
        self._waiting += len(entries)
        most = min(_PENDING_ENTRIES, entries_within(self.columns, _PENDING_BYTES))
        if self._waiting > max(most, 0 if self._merged is None else len(self._merged)):
            self.entries()

    @property
    def waiting(self) -> int:
        """Number of entries in memory, merged or not."""
        return self._waiting + (0 if self._merged is None else len(self._merged))

    def entries(self) -> Entries:
        """Return all entries, sorted by (code, slice), each pair once."""
        waiting = self._pending if self._merged is None else [self._merged, *self._pending]
        if self._pending or self._merged is None:
            self._merged, self._pending, self._waiting = self._merge(waiting), [], 0
        return self._merged

    def unmerged(self) -> Entries:
        """Return all entries as they are: in no order, pairs more than once."""
        waiting = self._pending if self._merged is None else [self._merged, *self._pending]
        return self._together(waiting)

    def drop(self, keep: NDArray[np.bool_]) -> None:
        """Keep only some of `entries`."""
        self._merged = self.select(self.entries(), keep)

    def drop_before(self, slice_: int) -> None:
        """Forget the slices before one."""
        entries = self.entries()
        if len(entries) == 0:
            return
        least, greatest = entries.reach
        if greatest < slice_:
            self.clear()
        elif least < slice_:
            self.drop(entries.slices >= slice_)

    def clear(self) -> None:
        """Forget all entries; keys keep their codes."""
        self._merged, self._pending, self._waiting = None, [], 0

    def select(self, entries: Entries, index: NDArray[Any]) -> Entries:
        """Return some entries, by position or mask."""
        pairs = zip(self.columns, entries.states, strict=True)
        states = tuple(column.take(state, index) for column, state in pairs)
        return Entries(entries.codes[index], entries.slices[index], states)

    def to_arrow(self, entries: Entries) -> pa.Table:
        """Return entries as a table: key columns, `SLICE`, the partials' columns."""
        keys = dict(zip(self._names, self.keys.decode(entries.codes), strict=True))
        return pa.table({**keys, **self._without_keys(entries)})

    def _without_keys(self, entries: Entries) -> dict[str, pa.Array]:
        """Return the columns of entries but those of their keys."""
        columns = {SLICE: pa.array(entries.slices)}
        for column, state in zip(self.columns, entries.states, strict=True):
            names = (field.name for field in column.fields)
            columns.update(zip(names, column.to_arrow(state), strict=True))
        return columns

    def from_arrow(self, codes: NDArray[np.int64], table: pa.Table) -> Entries:
        """Return the entries of a table that `to_arrow` made, whose keys have these codes."""
        slices = to_lane(table.column(SLICE)).values
        states = (column.from_table(table) for column in self.columns)
        return Entries(codes, slices, tuple(states), merged=False)

    def _keyed(self, table: pa.Table) -> Iterator[KeyedRows]:
        for rows in table.to_batches():
            if rows.num_rows:
                columns = [rows.column(name) for name in self._names]
                codes = encoded(self._kernels, self.keys, columns)
                yield KeyedRows(rows, codes, self.keys.count, np.empty(0, np.int64))

    def _take(self, backend: Backend, piece: KeyedRows, watermark: int) -> tuple[Entries, Rejected]:
        placed, rejected = self.classify(backend, piece, watermark)
        rows, codes = piece.rows, piece.codes
        if len(rejected):
            accepted = rejected.others
            rows = rows.filter(pa.array(accepted))
            index = backend.to_device(np.flatnonzero(accepted))
            codes = backend.take(backend.to_device(codes), index)
            placed = Placed(backend.take(placed.slices, index), placed.reach)
        lifted = Rows(rows)
        states = [column.lift(lifted) for column in self.columns]
        entries = self._reduce(backend, states, codes, placed, piece.key_count)
        return entries, rejected

    def _merge(self, parts: Sequence[Entries]) -> Entries:
        if len(parts) == 1 and parts[0].merged:
            return parts[0]

        def work(backend: Backend, each: Map) -> Entries:
            whole = self._together(parts, each)
            placed = Placed(backend.to_device(whole.slices), _reach_of(parts))
            return self._reduce(backend, whole.states, whole.codes, placed, self.keys.count, each)

        return self._kernels.run(sum(map(len, parts)), work)

    def of_groups(self, entries: Entries, groups: NDArray[np.int64]) -> Entries:
        """Return entries of groups of keys: the slices of all keys of a group as one.

        Parameters
        ----------
        entries : Entries
            Of which none are twice.
        groups : int64[key codes]
            The group of each key, from 0 on.
        """

        def work(backend: Backend, each: Map) -> Entries:
            placed = Placed(backend.to_device(entries.slices), entries.reach)
            codes, count = groups[entries.codes], int(groups.max()) + 1
            return self._reduce(backend, entries.states, codes, placed, count, each)

        return self._kernels.run(len(entries), work)

    def _together(self, parts: Sequence[Entries], each: Map = map) -> Entries:
        """Put entries one after the other."""
        parts = parts or [self._nothing()]

        def concat(column: int) -> State:
            return self.columns[column].concat([part.states[column] for part in parts])

        codes = np.concatenate([part.codes for part in parts])
        slices = np.concatenate([part.slices for part in parts])
        states = tuple(each(concat, range(len(self.columns))))
        return Entries(codes, slices, states, merged=False)

    def _reduce(
        self,
        backend: Backend,
        states: Sequence[State],
        codes: NDArray[np.int64],
        placed: Placed,
        key_count: int,
        each: Map = map,
    ) -> Entries:
        """Combine the states of equal (code, slice), in their order."""
        on_device = backend.to_device(codes)
        groups = self._group(backend, on_device, placed, states, key_count)

        reduced = reduce_columns(backend, groups, self.columns, states, each)
        codes, slices = backend.keep(groups.codes), backend.keep(groups.slices)
        return Entries(codes, slices, reduced, known_reach=placed.reach)

    def classify(
        self, backend: Backend, piece: KeyedRows, watermark: int
    ) -> tuple[Placed, Rejected]:
        """Return the slice of every row, and which rows are in none that is to come."""
        grid, rows = grid_of(self._plan), piece.rows
        lane = to_lane(rows.column(self._plan.query.time))
        limits = Limits(rules.earliest_tick(grid), rules.latest_tick(grid), 0, watermark)
        ts, valid = backend.to_device(lane.values), backend.to_device(lane.valid)
        judged = judging_grid(self._plan)
        slices = backend.empty(len(rows), np.int64)
        status = backend.empty(len(rows), np.int8)
        seen = backend.assign.assign_slices(ts, valid, judged, limits, slices, status)
        reach = (seen.least, seen.greatest) if seen.rejected < len(rows) else None
        if seen.rejected:
            return Placed(slices, reach), Rejected.of(backend.to_host(status))
        return Placed(slices, reach), Rejected.none(len(rows))

    def _group(
        self, backend: Backend, codes: Any, placed: Placed, states: Sequence[State], key_count: int
    ) -> Any:
        """Return the groups of rows or entries that become one entry."""
        del states
        return backend.grouping.group(codes, placed.slices, key_count, placed.reach)

    def _nothing(self) -> Entries:
        none = np.empty(0, np.int64)
        states = (
            column.from_arrow([pa.chunked_array([], field.type) for field in column.fields])
            for column in self.columns
        )
        return Entries(none, none, tuple(states))


def grid_of(plan: WindowPlan) -> rules.Grid:
    """Return the slices of a plan that has them."""
    if plan.grid is None:
        raise ValueError(f"the strategy {plan.strategy.value!r} has no slices")
    return plan.grid


def judging_grid(plan: WindowPlan) -> rules.Grid:
    """Return the windows by whose ends rows are late: of changed keys only, the slides."""
    return plan.query.last_slides if plan.query.changed_only else grid_of(plan)


def _reach_of(parts: Sequence[Entries]) -> tuple[int, int] | None:
    """Return between which the slices of all parts are, if that is known of each."""
    known = [part.known_reach for part in parts if len(part)]
    every = [reach for reach in known if reach is not None]
    if not every or len(every) < len(known):
        return None
    lows, highs = zip(*every, strict=True)
    return min(lows), max(highs)
