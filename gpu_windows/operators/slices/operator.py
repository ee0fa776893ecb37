"""The slices strategy: one update a row whatever size and slide; windows combine slices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.errors import LatePartialError
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.columns.keys import KeyEncoder, mask_of
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.partials import entries_within
from gpu_windows.operators.columns.units import drop_repeated
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.slices.firing import FiringOperator, Lengths
from gpu_windows.operators.slices.stored import StoredSlices
from gpu_windows.operators.slices.table import Entries, SliceTable, grid_of, lateness_grid
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.grouping import GROUPING_ID, GroupingSets
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import SLICE
from gpu_windows.rules import LONG_MAX, LONG_MIN

#: Owner and names of the numbers saved in the log.
_OWNER, _NUMBERS = "windows of slices", ("watermark", "fired")
#: Windows in one emission, about.
EMISSION_WINDOWS = 1 << 21
#: Bytes of the partials of the windows in one emission, about.
EMISSION_BYTES = 1 << 29


@dataclass(frozen=True)
class Grouped:
    """The entries of one grouping set, and the keys of their codes.

    Parameters
    ----------
    entries : Entries
        Sorted by (code, slice), each pair once.
    keys : KeyEncoder
        Of the keys that the grouping has.
    columns : tuple of int, optional
        Indices of its keys among all keys; None: all keys, and results have no `GROUPING_ID`.
    key_types : tuple of pyarrow.DataType
        Of all keys.
    """

    entries: Entries
    keys: KeyEncoder
    columns: tuple[int, ...] | None
    key_types: tuple[pa.DataType, ...]

    def decode(self, codes: NDArray[np.int64]) -> list[pa.Array]:
        """Return a column for each of all keys: null for keys that the grouping leaves out."""
        indices = range(len(self.key_types)) if self.columns is None else self.columns
        decoded = dict(zip(indices, self.keys.decode(codes) if indices else (), strict=True))
        return [
            decoded[index] if index in decoded else pa.nulls(len(codes), dtype)
            for index, dtype in enumerate(self.key_types)
        ]

    def ids(self, count: int) -> list[pa.Array]:
        """Return the column `GROUPING_ID` of ``count`` results, if there is one."""
        if self.columns is None:
            return []
        number = GroupingSets.id_of(self.columns, len(self.key_types))
        return [pa.repeat(pa.scalar(number, GROUPING_ID.type), count)]


class SlicesOperator(FiringOperator, StatefulOperator[StoredSlices]):
    """Event-time windows of mergeable aggregates, fired at the window's end.

    Parameters
    ----------
    plan : WindowPlan
    kernels : Kernels
    trace : bool
        Whether results carry the columns `TRACE`.
    in_order : bool
        Whether the windows of one advance come in order of their end.
    """

    def __init__(
        self, plan: WindowPlan, kernels: Kernels, *, trace: bool = False, in_order: bool = True
    ) -> None:
        super().__init__(plan, kernels, SliceTable(plan, kernels), trace=trace)
        self._in_order = in_order
        self._grid, self._units = grid_of(plan), plan.query.units
        self._changed_only = plan.query.changed_only
        self._fired = LONG_MIN

    def _restore_state(self, log: StateLog) -> StoredSlices:
        """Resume from the slices in the log and the last window that fired."""
        self._watermark, self._fired = log.numbers(_OWNER, _NUMBERS) or (
            self._watermark,
            self._fired,
        )
        return StoredSlices(self._table, log, self._slice_ticks, self._live)

    def _save(self, stored: StoredSlices) -> None:
        """Write the new partials and the last window that fired."""
        stored.save()
        numbers = (self._watermark, self._fired)
        stored.log.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))

    def _next_timers(self, stored: StoredSlices) -> Timers:
        """Return the last tick of the first non-empty window that has not fired."""
        first = stored.first_slice
        if first == LONG_MAX:
            return None, None
        number = max(rules.first_window(first, self._grid), self._fired + 1)
        return self._end_of(number) - 1, None

    def _end_of(self, number: int, grid: rules.Grid | None = None) -> int:
        return rules.tick_within(rules.end_of(number, grid or self._grid), self._units)

    def _slice_ticks(self, first: int, last: int) -> tuple[int, int]:
        """Return the first tick of slice ``first`` and the end of slice ``last``."""
        begin, end = (rules.slice_start(each, self._grid) for each in (first, last + 1))
        return rules.tick_within(begin, self._units), rules.tick_within(end, self._units)

    def state_size(self) -> dict[str, int]:
        """Return the number of (key, slice) entries.

        With a log, the number that it had when it was last saved; it may have several of a key and
        a slice, and some of slices that have expired.
        """
        return super().state_size() if self._stored is None else {"entries": len(self._stored)}

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire every window with ``max_timestamp <= watermark`` once."""
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        last = LONG_MAX  # the end of the input
        if watermark < LONG_MAX:
            complete = rules.last_complete_unit(int(watermark), self._units)
            last = max(rules.last_window_fired(complete, self._grid), LONG_MIN)
        if last <= self._fired:
            return
        if self._stored is not None:
            self._stored.load_until(rules.last_slice(last, self._grid))
        yield from self._fire(self._fired + 1, last)
        self._fired = last
        if self._stored is not None:
            self._stored.drop_before(self._live)
        else:
            self._table.drop_before(self._live)

    @property
    def _live(self) -> int:
        """The first slice of any window that has not fired; earlier slices have expired."""
        first = rules.first_slice(self._fired + 1, self._grid)
        return int(min(max(first, LONG_MIN), LONG_MAX))

    def merge(self, partials: pa.Table) -> None:
        """Add partials that another task made to the state.

        Raises
        ------
        LatePartialError
            If all windows of a slice have fired: its task knew an earlier watermark than this one.
        """
        first = int(to_numeric(partials.column(SLICE)).values.min(initial=LONG_MAX))
        if self._watermark > LONG_MIN and first < LONG_MAX:
            grid = lateness_grid(self._plan)
            end = self._end_of(rules.last_window(first, grid), grid)
            if end - 1 <= self._watermark:
                rule = f"partials are made of rows on time: later than {self._watermark}"
                raise LatePartialError(rule, value=f"those of a window that ends at {end}")
        super().merge(partials)

    def _fire(self, low: int, high: int) -> Iterator[Emission]:
        for grouped in _groupings(self._plan, self._table):
            yield from self._fire_grouped(grouped, low, high)

    def _fire_grouped(self, grouped: Grouped, low: int, high: int) -> Iterator[Emission]:
        entries = grouped.entries
        if len(entries) == 0:
            return
        grid = self._grid
        first_slice, last_slice = entries.reach
        first = max(low, rules.first_window(first_slice, grid))
        last = min(high, rules.last_window(last_slice, grid))
        if first > last:
            return
        if self._changed_only:
            entries = self._select_changed(entries, first, last)
            if len(entries) == 0:
                return
        for part, begin, end in self._pieces(entries, first, last):
            yield self._emit(replace(grouped, entries=part), begin, end)

    def _select_changed(self, entries: Entries, first: int, last: int) -> Entries:
        """Keep only the keys that have an entry in the last slice of a window of the range."""
        _, low, high = self._numbers(first, last)
        is_last = (entries.slices >= low) & (entries.slices <= high)
        is_changed = mask_of(entries.codes[is_last], int(entries.codes.max()) + 1)
        if is_changed.all():
            return entries
        return self._table.select(entries, is_changed[entries.codes])

    def _pieces(
        self, entries: Entries, first: int, last: int
    ) -> Iterator[tuple[Entries, int, int]]:
        """Halve a range of windows until each piece is small enough for one emission."""
        if first == last or self._count_windows(entries, first, last) <= self._max_windows:
            yield entries, first, last
            return
        middle = (first + last) // 2
        for begin, end in ((first, middle), (middle + 1, last)):
            part = self._within(entries, begin, end)
            if len(part):
                yield from self._pieces(part, begin, end)

    @property
    def _max_windows(self) -> int:
        """Limit of windows in one emission: fewer if aggregates have several lengths."""
        lengths = len({each.aggregate.recent for each in self._plan.query.function.built_in}) or 1
        limit = min(EMISSION_WINDOWS, entries_within(self._table.columns, EMISSION_BYTES))
        return max(1, limit // lengths)

    def _count_windows(self, entries: Entries, first: int, last: int) -> int:
        grid, low, high = self._numbers(first, last)
        per_slice: int = rules.last_window(0, grid) - rules.first_window(0, grid) + 1
        if per_slice * len(entries) <= self._max_windows:
            return per_slice * len(entries)  # an upper bound is enough
        total: int = self._kernels.run(
            len(entries),
            lambda backend, _: backend.combine.total_windows(
                *_on_device(backend, entries), grid, low, high
            ),
        )
        return total

    def _within(self, entries: Entries, first: int, last: int) -> Entries:
        begin = rules.first_slice(first, self._grid)
        end = rules.first_slice(last, self._grid) + self._grid.span
        return self._table.select(entries, (entries.slices >= begin) & (entries.slices < end))

    def _emit(self, grouped: Grouped, first: int, last: int) -> Emission:
        results = self._kernels.run(
            len(grouped.entries),
            lambda backend, each: self._windows(backend, each, grouped, first, last),
        )
        return Emission.of_results(results, self._kernels.take_counters())

    def _windows(
        self, backend: Backend, each: Map, grouped: Grouped, first: int, last: int
    ) -> pa.Table:
        entries = grouped.entries
        codes, slices = _on_device(backend, entries)
        found = backend.combine.windows(codes, slices, *self._numbers(first, last))
        if self._units.length > 1:
            found = drop_repeated(backend, found, self._grid, self._units)
        if self._in_order:
            found = backend.combine.by_number(found)
        at = [backend.take(codes, found.last), *backend.combine.bounds(found)]
        delivered = [backend.deliver(part) for part in at]
        lengths = Lengths(self._plan, self._table.columns, each)
        results = lengths.results(backend, replace(entries, codes=codes, slices=slices), found)
        of_windows, *bounds = map(np.asarray, delivered)
        if self._changed_only:
            bounds[0] = bounds[1] - self._grid.size
        keys = grouped.decode(of_windows)
        if self._units.length > 1:
            bounds = [rules.tick_of(each, self._units) for each in bounds]
        return self._results(keys, bounds, [*results, *grouped.ids(len(keys[0]))])

    def _numbers(self, first: int, last: int) -> tuple[rules.Grid, int, int]:
        """Return the grid and range by which windows are found; if changed only, of last slides."""
        if not self._changed_only:
            return self._grid, first, last
        shift = self._grid.span - 1
        return self._plan.query.last_slides, first + shift, last + shift


def _on_device(backend: Backend, entries: Entries) -> tuple[Any, Any]:
    return backend.to_device(entries.codes), backend.to_device(entries.slices)


def _groupings(plan: WindowPlan, table: SliceTable) -> Iterator[Grouped]:
    """Yield the entries of a table for each grouping set of the plan; without any, all entries."""
    query, entries = plan.query, table.entries()
    types = tuple(query.schema.field(name).type for name in query.keys)
    if query.grouping is None:
        yield Grouped(entries, table.keys, None, types)
        return
    if len(entries) == 0:
        return
    columns = table.keys.decode(np.arange(table.keys.count))
    for indices in query.grouping.sets:
        if len(indices) == len(types):
            yield Grouped(entries, table.keys, indices, types)
            continue
        keys = KeyEncoder([types[index] for index in indices] or [pa.bool_()])
        groups = np.zeros(table.keys.count, np.int64)
        if indices:
            groups = keys.encode([columns[index] for index in indices])
        yield Grouped(table.regroup(entries, groups), keys, indices, types)
