"""The counts strategy: count windows are sliding windows over the row numbers of a key.

``count_window(size, slide)`` fires after every ``slide`` rows of a key, with its last ``size``
ones. So a row costs one update and a window one combination, however many windows overlap.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.columns.partials import entries_within
from gpu_windows.operators.counters import Counters, Rejected, rejected_rows
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.slices.count_table import CountTable, StoredCounts
from gpu_windows.operators.slices.firing import FiringOperator, Lengths
from gpu_windows.operators.slices.table import Entries, grid_of
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import ARRIVAL
from gpu_windows.rules import LONG_MIN

Ints = NDArray[np.int64]

#: Owner and names of the numbers saved in the log.
_OWNER, _NUMBERS = "count windows", ("next row",)
#: About how many bytes of partials of windows are combined at once.
_PIECE_BYTES = 1 << 29


class CountsOperator(FiringOperator, StatefulOperator[StoredCounts]):
    """Count windows of mergeable aggregates, fired by the row that fills them.

    Parameters
    ----------
    plan : WindowPlan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    _table: CountTable

    def __init__(self, plan: WindowPlan, kernels: Kernels, *, trace: bool = False) -> None:
        super().__init__(plan, kernels, CountTable(plan, kernels), trace=trace)
        self._grid = grid_of(plan)
        self._seen = 0  # rows

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Process rows in order of arrival; fire the windows that they fill, in that order."""
        self._table.add_rows(self._with_arrival(batch), LONG_MIN)
        results = self._fire()
        none = Rejected.none(len(batch))
        counters = none.counts() + Counters(fired=len(results)) + self._kernels.take_counters()
        yield Emission(results, rejected_rows(batch, none), counters)

    def _with_arrival(self, batch: pa.Table) -> pa.Table:
        """Return rows with their order of arrival in `ARRIVAL`, replacing one that is there."""
        names = [name for name in batch.column_names if name != ARRIVAL]
        arrival = pa.array(np.arange(self._seen, self._seen + len(batch)))
        self._seen += len(batch)
        return batch.select(names).append_column(ARRIVAL, arrival)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Do nothing: count windows have no time, and no row is late."""
        yield from ()

    def _restore_state(self, log: StateLog) -> StoredCounts:
        """Resume from the log: keys are loaded when rows of them arrive."""
        (self._seen,) = log.numbers(_OWNER, _NUMBERS) or (0,)
        return StoredCounts(self._table, log)

    def _save(self, stored: StoredCounts) -> None:
        """Write the touched keys."""
        stored.save()
        stored.log.set_numbers(_OWNER, dict(zip(_NUMBERS, (self._seen,), strict=True)))

    def _next_timers(self, stored: StoredCounts) -> Timers:
        """Return no timers: count windows have no time."""
        del stored
        return None, None

    def state_size(self) -> dict[str, int]:
        """Return the number of slices, in memory and in the log."""
        not_loaded = 0 if self._stored is None else self._stored.not_loaded
        return {"entries": self._table.entry_count + not_loaded}

    def _fire(self) -> pa.Table:
        filled, self._table.filled = self._table.filled, []
        codes = np.concatenate([np.empty(0, np.int64), *(codes for codes, _ in filled)])
        if len(codes) == 0:
            return self._schema.empty_table()
        ends = np.concatenate([numbers for _, numbers in filled]) + 1
        entries = self._table.entries()
        results = self._kernels.run(
            len(entries), lambda backend, each: self._windows(backend, each, entries, codes, ends)
        )
        last = rules.last_window(entries.slices, self._grid)
        is_closed = rules.end_of(last, self._grid) <= self._table.counts[entries.codes]
        self._table.retain(~is_closed)
        return results

    def _windows(
        self, backend: Backend, each: Map, entries: Entries, codes: Ints, ends: Ints
    ) -> pa.Table:
        """Return the results of windows given by key and row number of their end, in that order."""
        low = rules.first_window(int(entries.slices.min()), self._grid)
        high = rules.last_window(int(entries.slices.max()), self._grid)
        at = backend.to_device(entries.codes), backend.to_device(entries.slices)
        found = backend.combine.windows(*at, self._grid, low, high)
        found_codes = entries.codes[backend.to_host(found.last)]
        found_ends = backend.to_host(backend.combine.bounds(found)[1])
        order = _positions(found_codes, found_ends, codes, ends)
        limit = entries_within(self._table.columns, _PIECE_BYTES)
        lengths = Lengths(self._plan, self._table.columns, each)
        pieces = []
        for begin in range(0, len(order), limit):
            part = slice(begin, begin + limit)
            windows = found.take(backend.to_device(order[part]), backend.take)
            results = lengths.results(backend, entries, windows)
            keys = self._table.keys.decode(codes[part])
            firing = ("element", ends[part] // self._grid.slide - 1, "early")
            pieces.append(self._results(keys, [None, None], results, firing))
        return pa.concat_tables(pieces)


def _positions(codes: Ints, ends: Ints, wanted_codes: Ints, wanted_ends: Ints) -> Ints:
    """Return the index of each wanted (code, end) among distinct ones that contain all of them."""
    order = np.lexsort((ends, codes))
    count = len(codes)
    both = np.lexsort(
        (
            np.concatenate([np.zeros(count, np.int8), np.ones(len(wanted_codes), np.int8)]),
            np.concatenate([ends, wanted_ends]),
            np.concatenate([codes, wanted_codes]),
        )
    )
    is_wanted = both >= count
    places = np.empty(len(wanted_codes), np.int64)
    places[both[is_wanted] - count] = order[np.cumsum(~is_wanted)[is_wanted] - 1]
    return places
