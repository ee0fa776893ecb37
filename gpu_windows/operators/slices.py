"""The slices strategy: one update a row whatever size and slide; windows combine slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.functions import Aggregates
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.base import TRACE, Counters, Emission, Operator
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.keys import KeyEncoder
from gpu_windows.operators.lanes import to_lane
from gpu_windows.operators.lowering import lower
from gpu_windows.operators.partials import PartialColumn, Rows, State, partial_columns
from gpu_windows.plan import SLICE, Plan
from gpu_windows.query import REASON
from gpu_windows.rules import LONG_MAX, LONG_MIN

#: Windows in one emission, about.
EMISSION_WINDOWS = 1 << 21
#: Entries that may wait to be merged before a state of the same size is merged.
_PENDING_ENTRIES = 1 << 22

_REASONS = {
    rules.LATE: "late",
    rules.NULL: "null_timestamp",
    rules.OUT_OF_RANGE: "out_of_range_timestamp",
}


@dataclass(frozen=True)
class Entries:
    """Slices of keys: key codes, slice numbers and one state a partial.

    ``merged``: sorted by (code, slice), each pair once.
    """

    codes: NDArray[np.int64]
    slices: NDArray[np.int64]
    states: tuple[State, ...]
    merged: bool = True

    def __len__(self) -> int:
        return len(self.codes)


class SliceTable:
    """The non-empty slices of some keys; rows and partials are added, entries read.

    Merging waits until it is worth it, so that adding a batch costs what the batch costs.
    """

    def __init__(self, plan: Plan, kernels: Kernels) -> None:
        self.columns: list[PartialColumn] = partial_columns(plan)
        self.keys = KeyEncoder([plan.query.schema.field(name).type for name in plan.query.keys])
        self._names = plan.query.keys
        self._kernels = kernels
        self._merged: Entries | None = None
        self._pending: list[Entries] = []

    def add_rows(self, table: pa.Table, slices: NDArray[np.int64]) -> int:
        """Aggregate rows by (key, slice); return how many entries they made."""
        codes = self.keys.encode([table.column(name) for name in self._names])

        def work(backend: Backend, begin: int, end: int) -> Entries:
            rows = Rows(table.slice(begin, end - begin))
            states = [column.lift(rows) for column in self.columns]
            return self._reduce(backend, codes[begin:end], slices[begin:end], states)

        made = self._kernels.split(len(table), work)
        for entries in made:
            self._add(entries)
        return sum(map(len, made))

    def add_partials(self, table: pa.Table) -> None:
        """Add a table of partials, as `to_arrow` makes it."""
        codes = self.keys.encode([table.column(name) for name in self._names])
        slices = to_lane(table.column(SLICE)).values
        states = [
            column.from_arrow([table.column(field.name) for field in column.fields])
            for column in self.columns
        ]
        self._add(Entries(codes, slices, tuple(states), merged=False))

    @property
    def waiting(self) -> int:
        """Number of entries in memory, merged or not."""
        return sum(map(len, self._pending)) + (0 if self._merged is None else len(self._merged))

    def entries(self) -> Entries:
        """Return all entries, sorted by (code, slice), each pair once."""
        waiting = self._pending if self._merged is None else [self._merged, *self._pending]
        if self._pending or self._merged is None:
            self._merged, self._pending = self._merge(waiting), []
        return self._merged

    def drop(self, keep: NDArray[np.bool_]) -> None:
        """Keep only some of `entries`."""
        self._merged = self.select(self.entries(), keep)

    def select(self, entries: Entries, index: NDArray[Any]) -> Entries:
        """Return some entries, by position or mask."""
        pairs = zip(self.columns, entries.states, strict=True)
        states = tuple(column.take(state, index) for column, state in pairs)
        return Entries(entries.codes[index], entries.slices[index], states)

    def to_arrow(self, entries: Entries) -> pa.Table:
        """Return entries as a table: key columns, `SLICE`, the partials' columns."""
        fields = [f for column in self.columns for f in column.fields]
        arrays = [*self.keys.decode(entries.codes), pa.array(entries.slices)]
        for column, state in zip(self.columns, entries.states, strict=True):
            arrays += column.to_arrow(state)
        return pa.table(arrays, names=[*self._names, SLICE, *(f.name for f in fields)])

    def _add(self, entries: Entries) -> None:
        self._pending.append(entries)
        waiting = sum(map(len, self._pending))
        if waiting > max(_PENDING_ENTRIES, 0 if self._merged is None else len(self._merged)):
            self.entries()

    def _merge(self, parts: Sequence[Entries]) -> Entries:
        if len(parts) == 1:
            whole = parts[0]
            if whole.merged:
                return whole
        else:
            codes = np.concatenate([p.codes for p in parts]) if parts else np.empty(0, np.int64)
            slices = np.concatenate([p.slices for p in parts]) if parts else codes
            states = [
                column.concat([p.states[i] for p in parts]) if parts else self._nothing(column)
                for i, column in enumerate(self.columns)
            ]
            whole = Entries(codes, slices, tuple(states))
        return self._kernels.run(
            len(whole),
            lambda backend: self._reduce(backend, whole.codes, whole.slices, whole.states),
        )

    def _nothing(self, column: PartialColumn) -> State:
        return column.from_arrow([pa.chunked_array([], field.type) for field in column.fields])

    def _reduce(
        self,
        backend: Backend,
        codes: NDArray[np.int64],
        slices: NDArray[np.int64],
        states: Sequence[State],
    ) -> Entries:
        groups = backend.grouping.group(
            backend.to_device(codes), backend.to_device(slices), self.keys.count
        )
        reduced = tuple(
            column.reduce(backend, groups, state)
            for column, state in zip(self.columns, states, strict=True)
        )
        return Entries(backend.to_host(groups.codes), backend.to_host(groups.slices), reduced)


