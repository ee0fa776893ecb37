"""State of count windows in a log, by key: the number of rows, and the slices of row numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import present
from gpu_windows.operators.columns.stored_keys import codes_of_entries, columns_of_keys
from gpu_windows.operators.slices.count_table import CountTable
from gpu_windows.operators.state.entries import LISTS, Entries, lists_of
from gpu_windows.operators.state.keyed_table import KeyedTable
from gpu_windows.operators.state.log import StateLog

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
