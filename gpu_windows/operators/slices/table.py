"""In-memory state of the slices strategy: the partials of each non-empty (key, slice)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.contract.rows import Assigned
from gpu_windows.operators.columns.device_table import kernel_column
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import in_pieces, to_numeric
from gpu_windows.operators.columns.partial_columns import table_columns
from gpu_windows.operators.columns.partials import Rows, State, entries_within
from gpu_windows.operators.columns.reducing import reduce_columns
from gpu_windows.operators.columns.units import limits_of, units_on_device
from gpu_windows.operators.counters import Rejected
from gpu_windows.operators.device import Kernels, Map, encode_keys
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import SLICE

#: Pending entries, and about how many bytes of them, that are buffered before a merge; more if the
#: merged entries are more.
_PENDING_ENTRIES, _PENDING_BYTES = 1 << 22, 1 << 29


@dataclass(frozen=True)
class Entries:
    """Slices of keys, with one state per partial; arrays may be in the back end's memory.

    Parameters
    ----------
    codes, slices : int64[m]
        Key codes and slice numbers.
    states : tuple of State
    merged : bool
        Whether they are sorted by (code, slice), each pair once.
    known_reach : (int, int), optional
        The least and the greatest slice, where known.
    """

    codes: NDArray[np.int64]
    slices: NDArray[np.int64]
    states: tuple[State, ...]
    merged: bool = True
    known_reach: tuple[int, int] | None = None

    @property
    def reach(self) -> tuple[int, int]:
        """The least and the greatest slice; there is at least one entry."""
        return self.known_reach or (int(self.slices.min()), int(self.slices.max()))

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class KeyedRows:
    """Rows of one kernel call, with their key codes.

    Parameters
    ----------
    rows : pyarrow.RecordBatch or pyarrow.Table
        Rows that are in a slice; a table for a device.
    codes : int64[n]
        Codes of their keys; maybe in the back end's memory.
    key_count : int
        Number of codes when they were made.
    numbers : int64[n]
        Number of each row within its key; empty where not needed.
    """

    rows: pa.RecordBatch | pa.Table
    codes: NDArray[np.int64]
    key_count: int
    numbers: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.codes)

    def slice(self, begin: int, length: int) -> Self:
        """Return consecutive rows."""
        rows, part = self.rows.slice(begin, length), slice(begin, begin + length)
        return type(self)(rows, self.codes[part], self.key_count, self.numbers[part])


@dataclass(frozen=True)
class Placed:
    """The slices of rows or entries.

    Parameters
    ----------
    slices : int64[n], in the back end's memory
        Anything for a row that is rejected.
    reach : (int, int), optional
        The least and the greatest slice of accepted rows, where known.
    """

    slices: Any
    reach: tuple[int, int] | None = None


class SliceTable:
    """The non-empty slices of some keys: add rows or partials, read entries.

    Added entries are merged only when they outnumber the merged ones, so adding costs amortised
    time linear in the batch.
    """

    #: Whether slices are of times: then rows are grouped before the host knows which are rejected.
    _is_of_times = True

    def __init__(self, plan: WindowPlan, kernels: Kernels) -> None:
        self.columns = table_columns(plan)
        self.keys = KeyEncoder([plan.query.schema.field(name).type for name in plan.query.keys])
        self._plan = plan
        self._names = plan.query.keys
        self._kernels = kernels
        self._merged: Entries | None = None
        self._pending: list[Entries] = []
        self._pending_count = 0  # entries in them

    def add_rows(self, table: pa.Table, watermark: int) -> Rejected:
        """Aggregate the rows that are in a window by (key, slice); return the others.

        On the CPU every chunk of the table is a kernel call of its own; several run in parallel.
        """
        aggregated = self._kernels.each(
            self._with_codes(table),
            lambda backend, piece: self._aggregate(backend, piece, watermark),
        )
        for entries, _ in aggregated:
            self.add(entries)
        return Rejected.concat([rejected for _, rejected in aggregated])

    def add_partials(self, table: pa.Table) -> None:
        """Add a table of partials, as `to_arrow` makes it."""
        columns = [table.column(name) for name in self._names]
        codes = encode_keys(self._kernels, self.keys, columns)
        self.add(self.from_arrow(codes, table))

    def add(self, entries: Entries) -> None:
        """Add entries of this table's keys; they count as later than the existing ones."""
        self._pending.append(entries)
        self._pending_count += len(entries)
        limit = min(_PENDING_ENTRIES, entries_within(self.columns, _PENDING_BYTES))
        if self._pending_count > max(limit, 0 if self._merged is None else len(self._merged)):
            self.entries()

    @property
    def entry_count(self) -> int:
        """Number of entries in memory, merged or not."""
        return self._pending_count + (0 if self._merged is None else len(self._merged))

    def entries(self) -> Entries:
        """Return all entries, sorted by (code, slice), each pair once."""
        if self._pending or self._merged is None:
            self._merged, self._pending, self._pending_count = self._merge(self._parts), [], 0
        return self._merged

    def unmerged_entries(self) -> Entries:
        """Return all entries without merging: in no order, a (code, slice) maybe several times."""
        return self._concat(self._parts)

    @property
    def _parts(self) -> list[Entries]:
        return self._pending if self._merged is None else [self._merged, *self._pending]

    def retain(self, mask: NDArray[np.bool_]) -> None:
        """Drop all but the entries of a mask over `entries`."""
        self._merged = self.select(self.entries(), mask)

    def drop_before(self, slice_: int) -> None:
        """Drop the slices before one."""
        entries = self.entries()
        if len(entries) == 0:
            return
        first, last = entries.reach
        if last < slice_:
            self.clear()
        elif first < slice_:
            self.retain(entries.slices >= slice_)

    def clear(self) -> None:
        """Drop all entries; keys keep their codes."""
        self._merged, self._pending, self._pending_count = None, [], 0

    def select(self, entries: Entries, index: NDArray[Any]) -> Entries:
        """Return some entries, by index or mask."""
        pairs = zip(self.columns, entries.states, strict=True)
        states = tuple(column.take(state, index) for column, state in pairs)
        return Entries(entries.codes[index], entries.slices[index], states)

    def to_arrow(self, entries: Entries) -> pa.Table:
        """Return entries as a table: key columns, `SLICE`, the partials' columns."""
        keys = dict(zip(self._names, self.keys.decode(entries.codes), strict=True))
        return pa.table({**keys, **self.columns_without_keys(entries.slices, entries.states)})

    def columns_without_keys(
        self, slices: NDArray[np.int64], states: Sequence[State]
    ) -> dict[str, pa.Array]:
        """Return the columns of entries but those of their keys."""
        columns = {SLICE: pa.array(slices)}
        for column, state in zip(self.columns, states, strict=True):
            names = (field.name for field in column.fields)
            columns.update(zip(names, column.to_arrow(state), strict=True))
        return columns

    def from_arrow(self, codes: NDArray[np.int64], table: pa.Table) -> Entries:
        """Return the entries of a table from `to_arrow`, given the codes of its keys."""
        slices = to_numeric(table.column(SLICE)).values
        states = (column.from_table(table) for column in self.columns)
        return Entries(codes, slices, tuple(states), merged=False)

    def _with_codes(self, table: pa.Table) -> Iterator[KeyedRows]:
        # the chunks of a column become one as they go to a device
        for rows in [table] if self._kernels.uses_device else table.to_batches():
            if rows.num_rows:
                columns = [kernel_column(rows, name) for name in self._names]
                codes = encode_keys(self._kernels, self.keys, columns)
                yield KeyedRows(rows, codes, self.keys.count, np.empty(0, np.int64))

    def _aggregate(
        self, backend: Backend, piece: KeyedRows, watermark: int
    ) -> tuple[Entries, Rejected]:
        if self._is_of_times:
            assigned = self._assign(backend, piece, watermark)
            codes = backend.to_device(piece.codes)
            groups = backend.grouping.group_accepted(codes, assigned, piece.key_count)
            if groups is not None:  # the rejected rows need not be taken out
                states = self._lift(backend, piece.rows)
                entries = self._reduce_groups(backend, groups, states, assigned.reach)
                return entries, _split_rejected(backend, assigned)[1]
            placed, rejected = _split_rejected(backend, assigned)
        else:
            placed, rejected = self.classify(backend, piece, watermark)
        rows, codes = piece.rows, piece.codes
        if len(rejected):
            accepted = rejected.accepted_mask
            rows = rows.filter(pa.array(accepted))
            index = backend.to_device(np.flatnonzero(accepted))
            codes = backend.take(backend.to_device(codes), index)
            placed = Placed(backend.take(placed.slices, index), placed.reach)
        entries = self._reduce(backend, self._lift(backend, rows), codes, placed, piece.key_count)
        return entries, rejected

    def _lift(self, backend: Backend, rows: pa.RecordBatch | pa.Table) -> list[State]:
        lifted = Rows(rows, in_pieces=backend.name != "cpu")
        return [column.lift(lifted) for column in self.columns]

    def _merge(self, parts: Sequence[Entries]) -> Entries:
        if len(parts) == 1 and parts[0].merged:
            return parts[0]

        def work(backend: Backend, each: Map) -> Entries:
            whole = self._concat(parts, each)
            placed = Placed(backend.to_device(whole.slices), _reach_of(parts))
            return self._reduce(backend, whole.states, whole.codes, placed, self.keys.count, each)

        return self._kernels.run(sum(map(len, parts)), work)

    def regroup(self, entries: Entries, groups: NDArray[np.int64]) -> Entries:
        """Return the entries of groups of keys: the slices of all keys of a group combined.

        Parameters
        ----------
        entries : Entries
            Each (code, slice) once.
        groups : int64[key codes]
            The group of each key, counted from 0.
        """

        def work(backend: Backend, each: Map) -> Entries:
            placed = Placed(backend.to_device(entries.slices), entries.reach)
            codes, count = groups[entries.codes], int(groups.max()) + 1
            return self._reduce(backend, entries.states, codes, placed, count, each)

        return self._kernels.run(len(entries), work)

    def _concat(self, parts: Sequence[Entries], each: Map = map) -> Entries:
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
        """Combine the states of each (code, slice), in their order."""
        on_device = backend.to_device(codes)
        groups = self._group(backend, on_device, placed, states, key_count)
        return self._reduce_groups(backend, groups, states, placed.reach, each)

    def _reduce_groups(
        self,
        backend: Backend,
        groups: Any,
        states: Sequence[State],
        reach: tuple[int, int] | None,
        each: Map = map,
    ) -> Entries:
        reduced = reduce_columns(backend, groups, self.columns, states, each)
        codes, slices = backend.keep(groups.codes), backend.keep(groups.slices)
        return Entries(codes, slices, reduced, known_reach=reach)

    def classify(
        self, backend: Backend, piece: KeyedRows, watermark: int
    ) -> tuple[Placed, Rejected]:
        """Return the slice of every row, and the rows that are late or in no slice."""
        return _split_rejected(backend, self._assign(backend, piece, watermark))

    def _assign(self, backend: Backend, piece: KeyedRows, watermark: int) -> Assigned:
        query = self._plan.query
        column = kernel_column(piece.rows, query.time)
        times = to_numeric(column) if backend.name == "cpu" else in_pieces(column)
        limits = limits_of(grid_of(self._plan), query.units, watermark)
        ts, valid = units_on_device(backend, times, query.units)
        return backend.assign.assign_slices(ts, valid, lateness_grid(self._plan), limits)

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
    """Return the slice grid of a plan.

    Raises
    ------
    ValueError
        If its strategy has no slices.
    """
    if plan.grid is None:
        raise ValueError(f"the strategy {plan.strategy.value!r} has no slices")
    return plan.grid


def lateness_grid(plan: WindowPlan) -> rules.Grid:
    """Return the windows whose ends decide which rows are late: last slides, for changed keys."""
    return plan.query.last_slides if plan.query.changed_only else grid_of(plan)


def _split_rejected(backend: Backend, assigned: Assigned) -> tuple[Placed, Rejected]:
    """Return the slices of rows, and those rejected: a device sends statuses if there are any."""
    placed, rejected = Placed(assigned.slices, assigned.reach), Rejected.none(len(assigned.slices))
    if assigned.summary.rejected:
        rejected = Rejected.of(backend.to_host(assigned.status))
    return placed, rejected


def _reach_of(parts: Sequence[Entries]) -> tuple[int, int] | None:
    """Return the least and the greatest slice of all parts, if each part knows its own."""
    reaches = [part.known_reach for part in parts if len(part)]
    known_reaches = [reach for reach in reaches if reach is not None]
    if not known_reaches or len(known_reaches) < len(reaches):
        return None
    lows, highs = zip(*known_reaches, strict=True)
    return min(lows), max(highs)
