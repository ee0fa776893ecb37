"""The windows of a machine in a store, by key: only those that a call needs are in memory.

Keys are put into buckets by their hash. There are more buckets the more windows there are, so that
a blob stays small and a call reads and writes what it touches, not all that is held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.panes.runner import Machine
from gpu_windows.operators.state.store import Store
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.window_operator.layout import Settings

Ints = NDArray[np.int64]

#: What a store calls them, and the rows that they keep.
WINDOWS, ROWS = "windows", "rows"
#: Windows in a bucket from which on there are more buckets, and how many of them there may be.
_MOST_WINDOWS, _MOST_BUCKETS = 1 << 14, 1 << 16
#: The bits of a hash that say which bucket; the lower ones have chosen the shard.
_SHIFT = 32


@dataclass(frozen=True)
class _Bucket:
    """What a bucket holds, and its earliest timers; LONG_MAX where it has none."""

    windows: int
    rows: int
    event: int
    processing: int


#: The fields of `_Bucket`, in their order, and their columns in a stored index, which stay as they
#: are, whatever fields are called: a checkpoint that was written with them is to be read.
_COLUMNS = {"windows": "windows", "rows": "rows", "event": "event", "processing": "clock"}
#: What the metadata of an index tells: the columns of the rows that windows keep.
_SCHEMA = b"rows"


class StoredWindows:
    """Which windows of a machine are in memory and which are in a store.

    Parameters
    ----------
    machine : Machine
        Empty; what is needed is added.
    store : Store
    index : pyarrow.Table
        What the store holds, as `index` gave it.
    count : int
        Number of buckets, a power of two.
    """

    def __init__(self, machine: Machine, store: Store, index: pa.Table, count: int) -> None:
        self._machine = machine
        self.store = store
        self.count = count
        known = (index.schema.metadata or {}).get(_SCHEMA)
        self._no_rows = None if known is None else _schema(known).empty_table()
        columns = (index[stored].to_pylist() for stored in _COLUMNS.values())
        held = (_Bucket(*each) for each in zip(*columns, strict=True))
        self._held = dict(zip(index["bucket"].to_pylist(), held, strict=True))
        self._loaded: set[int] = set()

    @staticmethod
    def nothing() -> pa.Table:
        """Return the index of an empty store."""
        return pa.table({name: pa.array([], pa.int64()) for name in ("bucket", *_COLUMNS.values())})

    def index(self) -> pa.Table:
        """Return what the store holds now."""
        buckets = sorted(self._held)
        found = {
            stored: [getattr(self._held[b], name) for b in buckets]
            for name, stored in _COLUMNS.items()
        }
        columns = {"bucket": buckets, **found}
        table = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
        if self._no_rows is None:
            return table
        schema = self._no_rows.schema.serialize().to_pybytes()
        return table.replace_schema_metadata({_SCHEMA: schema})

    # ---- what a call needs

    def load_keys(self, codes: Ints) -> None:
        """Have all windows of some keys in memory."""
        self._load(np.unique(self._buckets_of(codes)).tolist())

    def load_due(self, until: int, *, in_processing_time: bool = False) -> None:
        """Have all windows in memory that have a timer up to some time."""
        held = self._held.items()
        times = ((b, each.processing if in_processing_time else each.event) for b, each in held)
        self._load(b for b, time in times if time <= until)

    def _load(self, buckets: Iterable[int]) -> None:
        wanted = sorted(set(buckets) - self._loaded)
        self._loaded.update(wanted)
        found = [self._tables(bucket) for bucket in wanted if bucket in self._held]
        if found:
            self._machine.restore(found)

    def _tables(self, bucket: int) -> tuple[pa.Table, pa.Table]:
        """Return the windows of a bucket and the rows that they keep."""
        windows = self.store.load_listed(WINDOWS, bucket)
        has_rows = self._held[bucket].rows
        return windows, self.store.load_listed(ROWS, bucket) if has_rows else self._no_rows

    def _buckets_of(self, codes: Ints) -> Ints:
        of_keys: Ints = (self._machine.key_hashes() >> _SHIFT) & (self.count - 1)
        return of_keys[codes]

    # ---- what a call leaves

    def save(self, settings: Settings) -> None:
        """Write the buckets that a call has read."""
        if self._total() > self.count * _MOST_WINDOWS and self.count < _MOST_BUCKETS:
            self._split()
        machine = self._machine
        if len(machine.codes):
            self._no_rows = machine.no_rows
        of_bucket = self._buckets_of(machine.codes)
        order = np.argsort(of_bucket, kind="stable")
        event, processing = machine.next_timers(settings)
        loaded = sorted(self._loaded)
        begins, ends = (
            np.searchsorted(of_bucket[order], loaded, side) for side in ("left", "right")
        )
        for bucket, begin, end in zip(loaded, begins, ends, strict=True):
            places = order[begin:end]
            if len(places):
                windows, rows = machine.tables(places)
                self._put(bucket, windows, rows)
                times = (int(time[places].min()) for time in (event, processing))
                self._held[bucket] = _Bucket(len(places), len(rows), *times)
            else:
                self._remove(bucket)

    def _put(self, bucket: int, windows: pa.Table, rows: pa.Table) -> None:
        self.store.save(WINDOWS, bucket, windows)
        if len(rows):
            self.store.save(ROWS, bucket, rows)
        elif bucket in self._held and self._held[bucket].rows:
            self.store.remove(ROWS, bucket)

    def clear(self) -> None:
        """Forget everything."""
        self._loaded |= self._held.keys()

    def next_timers(self) -> tuple[int | None, int | None]:
        """Return the times of the earliest timers of what is stored."""
        event = min((each.event for each in self._held.values()), default=LONG_MAX)
        processing = min((each.processing for each in self._held.values()), default=LONG_MAX)
        return None if event == LONG_MAX else event, None if processing == LONG_MAX else processing

    def size(self) -> dict[str, int]:
        """Return how much is in the store and not in memory."""
        rest = [each for bucket, each in self._held.items() if bucket not in self._loaded]
        return {"windows": sum(e.windows for e in rest), "rows": sum(e.rows for e in rest)}

    def _total(self) -> int:
        return self.size()["windows"] + len(self._machine.codes)

    def _split(self) -> None:
        """Have as many buckets as there is need of; everything is written again."""
        self._load(list(self._held))
        for bucket in list(self._held):
            self._remove(bucket)
        while self._total() > self.count * _MOST_WINDOWS // 2 and self.count < _MOST_BUCKETS:
            self.count *= 2
        self._loaded = set(range(self.count))

    def _remove(self, bucket: int) -> None:
        held = self._held.pop(bucket, None)
        if held is not None:
            self.store.remove(WINDOWS, bucket)
            if held.rows:
                self.store.remove(ROWS, bucket)


def _schema(serialized: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(serialized))
