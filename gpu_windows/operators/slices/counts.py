"""The counts strategy: count windows are slices of the numbers of a key's rows.

``count_window(size, slide)`` fires after every ``slide`` rows of a key, with its last ``size``
ones: windows of that size and slide over row numbers instead of times. So a row costs one update
and a window one combination, whatever their ratio.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.aggregates.partials import Partial
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.columns.partials import State, entries_within
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.rejected import Rejected, given_back
from gpu_windows.operators.slices.count_table import CountTable
from gpu_windows.operators.slices.firing import FiringOperator
from gpu_windows.operators.slices.stored_counts import StoredCounts
from gpu_windows.operators.slices.table import Entries, grid_of
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import ARRIVAL
from gpu_windows.rules import LONG_MIN

Ints = NDArray[np.int64]

#: The numbers that are saved, and whose they are.
_OWNER, _NUMBERS = "count windows", ("next row",)
#: About how many bytes the partials of the windows take that are combined at once.
_PIECE_BYTES = 1 << 29


class CountsOperator(FiringOperator, StatefulOperator[StoredCounts]):
    """Count windows of mergeable aggregates, fired by the row that fills them.

    Parameters
    ----------
    plan : WindowPlan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether results must come in order of firing: they do in any case.
    """

    _table: CountTable

    def __init__(
        self,
        plan: WindowPlan,
        kernels: Kernels,
        *,
        trace: bool = False,
        in_order: bool = True,
    ) -> None:
        del in_order  # results always are
        super().__init__(plan, kernels, CountTable(plan, kernels), trace=trace)
        self._grid = grid_of(plan)
        self._seen = 0  # rows

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows, in order of arrival; fire the windows that they fill, in that order."""
        self._table.add_rows(self._numbered(batch), LONG_MIN)
        results = self._fire()
        none = Rejected.of(np.full(len(batch), rules.ACCEPTED, np.int8))
        counters = none.counts() + Counters(fired=len(results)) + self._kernels.counted()
        yield Emission(results, given_back(batch, none), counters)

    def _numbered(self, batch: pa.Table) -> pa.Table:
        """Return rows with their order of arrival, whichever columns the plan sorts them by."""
        names = [name for name in batch.column_names if name != ARRIVAL]
        arrival = pa.array(np.arange(self._seen, self._seen + len(batch)))
        self._seen += len(batch)
        return batch.select(names).append_column(ARRIVAL, arrival)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Do nothing: windows that are counted have no time, and no row comes too late."""
        yield from ()

    def _restore_state(self, log: StateLog) -> StoredCounts:
        """Know the keys that the log has: they are read when rows of them come."""
        (self._seen,) = log.numbers(_OWNER, _NUMBERS) or (0,)
        return StoredCounts(self._table, log)

    def _save(self, stored: StoredCounts) -> None:
        """Write the keys that rows came of."""
        stored.save()
        stored.log.set_numbers(_OWNER, dict(zip(_NUMBERS, (self._seen,), strict=True)))

    def _next_timers(self, stored: StoredCounts) -> Timers:
        """Return that nothing waits for a time."""
        del stored
        return None, None

    def state_size(self) -> dict[str, int]:
        """Return how many slices are held, in memory and in the store."""
        elsewhere = 0 if self._stored is None else self._stored.elsewhere
        return {"entries": self._table.waiting + elsewhere}

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
        over = rules.end_of(last, self._grid) <= self._table.counts[entries.codes]
        self._table.drop(~over)
        return results

    def _windows(
        self, backend: Backend, each: Map, entries: Entries, codes: Ints, ends: Ints
    ) -> pa.Table:
        """Return the results of the windows of some keys that end with some row, in that order."""
        low = rules.first_window(int(entries.slices.min()), self._grid)
        high = rules.last_window(int(entries.slices.max()), self._grid)
        at = backend.to_device(entries.codes), backend.to_device(entries.slices)
        found = backend.combine.windows(*at, self._grid, low, high)
        found_codes = entries.codes[backend.to_host(found.last)]
        found_ends = backend.to_host(backend.combine.bounds(found)[1])
        order = _places(found_codes, found_ends, codes, ends)
        most = entries_within(self._table.columns, _PIECE_BYTES)
        pieces = []
        for begin in range(0, len(order), most):
            part = slice(begin, begin + most)
            windows = found.take(backend.to_device(order[part]))
            states = self._combined(backend, each, windows, entries)
            keys = self._table.keys.decode(codes[part])
            firing = ("element", ends[part] // self._grid.slide - 1, "early")
            pieces.append(self._results(keys, [None, None], self._lower(states, each), firing))
        return pa.concat_tables(pieces)

    def _combined(
        self, backend: Backend, each: Map, windows: Any, entries: Entries
    ) -> dict[Partial, State]:
        """Return the partials of some windows."""
        columns = self._table.columns
        pairs = zip(columns, entries.states, strict=True)
        combined = each(lambda pair: pair[0].combine(backend, windows, pair[1]), pairs)
        return dict(zip((column.partial for column in columns), combined, strict=True))


def _places(codes: Ints, ends: Ints, wanted_codes: Ints, wanted_ends: Ints) -> Ints:
    """Return where each wanted (code, end), all of them there, is among others without doubles."""
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
