"""The slices of a table in a store, by time: only those that a call needs are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.operators.columns.batches import gather
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.slices.table import Entries, SliceTable
from gpu_windows.operators.state.store import Contents, Store
from gpu_windows.planning.plan import SLICE
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: What a store calls them.
KIND = "slices"
#: The columns of the index.
_COLUMNS = ("bucket", "entries", "least")
#: What the metadata of a bucket tells: the time of its slices, in ticks.
_TIME = (b"start", b"end")
#: Into how many buckets the slices of a window are cut, about.
_BUCKETS_A_WINDOW = 8
#: Entries of small buckets that are added to the table at once.
_ROWS_TOGETHER = 1 << 17


@dataclass(frozen=True)
class _Held:
    """The buckets in the store: their numbers, sorted; their entries; the least slice of each."""

    bucket: Ints
    entries: Ints
    least: Ints

    def changed(self, gone: Ints, written: Sequence[tuple[int, int, int]]) -> Self:
        """Return the buckets without those that are ``gone``, and with those ``written`` now."""
        keep = ~np.isin(self.bucket, gone)
        new = np.array(written, np.int64).reshape(-1, len(_COLUMNS)).T
        old = (getattr(self, name)[keep] for name in _COLUMNS)
        columns = [np.concatenate(pair) for pair in zip(old, new, strict=True)]
        order = np.argsort(columns[0])
        return type(self)(*(column[order] for column in columns))


class StoredSlices:
    """Which slices of a table are in memory and which are in a store.

    Parameters
    ----------
    table : SliceTable
        Empty; what is needed is added.
    store : Store
    width : int
        Slices in a bucket.
    buckets : pyarrow.Table
        What the store holds, as `index` gave it.
    """

    def __init__(self, table: SliceTable, store: Store, width: int, buckets: pa.Table) -> None:
        table.tracks = True
        self._table = table
        self.store = store
        self.width = width
        self._held = _Held(*(to_lane(buckets[name]).values for name in _COLUMNS))
        self._loaded = np.empty(0, np.int64)

    @staticmethod
    def width_of(span: int) -> int:
        """Return how many slices a bucket has where a window has ``span``."""
        return max(1, span // _BUCKETS_A_WINDOW)

    @staticmethod
    def nothing() -> pa.Table:
        """Return the index of an empty store."""
        return pa.table({name: pa.array([], pa.int64()) for name in _COLUMNS})

    def load_until(self, last: int) -> None:
        """Have all slices up to ``last`` in memory."""
        self._load(self._held.bucket[self._held.bucket <= last // self.width])

    def _load(self, buckets: Ints) -> None:
        wanted = np.setdiff1d(buckets, self._loaded, assume_unique=True)
        if len(wanted) == 0:
            return
        self._loaded = np.union1d(self._loaded, wanted)
        tables = (self.store.load_listed(KIND, bucket) for bucket in wanted.tolist())
        batches = chain.from_iterable(table.to_batches() for table in tables)
        for table in gather(batches, _ROWS_TOGETHER):
            self._table.add_partials(table)

    def save(self) -> None:
        """Write the buckets that have changed."""
        touched = np.unique(self._table.fresh_slices() // self.width)
        self._load(np.intersect1d(touched, self._held.bucket))
        self._loaded = np.union1d(self._loaded, touched)
        entries = self._table.entries()
        of_bucket = entries.slices // self.width
        order = np.argsort(of_bucket, kind="stable")
        edges = (np.searchsorted(of_bucket[order], self._loaded, s) for s in ("left", "right"))
        begins, ends = edges
        known = self._known(self._loaded)
        changed = np.isin(self._loaded, touched) | (known != ends - begins)
        written = []
        for at in np.flatnonzero(changed):
            bucket, places = int(self._loaded[at]), order[begins[at] : ends[at]]
            if len(places):
                written.append(self._write(bucket, self._table.select(entries, places)))
            elif known[at]:
                self.store.remove(KIND, bucket)
        self._held = self._held.changed(self._loaded[changed], written)

    def _known(self, buckets: Ints) -> Ints:
        """Return how many entries the store has of each bucket."""
        entries = np.zeros(len(buckets), np.int64)
        _, here, there = np.intersect1d(buckets, self._held.bucket, return_indices=True)
        entries[here] = self._held.entries[there]
        return entries

    def _write(self, bucket: int, part: Entries) -> tuple[int, int, int]:
        """Write a bucket; return what is known of it."""
        time = dict(zip(_TIME, map(_text, self._table.time_of(part)), strict=True))
        table = self._table.to_arrow(part).replace_schema_metadata(time)
        self.store.save(KIND, bucket, table)
        return bucket, len(part), int(part.slices.min())

    def index(self) -> pa.Table:
        """Return what the store holds now."""
        return pa.table({name: pa.array(getattr(self._held, name)) for name in _COLUMNS})

    def __len__(self) -> int:
        return int(self._held.entries.sum())

    @property
    def least(self) -> int:
        """The least slice in the store; LONG_MAX if it is empty."""
        return int(self._held.least.min(initial=LONG_MAX))


def contents(bucket: pa.Table) -> Contents:
    """Tell what a bucket holds; its rows are those that the partials of its slices are made of."""
    keys, time = bucket.column_names.index(SLICE), bucket.schema.metadata or {}
    rows = pc.sum(bucket.column(keys + 1), min_count=0).as_py()  # `ROWS` is the first partial
    start, end = (int(time[name]) if name in time else None for name in _TIME)
    return Contents({"slices": len(bucket), "rows": rows}, bucket.columns[:keys], start, end)


def _text(number: int) -> bytes:
    return str(number).encode()
