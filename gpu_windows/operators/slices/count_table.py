"""State of count windows, in memory and in a log: rows of each key, slices of row numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.keys import present
from gpu_windows.operators.columns.stored_keys import codes_of_entries, columns_of_keys
from gpu_windows.operators.counters import Rejected
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.slices.table import KeyedRows, Placed, SliceTable, grid_of
from gpu_windows.operators.state.entries import LISTS, Entries, lists_of
from gpu_windows.operators.state.keyed_table import KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import ARRIVAL

Ints = NDArray[np.int64]

#: Name of the table in the log; its keys have no timers.
COUNTED = "counted"
#: The column of the number of rows that a key had.
_COUNT = "count"


class CountTable(SliceTable):
    """The slices of some keys, by row number instead of time.

    Attributes
    ----------
    counts : int64[keys]
        Rows of every key so far.
    filled : list of (int64[m], int64[m])
        Key codes and numbers of the rows that fill a window since the list was last taken.
    load : callable, optional
        Loads keys, given by their codes, before rows of them are numbered.
    """

    _is_of_times = False

    def __init__(self, plan: WindowPlan, kernels: Kernels) -> None:
        super().__init__(replace(plan, order=(ARRIVAL,)), kernels)
        self._grid = grid_of(plan)
        self.counts: Ints = np.empty(0, np.int64)
        self.filled: list[tuple[Ints, Ints]] = []
        self.load: Callable[[Ints], None] | None = None

    def _with_codes(self, table: pa.Table) -> Iterator[KeyedRows]:
        for piece in super()._with_codes(table):
            if self.load is not None:
                self.load(piece.codes)
            codes, work = piece.codes, partial(_number_rows, piece.codes, self._all_counts())
            numbers, self.counts = self._kernels.run(len(piece), work)
            fills = (numbers + 1) % self._grid.slide == 0
            self.filled.append((codes[fills], numbers[fills]))
            yield KeyedRows(piece.rows, codes, len(self.counts), numbers)

    def _all_counts(self) -> Ints:
        """Return the row counts of all keys: 0 for new ones."""
        new = np.zeros(self.keys.count - len(self.counts), np.int64)
        return np.concatenate([self.counts, new])

    # ---- to and from the log

    def snapshot(self) -> tuple[Ints, Ints, Ints, pa.Table]:
        """Return the codes of keys that had rows, their row counts, slice counts, and slices."""
        entries, codes = self.entries(), np.flatnonzero(self.counts)
        lengths = np.bincount(entries.codes, minlength=len(self.counts))
        slices = pa.table(self.columns_without_keys(entries.slices, entries.states))
        return codes, self.counts[codes], lengths[codes], slices

    def restore(self, codes: Ints, counts: Ints, lengths: Ints, slices: pa.Table | None) -> None:
        """Add keys that have no state here, given as `snapshot` returns them."""
        self.counts = self._all_counts()
        self.counts[codes] = counts
        if slices is not None:
            self.add(self.from_arrow(np.repeat(codes, lengths), slices))

    def classify(
        self, backend: Backend, piece: KeyedRows, watermark: int
    ) -> tuple[Placed, Rejected]:
        """Return the slice of every row; a row that belongs to no window is in a gap."""
        del watermark
        slices = rules.slice_of(piece.numbers, self._grid)
        gaps = np.broadcast_to(rules.is_gap(slices, self._grid), len(piece))
        status = np.where(gaps, rules.GAP, rules.ACCEPTED).astype(np.int8)
        return Placed(backend.to_device(slices)), Rejected.of(status)


def _number_rows(codes: Ints, counts: Ints, backend: Backend, _: Map) -> tuple[Ints, Ints]:
    """Return the numbers of rows within their keys, and the keys' row counts after them."""
    numbers, after = backend.keys.number(backend.to_device(codes), backend.to_device(counts))
    return backend.to_host(numbers), backend.to_host(after)


class StoredCounts:
    """The keys in a log, and which of them are in memory.

    Parameters
    ----------
    table : CountTable
        Empty; it gets keys when rows of them arrive.
    log : StateLog
    """

    def __init__(self, table: CountTable, log: StateLog) -> None:
        self._table, self.log = table, log
        self._keyed = KeyedTable(log, COUNTED, lambda each: {"slices": each.row_count})
        table.load = self.load

    @property
    def not_loaded(self) -> int:
        """Number of slices in the log and not in memory."""
        return self._keyed.not_loaded["slices"]

    def load(self, codes: Ints) -> None:
        """Load some keys, given by their codes, if they are not in memory."""
        keys = self._table.keys
        entries = self._keyed.load(keys.hashes()[present(codes, keys.count)])
        if entries is None:
            return
        counts = entries.table.column(_COUNT).to_numpy()
        loaded = codes_of_entries(keys, entries.table)
        self._table.restore(loaded, counts, entries.list_lengths, entries.listed_rows)

    def save(self) -> None:
        """Write the keys that are in memory."""
        table = self._table
        codes, counts, lengths, slices = table.snapshot()
        columns = {
            **columns_of_keys(table.keys, codes),
            _COUNT: pa.array(counts),
            LISTS: lists_of(lengths),
        }
        self._keyed.save(Entries(pa.table(columns), slices if len(slices) else None))
