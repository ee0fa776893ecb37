"""Counted rows in a store, by key: how many a key had, and the slices of their numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import present
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.slices.count_table import CountTable
from gpu_windows.operators.state.entries import LISTS, Entries, lists_of
from gpu_windows.operators.state.keyed_table import HASH, TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: What a log calls the keys and their slices; nothing of them waits for a time.
COUNTED = "counted"
#: The column of the number of rows that a key had.
_COUNT = "count"


class StoredCounts:
    """The keys in a store, and which of them are in memory.

    Parameters
    ----------
    table : CountTable
        Empty; the keys of rows are added when these come.
    log : StateLog
    """

    def __init__(self, table: CountTable, log: StateLog) -> None:
        self._table, self.log = table, log
        self._keyed = KeyedTable(log, COUNTED, lambda each: {"slices": each.kept_count})
        table.load = self.load

    @property
    def elsewhere(self) -> int:
        """Number of slices in the log and not in memory."""
        return self._keyed.elsewhere["slices"]

    def load(self, codes: Ints) -> None:
        """Have some keys in memory."""
        keys = self._table.keys
        found = self._keyed.load(keys.hashes()[present(codes, keys.count)])
        if found is None:
            return
        keys = found.table.columns[: found.table.column_names.index(_COUNT)]
        counts = found.table.column(_COUNT).to_numpy()
        lists = found.table.column(LISTS).combine_chunks()
        lengths = to_lane(lists.value_lengths()).values
        self._table.recall(keys, counts, lengths, self._slices_of(found))

    def _slices_of(self, found: Entries) -> pa.Table | None:
        """Return the slices of entries, one key's after the other's; None if there are none."""
        if found.kept is None:
            return None
        return found.kept.take(found.table.column(LISTS).combine_chunks().flatten())

    def save(self) -> None:
        """Write the keys that are in memory."""
        table = self._table
        codes, counts, lengths, slices = table.counted()
        columns = {
            **{f"key{number}": column for number, column in enumerate(table.keys.decode(codes))},
            _COUNT: pa.array(counts),
            LISTS: lists_of(lengths),
            HASH: pa.array(table.keys.hashes()[codes]),
            **dict.fromkeys(TIMERS, pa.array(np.full(len(counts), LONG_MAX))),
        }
        self._keyed.save(Entries(pa.table(columns), slices if len(slices) else None))
