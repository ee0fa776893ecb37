"""The slices of a table in a store, by time: only those that a call needs are in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.operators.slices.table import SliceTable
from gpu_windows.operators.state.store import Contents, Store
from gpu_windows.planning.plan import SLICE
from gpu_windows.rules import LONG_MAX

#: What a store calls them.
KIND = "slices"
#: What the metadata of a bucket tells: the time of its slices, in ticks.
_TIME = (b"start", b"end")
#: Into how many buckets the slices of a window are cut, about.
_BUCKETS_A_WINDOW = 8


@dataclass(frozen=True)
class _Bucket:
    """What a bucket in the store holds: how many entries, and the least slice of them."""

    entries: int
    least: int


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
        columns = (buckets[name].to_pylist() for name in ("bucket", "entries", "least"))
        self._stored = {
            bucket: _Bucket(entries, least) for bucket, entries, least in zip(*columns, strict=True)
        }
        self._loaded: set[int] = set()

    @staticmethod
    def width_of(span: int) -> int:
        """Return how many slices a bucket has where a window has ``span``."""
        return max(1, span // _BUCKETS_A_WINDOW)

    @staticmethod
    def nothing() -> pa.Table:
        """Return the index of an empty store."""
        return pa.table({name: pa.array([], pa.int64()) for name in ("bucket", "entries", "least")})

    def load_until(self, last: int) -> None:
        """Have all slices up to ``last`` in memory."""
        self._load(bucket for bucket in self._stored if bucket * self.width <= last)

    def _load(self, buckets: Iterable[int]) -> None:
        for bucket in sorted(set(buckets) - self._loaded):
            self._loaded.add(bucket)
            self._table.add_partials(self.store.load_listed(KIND, bucket))

    def save(self) -> None:
        """Write the buckets that have changed."""
        touched = set(np.unique(self._table.fresh_slices() // self.width).tolist())
        self._load(touched & self._stored.keys())
        entries = self._table.entries()
        of_bucket = entries.slices // self.width
        for bucket in touched | self._loaded:
            places = np.flatnonzero(of_bucket == bucket)
            known = self._stored.get(bucket)
            if len(places) == 0:
                if known is not None:
                    self.store.remove(KIND, bucket)
                    del self._stored[bucket]
                continue
            if bucket in touched or known is None or known.entries != len(places):
                part = self._table.select(entries, places)
                time = dict(zip(_TIME, map(_text, self._table.time_of(part)), strict=True))
                table = self._table.to_arrow(part).replace_schema_metadata(time)
                self.store.save(KIND, bucket, table)
                self._stored[bucket] = _Bucket(len(places), int(part.slices.min()))

    def index(self) -> pa.Table:
        """Return what the store holds now."""
        buckets = sorted(self._stored)
        return pa.table(
            {
                "bucket": pa.array(buckets, pa.int64()),
                "entries": pa.array([self._stored[b].entries for b in buckets], pa.int64()),
                "least": pa.array([self._stored[b].least for b in buckets], pa.int64()),
            }
        )

    def __len__(self) -> int:
        return sum(bucket.entries for bucket in self._stored.values())

    @property
    def least(self) -> int:
        """The least slice in the store; LONG_MAX if it is empty."""
        return min((bucket.least for bucket in self._stored.values()), default=LONG_MAX)


def contents(bucket: pa.Table) -> Contents:
    """Tell what a bucket holds; its rows are those that the partials of its slices are made of."""
    keys, time = bucket.column_names.index(SLICE), bucket.schema.metadata or {}
    rows = pc.sum(bucket.column(keys + 1), min_count=0).as_py()  # `ROWS` is the first partial
    start, end = (int(time[name]) if name in time else None for name in _TIME)
    return Contents({"slices": len(bucket), "rows": rows}, bucket.columns[:keys], start, end)


def _text(number: int) -> bytes:
    return str(number).encode()
