"""The windows of a machine in a store, by key: only those that a call needs are in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.panes.runner import Machine
from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.recalled import Recalled
from gpu_windows.operators.state.run_index import Kinds
from gpu_windows.operators.state.runs import HASH, TIMERS, KeyRuns
from gpu_windows.operators.state.store import Store
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.window_operator.layout import Settings

Ints = NDArray[np.int64]

#: What a store calls them, and the rows that they keep; and the times that keys wait for.
WINDOWS, ROWS = "windows", "rows"
TIMES = ("windows at", "windows at processing time")
#: What the metadata of an index tells: the columns of the rows that windows keep.
_SCHEMA = b"rows"


@dataclass(frozen=True)
class Held:
    """How many keys, windows and kept rows a store holds."""

    keys: int = 0
    windows: int = 0
    rows: int = 0


class StoredWindows:
    """Which windows of a machine are in memory and which are in a store.

    Parameters
    ----------
    machine : Machine
        Empty; what is needed is added.
    store : Store
    index : pyarrow.Table
        What the store holds, as `index` gave it.
    held : Held
        How much that is.
    """

    def __init__(self, machine: Machine, store: Store, index: pa.Table, held: Held) -> None:
        self._machine = machine
        self.store = store
        self._recalled = Recalled(KeyRuns(store, Kinds(WINDOWS, ROWS, TIMES), index, held.keys))
        self._stored, self._taken = np.array([held.windows, held.rows]), np.zeros(2, np.int64)
        known = (index.schema.metadata or {}).get(_SCHEMA)
        self._no_rows = None if known is None else _schema(known).empty_table()

    @staticmethod
    def nothing() -> pa.Table:
        """Return the index of an empty store."""
        return KeyRuns.nothing()

    def index(self) -> pa.Table:
        """Return what the store holds now."""
        index = self._recalled.runs.index()
        if self._no_rows is None:
            return index
        schema = self._no_rows.schema.serialize().to_pybytes()
        return index.replace_schema_metadata({**index.schema.metadata, _SCHEMA: schema})

    # ---- what a call needs

    def load_keys(self, codes: Ints) -> None:
        """Have all windows of some keys in memory."""
        self._take(self._recalled.of(self._machine.key_hashes()[codes]))

    def load_due(self, until: int, *, in_processing_time: bool = False) -> None:
        """Have all windows in memory of keys that have a timer up to some time."""
        self._take(self._recalled.due(until, in_processing_time=in_processing_time))

    def _take(self, found: Entries | None) -> None:
        if found is None:
            return
        rows = self._no_rows if found.kept is None else found.kept
        assert rows is not None, "an index tells the columns of rows"
        self._taken += self._counted(found)
        self._machine.restore([(found.table, rows)])

    def take_out(self) -> None:
        """Have all windows in memory, and none in the store."""
        self._take(self._recalled.due(LONG_MAX))
        self._recalled.runs.clear()

    # ---- what a call leaves

    def save(self, settings: Settings) -> None:
        """Write the windows of the keys that a call has looked for."""
        machine = self._machine
        if self._recalled.is_cleared:
            self._stored, self._taken = np.zeros((2, 2), np.int64)
        if len(machine.codes):
            self._no_rows = machine.no_rows
        entries = self._entries(settings)
        self._recalled.save(entries)
        now = self._counted(entries)
        self._stored, self._taken = self._stored - self._taken + now, now

    def _counted(self, entries: Entries) -> Ints:
        """Return how many windows some entries are, and how many rows they keep."""
        return np.array([len(entries), 0 if entries.kept is None else len(entries.kept)])

    def _entries(self, settings: Settings) -> Entries:
        """Return the windows in memory."""
        machine = self._machine
        hashes = machine.key_hashes()[machine.codes]
        windows, rows = machine.tables()
        added = (hashes, *machine.next_timers(settings))
        for name, values in zip((HASH, *TIMERS), added, strict=True):
            windows = windows.append_column(name, pa.array(values))
        return Entries(windows, rows if len(rows) else None)

    @property
    def held(self) -> Held:
        """How much the store holds."""
        return Held(self._recalled.runs.keys, *self._stored.tolist())

    def clear(self) -> None:
        """Forget everything."""
        self._recalled.clear()

    def next_timers(self) -> tuple[int | None, int | None]:
        """Return the times of the earliest timers of what is stored."""
        return self._recalled.next_timers()

    def size(self) -> dict[str, int]:
        """Return how much is in the store and not in memory."""
        windows, rows = (self._stored - self._taken).tolist()
        return {"windows": windows, "rows": rows}


def _schema(serialized: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(serialized))


# ---- versions 1 and 2 kept windows in buckets of keys: what there is of them is read at once


def is_in_buckets(index: pa.Table) -> bool:
    """Whether an index is of buckets of keys, as both operators of the buffer strategy had them."""
    return "bucket" in index.column_names


def moved(machine: Machine, store: Store, index: pa.Table) -> StoredWindows:
    """Take all windows out of the buckets of a store."""
    no_rows = _schema(index.schema.metadata[_SCHEMA]).empty_table() if len(index) else None
    found = []
    for bucket, rows in zip(index["bucket"].to_pylist(), index["rows"].to_pylist(), strict=True):
        windows = store.load_listed(WINDOWS, bucket)
        found.append((windows, store.load_listed(ROWS, bucket) if rows else no_rows))
        store.remove(WINDOWS, bucket)
        if rows:
            store.remove(ROWS, bucket)
    if found:
        machine.restore(found)
    return StoredWindows(machine, store, StoredWindows.nothing(), Held())
