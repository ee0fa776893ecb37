"""State of count windows in a log, by key: the number of rows, and the slices of row numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import present
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.slices.count_table import CountTable
from gpu_windows.operators.state.entries import LISTS, Entries, lists_of
from gpu_windows.operators.state.keyed_table import HASH, TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: Name of the table in the log; its keys have no timers.
COUNTED = "counted"
#: The column of the number of rows that a key had.
_COUNT = "count"


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
        keys = entries.table.columns[: entries.table.column_names.index(_COUNT)]
        counts = entries.table.column(_COUNT).to_numpy()
        lists = entries.table.column(LISTS).combine_chunks()
        lengths = to_numeric(lists.value_lengths()).values
        self._table.restore(keys, counts, lengths, self._slices_of(entries))

    def _slices_of(self, entries: Entries) -> pa.Table | None:
        """Return the slices of entries, key by key; None if there are none."""
        if entries.rows is None:
            return None
        return entries.rows.take(entries.table.column(LISTS).combine_chunks().flatten())

    def save(self) -> None:
        """Write the keys that are in memory."""
        table = self._table
        codes, counts, lengths, slices = table.snapshot()
        columns = {
            **{f"key{number}": column for number, column in enumerate(table.keys.decode(codes))},
            _COUNT: pa.array(counts),
            LISTS: lists_of(lengths),
            HASH: pa.array(table.keys.hashes()[codes]),
            **dict.fromkeys(TIMERS, pa.array(np.full(len(counts), LONG_MAX))),
        }
        self._keyed.save(Entries(pa.table(columns), slices if len(slices) else None))
