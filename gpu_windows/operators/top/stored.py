"""First rows of keys in a store; those of the keys of a call are in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.stored_keys import codes_of_entries, columns_of_keys
from gpu_windows.operators.state.entries import LISTS, Entries, lists_of
from gpu_windows.operators.state.keyed_table import TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.top.top_rows import SlotRows, TopRows
from gpu_windows.planning.kinds.top import TopPlan
from gpu_windows.rules import LONG_MAX, add_saturating

Ints = NDArray[np.int64]

#: Table name of keys and their first rows in a log; the timer of a key is its expiry.
KEYS = "top keys"


class StoredTop:
    """The first rows of keys in a store.

    Parameters
    ----------
    plan : TopPlan
    keys : KeyEncoder
    log : StateLog
        Empty, or as `save` wrote it.

    Attributes
    ----------
    top_rows : TopRows
        The first rows of the keys in memory.
    """

    def __init__(self, plan: TopPlan, keys: KeyEncoder, log: StateLog) -> None:
        self._keys = keys
        self._time_to_live = plan.query.top.time_to_live
        self.top_rows = TopRows(plan.query.top, top_schema(plan))
        self._table = KeyedTable(log, KEYS, lambda each: {"rows": each.row_count})
        self._until = np.empty(0, np.int64)  # by code: when a key expires

    def load(self, codes: Ints) -> None:
        """Load some keys; ``codes`` has each once."""
        self._add_entries(self._table.load(self._keys.hashes()[codes]))

    def touch(self, codes: Ints, time: int) -> None:
        """Restart the time to live of some keys at a processing time."""
        self._grow()
        self._until[codes] = (
            LONG_MAX if self._time_to_live is None else add_saturating(time, self._time_to_live)
        )

    def expire(self, time: int) -> None:
        """Remove the keys that have expired."""
        self._add_entries(self._table.load_due(time, in_processing_time=True))
        self.top_rows.remove_keys(np.flatnonzero(self._until <= time))

    def _add_entries(self, found: Entries | None) -> None:
        if found is None:
            return
        table = found.table
        codes = codes_of_entries(self._keys, table)
        lengths, rows = found.list_lengths, found.listed_rows
        begins = np.cumsum(lengths) - lengths
        assert rows is not None, "a stored key has rows"
        slots = np.arange(len(rows)) - np.repeat(begins, lengths) + 1
        self._grow()
        self._until[codes] = table.column(TIMERS[1]).to_numpy()
        self.top_rows.load_rows(SlotRows(np.repeat(codes, lengths), slots, rows))

    def _grow(self) -> None:
        """Extend the array of expiry times to all keys."""
        more = self._keys.count - len(self._until)
        if more > 0:
            self._until = np.concatenate([self._until, np.full(more, LONG_MAX)])

    def save(self) -> None:
        """Write the keys that are in memory."""
        first = self.top_rows.first
        begins = np.flatnonzero(np.diff(first.codes, prepend=-1))
        codes = first.codes[begins]
        lengths = np.diff(np.append(begins, len(first)))
        columns: dict[str, Any] = {
            **columns_of_keys(self._keys, codes),
            LISTS: lists_of(lengths),
            TIMERS[1]: pa.array(self._until[codes]),
        }
        self._table.save(Entries(pa.table(columns), first.table))

    def next_expiry(self) -> int | None:
        """Return the processing time at which the next stored key expires."""
        return self._table.next_timers()[1]

    def sizes(self) -> dict[str, int]:
        """Return the number of keys and rows."""
        return {
            "keys": self._table.keys,
            "rows": self._table.not_loaded["rows"] + len(self.top_rows),
        }


def top_schema(plan: TopPlan) -> pa.Schema:
    """Return the schema of stored rows; the time is int64 ticks."""
    query = plan.query
    fields = map(query.schema.field, plan.query.top.columns)
    return pa.schema(
        [pa.field(f.name, pa.int64() if f.name == query.time else f.type) for f in fields]
    )