def classify(
    plan: Plan, kernels: Kernels, table: pa.Table, watermark: int
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Return the slice and the status (`gpu_windows.rules`) of every row."""
    grid = grid_of(plan)
    lane = to_lane(table.column(plan.query.time))
    low, high = rules.earliest_tick(grid), rules.latest_tick(grid)

    def work(backend: Backend, begin: int, end: int) -> tuple[NDArray[Any], NDArray[Any]]:
        ts = backend.to_device(lane.values[begin:end])
        valid = backend.to_device(lane.valid[begin:end])
        slices = backend.empty(end - begin, np.int64)
        status = backend.empty(end - begin, np.int8)
        backend.assign.assign_slices(ts, valid, grid, low, high, 0, watermark, slices, status)
        return backend.to_host(slices), backend.to_host(status)

    parts = kernels.split(len(table), work)
    if len(parts) == 1:
        return parts[0]
    slices, status = (np.concatenate(part) for part in zip(*parts, strict=True))
    return slices, status


def grid_of(plan: Plan) -> rules.Grid:
    """Return the slices of a plan that has them."""
    if plan.grid is None:
        raise ValueError(f"the strategy {plan.strategy.value!r} has no slices")
    return plan.grid


def count_status(status: NDArray[np.int8]) -> Counters:
    """Count what became of rows."""
    if not status.any():  # a pass over bytes is cheaper than counting them
        return Counters(rows=len(status))
    counts = np.bincount(status, minlength=5)
    return Counters(
        rows=len(status),
        late=int(counts[rules.LATE]),
        gap=int(counts[rules.GAP]),
        null_timestamp=int(counts[rules.NULL]),
        out_of_range_timestamp=int(counts[rules.OUT_OF_RANGE]),
    )


class SlicesOperator(Operator):
    """Event-time windows of mergeable aggregates, fired at the window's end.

    Parameters
    ----------
    plan : Plan
    kernels : Kernels
    trace : bool
        Whether results carry the columns `TRACE`.
    in_order : bool
        Whether windows of one advance come in order of their end.
    """

    def __init__(
        self, plan: Plan, kernels: Kernels, *, trace: bool = False, in_order: bool = True
    ) -> None:
        # configuration
        self._plan = plan
        self._kernels = kernels
        self._trace = trace
        self._in_order = in_order
        self._grid = grid_of(plan)
        # state
        self._table = SliceTable(plan, kernels)
        self._watermark = LONG_MIN
        self._fired = LONG_MIN

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows; results wait for the watermark."""
        slices, status = classify(self._plan, self._kernels, batch, self._watermark)
        late = batch.slice(0, 0)
        reasons: list[str] = []
        if status.any():
            accepted = status == rules.ACCEPTED
            unused = np.isin(status, list(_REASONS))
            late = batch.filter(pa.array(unused))
            reasons = [_REASONS[s] for s in status[unused].tolist()]
            batch, slices = batch.filter(pa.array(accepted)), slices[accepted]
        if len(batch):
            self._table.add_rows(batch, slices)
        late = late.append_column(REASON, pa.array(reasons, pa.string()))
        counters = count_status(status) + self._kernels.counted()
        yield Emission(self._results([], []), late, counters)

    def merge(self, partials: pa.Table) -> None:
        """Take partials of slices that another task made."""
        self._table.add_partials(partials)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire every window with ``max_timestamp <= watermark`` once."""
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        last = LONG_MAX
        if watermark < rules.latest_tick(self._grid):
            last = max(rules.last_window_fired(watermark, self._grid), LONG_MIN)
        if last <= self._fired:
            return
        yield from self._fire(self._fired + 1, last)
        self._fired = last
        entries = self._table.entries()
        self._table.drop(rules.last_window(entries.slices, self._grid) > last)

    def _fire(self, low: int, high: int) -> Iterator[Emission]:
        entries = self._table.entries()
        if len(entries) == 0:
            return
        grid = self._grid
        first = max(low, rules.first_window(int(entries.slices.min()), grid))
        last = min(high, rules.last_window(int(entries.slices.max()), grid))
        if first > last:
            return
        for part, begin, end in self._pieces(entries, first, last):
            yield self._emit(part, begin, end)

    def _pieces(
        self, entries: Entries, first: int, last: int
    ) -> Iterator[tuple[Entries, int, int]]:
        """Halve a range of windows until each piece is small enough for one emission."""
        if first == last or self._count_windows(entries, first, last) <= EMISSION_WINDOWS:
            yield entries, first, last
            return
        middle = (first + last) // 2
        for begin, end in ((first, middle), (middle + 1, last)):
            part = self._within(entries, begin, end)
            if len(part):
                yield from self._pieces(part, begin, end)

    def _count_windows(self, entries: Entries, first: int, last: int) -> int:
        most: int = rules.last_window(0, self._grid) - rules.first_window(0, self._grid) + 1
        if most * len(entries) <= EMISSION_WINDOWS:
            return most * len(entries)  # a bound will do
        total: int = self._kernels.run(
            len(entries),
            lambda backend: backend.combine.total_windows(
                *_on_device(backend, entries), self._grid, first, last
            ),
        )
        return total

    def _within(self, entries: Entries, first: int, last: int) -> Entries:
        begin = rules.first_slice(first, self._grid)
        end = rules.first_slice(last, self._grid) + self._grid.span
        return self._table.select(entries, (entries.slices >= begin) & (entries.slices < end))

    def _emit(self, entries: Entries, first: int, last: int) -> Emission:
        results = self._kernels.run(
            len(entries), lambda backend: self._windows(backend, entries, first, last)
        )
        counters = Counters(fired=len(results)) + self._kernels.counted()
        return Emission(results, pa.table({}), counters)

    def _windows(self, backend: Backend, entries: Entries, first: int, last: int) -> pa.Table:
        found = backend.combine.windows(*_on_device(backend, entries), self._grid, first, last)
        if self._in_order:
            found = _by_number(backend, found)
        states = {
            column.partial: column.combine(backend, found, state)
            for column, state in zip(self._table.columns, entries.states, strict=True)
        }
        function = self._plan.query.function
        bound = function.bound if isinstance(function, Aggregates) else ()
        keys = self._table.keys.decode(entries.codes[backend.to_host(found.last)])
        bounds = [pa.array(backend.to_host(part)) for part in backend.combine.bounds(found)]
        values = [lower(aggregate, states) for aggregate in bound]
        return self._results([*keys, *bounds, *values], bounds[1:])

    def _results(self, columns: list[pa.Array], ends: list[pa.Array]) -> pa.Table:
        schema = self._plan.result_schema
        if self._trace:
            for field in TRACE:
                schema = schema.append(field)
        if not columns:
            return schema.empty_table()
        if self._trace:
            cause = pa.repeat("event_time", len(columns[0]))
            columns = [*columns, cause, pc.subtract(ends[0], 1)]
        return pa.table(columns, schema=schema)


def _on_device(backend: Backend, entries: Entries) -> tuple[Any, Any]:
    return backend.to_device(entries.codes), backend.to_device(entries.slices)


def _by_number(backend: Backend, found: Any) -> Any:
    """Return windows in order of their number (and end), keys in order of their codes."""
    numbers = backend.to_host(found.numbers)
    shifted = numbers - numbers.min(initial=LONG_MAX)
    if len(shifted) and shifted.max() < 1 << 16:
        shifted = shifted.astype(np.uint16)  # NumPy sorts 16 bits by radix
    order = backend.to_device(np.argsort(shifted, kind="stable"))
    return found.take(order)
