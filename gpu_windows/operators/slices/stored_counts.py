"""Counted rows in a store, by key: how many a key had, and the slices of their numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import present
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.slices.count_table import CountTable
from gpu_windows.operators.state.entries import LISTS, Entries, lists_of
from gpu_windows.operators.state.recalled import Recalled
from gpu_windows.operators.state.run_index import Kinds
from gpu_windows.operators.state.runs import HASH, TIMERS, KeyRuns
from gpu_windows.operators.state.store import Store
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: What a store calls the keys, and their slices; nothing of them waits for a time.
COUNTED, SLICES = "counted", "counted slices"
_TIMES = ("counted at", "counted at processing time")
#: The column of the number of rows that a key had.
_COUNT = "count"


class Held(NamedTuple):
    """How many keys and slices a store holds."""

    keys: int = 0
    slices: int = 0


class StoredCounts:
    """The keys in a store, and which of them are in memory.

    Parameters
    ----------
    table : CountTable
        Empty; the keys of rows are added when these come.
    store : Store
    index : pyarrow.Table
        What the store holds, as `index` gave it.
    held : Held
        How much that is.
    """

    def __init__(self, table: CountTable, store: Store, index: pa.Table, held: Held) -> None:
        self._table = table
        self.store = store
        self._recalled = Recalled(KeyRuns(store, Kinds(COUNTED, SLICES, _TIMES), index, held.keys))
        self._slices, self._taken = held.slices, 0  # in the store; those of them in memory
        table.load = self.load

    @staticmethod
    def nothing() -> pa.Table:
        """Return the index of an empty store."""
        return KeyRuns.nothing()

    def index(self) -> pa.Table:
        """Return what the store holds now."""
        return self._recalled.runs.index()

    @property
    def held(self) -> Held:
        """How much the store holds."""
        return Held(self._recalled.runs.keys, self._slices)

    @property
    def elsewhere(self) -> int:
        """Number of slices in the store and not in memory."""
        return self._slices - self._taken

    def load(self, codes: Ints) -> None:
        """Have some keys in memory."""
        keys = self._table.keys
        found = self._recalled.of(keys.hashes()[present(codes, keys.count)])
        if found is None:
            return
        keys = found.table.columns[: found.table.column_names.index(_COUNT)]
        counts = found.table.column(_COUNT).to_numpy()
        lists = found.table.column(LISTS).combine_chunks()
        lengths = to_lane(lists.value_lengths()).values
        self._table.recall(keys, counts, lengths, self._slices_of(found))
        self._taken += int(lengths.sum())

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
        self._recalled.save(Entries(pa.table(columns), slices if len(slices) else None))
        self._slices, self._taken = self._slices - self._taken + len(slices), len(slices)
