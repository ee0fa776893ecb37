"""The slices of a table in a store, by time: a call appends what it brings, and reads what fires.

Slices lie in buckets of time, and a bucket in blobs: each call that brings rows for a bucket adds a
blob of their partials, without a look at what is there. A key and a slice may so be in several
blobs; they are read when their windows fire, and merged, the older first. Now and then blobs are
made one (`gpu_windows.operators.slices.blobs.to_merge`), always neighbours in age: what is first
stays first, and floats are added in an order that does not depend on when a query was stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.operators.columns.batches import gather
from gpu_windows.operators.columns.partials import entries_within
from gpu_windows.operators.slices.blobs import Blobs, Row, to_merge
from gpu_windows.operators.slices.table import Entries, SliceTable
from gpu_windows.operators.state.store import Contents, Store
from gpu_windows.planning.plan import SLICE

Ints = NDArray[np.int64]

#: What a store calls them.
KIND = "slices"
#: What the metadata of the index tells: the number of the next blob, the first slice that is alive.
_NEXT, _LIVE = b"next", b"live"
#: What the metadata of a blob tells: its bucket, and the grid of its slices; of version 2 of the
#: format the time of its slices instead.
_BUCKET, _GRID, _TIME = b"bucket", b"grid", (b"start", b"end")
#: Into how many buckets the slices of a window are cut, about.
_BUCKETS_A_WINDOW = 8
#: Entries of small buckets that are added to the table at once, and merged at once.
_ROWS_TOGETHER = 1 << 17
#: Bytes of entries that cost about as much as the rest of a blob.
_SMALL_BYTES = 1 << 11


class StoredSlices:
    """The slices in a store, and which of them are in memory.

    The table holds what came since the last call of `save` or `load_until`, and after `load_until`
    what was read, until `drop_before`.

    Parameters
    ----------
    table : SliceTable
        Empty.
    store : Store
    grid : Grid
    width : int
        Slices in a bucket.
    live : int
        The first slice that is not over: all windows of those before have fired.
    index : pyarrow.Table
        What the store holds, as `index` gave it.
    """

    def __init__(
        self,
        table: SliceTable,
        store: Store,
        grid: rules.Grid,
        width: int,
        live: int,
        index: pa.Table,
    ) -> None:
        # configuration
        self._table = table
        self.store = store
        self.width = width
        self._told_grid = ",".join(map(str, grid)).encode()
        self._small = entries_within(table.columns, _SMALL_BYTES)
        # state
        self._live = live
        self._blobs = Blobs.of(index)
        told = index.schema.metadata or {}
        # Version 2 of the format numbered blobs by their buckets; the next numbers are greater.
        most = int(self._blobs.number.max(initial=-1))
        self._next = int(told[_NEXT]) if _NEXT in told else most + 1

    @staticmethod
    def width_of(span: int) -> int:
        """Return how many slices a bucket has where a window has ``span``."""
        return max(1, span // _BUCKETS_A_WINDOW)

    @staticmethod
    def nothing() -> pa.Table:
        """Return the index of an empty store."""
        return Blobs.none()

    def index(self) -> pa.Table:
        """Return what the store holds now."""
        told = {_NEXT: _text(self._next), _LIVE: _text(self._live)}
        return self._blobs.to_table().replace_schema_metadata(told)

    def __len__(self) -> int:
        """Return how many entries the store holds.

        A key and a slice may have several, and those that are over stay until their bucket is.
        """
        return int(self._blobs.entries.sum())

    @property
    def least(self) -> int:
        """The least slice in the store that is not over; LONG_MAX if there is none."""
        return self._blobs.first

    # ---- what fires

    def load_until(self, last: int) -> None:
        """Have all slices up to ``last`` in memory, and nothing that is not in the store too.

        Of a bucket all blobs are read or none, for they are merged in order.
        """
        self.save()
        blobs = self._blobs
        wanted = np.isin(blobs.bucket, blobs.bucket[blobs.least <= last])
        self._load(np.flatnonzero(wanted).tolist())

    def drop_before(self, live: int) -> None:
        """Forget what is in memory, and for good the slices before ``live``: they are over.

        What windows up to one of them are made of has been loaded. Buckets go as a whole.
        """
        slices = self._table.entries().slices
        self._table.clear()
        self._live = live
        blobs, bucket = self._blobs, live // self.width
        over, within = blobs.bucket < bucket, blobs.bucket == bucket
        if (blobs.least[within] < live).any():  # then it has been loaded
            rest = slices[(slices >= live) & (slices // self.width == bucket)]
            if len(rest):
                blobs = blobs.alive_from(int(rest.min()), within)
            else:
                over |= within
        gone = np.flatnonzero(over).tolist()
        self._remove(gone)
        self._blobs = blobs.changed(gone, [])

    def _load(self, places: Iterable[int]) -> None:
        """Add blobs to the table."""
        batches = chain.from_iterable(self._alive(place).to_batches() for place in places)
        for table in gather(batches, _ROWS_TOGETHER):
            self._table.add_partials(table)

    def _alive(self, place: int) -> pa.Table:
        """Read a blob, without the slices that are over."""
        table = self.store.load_listed(KIND, int(self._blobs.number[place]))
        is_whole = self._blobs.bucket[place] * self.width >= self._live
        return table if is_whole else alive(table, self._live)

    # ---- what a call leaves

    def save(self) -> None:
        """Write what came since the last time: a blob for each bucket, or one with some before."""
        if not self._table.waiting:
            return
        fresh = self._table.entries()
        self._table.clear()
        parts = self._parts(fresh)
        merged = [part for part in parts if part.older]
        new = self._write(fresh, [part for part in parts if not part.older])
        for together in _together(merged, self._blobs):
            new += self._merge(fresh, together)
        gone = [place for part in merged for place in part.older]
        self._remove(gone)
        self._blobs = self._blobs.changed(gone, new)

    def _parts(self, fresh: Entries) -> list[_Part]:
        """Return the parts of what came, with the blobs that each becomes one with."""
        parts = self._by_bucket(fresh)
        begins, ends = self._blobs.of_buckets(np.array([part.bucket for part in parts]))
        found = []
        for part, begin, end in zip(parts, begins, ends, strict=True):
            held = self._blobs.entries[begin:end].tolist()
            few = to_merge(held, len(part.places), self._small)
            found.append(replace(part, older=range(int(end) - few, int(end))))
        return found

    def _by_bucket(self, entries: Entries) -> list[_Part]:
        """Return the parts of some entries, in the order of their buckets."""
        of_entry = entries.slices // self.width
        order = np.argsort(of_entry, kind="stable")
        buckets, begins = np.unique(of_entry[order], return_index=True)
        return list(map(_Part, buckets.tolist(), np.split(order, begins[1:])))

    def _merge(self, fresh: Entries, parts: Sequence[_Part]) -> list[Row]:
        """Write parts of what came, each with the blobs before it, as one blob each."""
        self._load([place for part in parts for place in part.older])
        places = np.sort(np.concatenate([part.places for part in parts]))
        self._table.add(self._table.select(fresh, places))
        merged = self._table.entries()
        self._table.clear()
        return self._write(merged, self._by_bucket(merged))

    def _write(self, entries: Entries, parts: Sequence[_Part]) -> list[Row]:
        """Write a blob for each part of some entries; return what is known of the blobs."""
        if not parts:
            return []
        whole = self._table.select(entries, np.concatenate([part.places for part in parts]))
        table = self._table.to_arrow(whole)
        rows, begin = [], 0
        for part in parts:
            count = len(part.places)
            told = {_BUCKET: _text(part.bucket), _GRID: self._told_grid}
            blob = table.slice(begin, count).replace_schema_metadata(told)
            size = self.store.save(KIND, self._next, blob, held=0)
            least = int(whole.slices[begin : begin + count].min())
            rows.append((part.bucket, self._next, count, size, least))
            self._next, begin = self._next + 1, begin + count
        return rows

    def _remove(self, places: Iterable[int]) -> None:
        """Remove blobs from the store."""
        for place in places:
            number = int(self._blobs.number[place])
            self.store.remove(KIND, number, held=self._blobs.known(place))


@dataclass(frozen=True)
class _Part:
    """The entries of a bucket.

    Parameters
    ----------
    bucket : int
    places : int64[n]
        Which of some entries they are.
    older : range
        Places of the blobs that they become one with.
    """

    bucket: int
    places: Ints
    older: range = range(0)


def _together(parts: Iterable[_Part], blobs: Blobs) -> Iterator[list[_Part]]:
    """Yield parts that are merged by one call of a kernel, for most are small."""
    some, entries = [], 0
    for part in parts:
        some.append(part)
        entries += len(part.places) + int(blobs.entries[part.older.start : part.older.stop].sum())
        if entries >= _ROWS_TOGETHER:
            yield some
            some, entries = [], 0
    if some:
        yield some


# ---- for those who only look


def first_alive(head: pa.Table) -> int | None:
    """Return the first slice that is not over, as the head of an operator tells it, if it does."""
    told = (head.schema.metadata or {}).get(_LIVE)
    return None if told is None else int(told)


def alive(table: pa.Table, first: int) -> pa.Table:
    """Return the entries of slices that are not over."""
    return table.filter(pc.greater_equal(table.column(SLICE), first))


def contents(table: pa.Table) -> Contents:
    """Tell what a blob holds; its rows are those that the partials of its slices are made of."""
    keys, told = table.column_names.index(SLICE), table.schema.metadata or {}
    rows = pc.sum(table.column(keys + 1), min_count=0).as_py()  # `ROWS` is the first partial
    return Contents(
        {"rows": rows},
        table.columns[:keys],
        *_time(table, told),
        bucket=int(told[_BUCKET]) if _BUCKET in told else None,
        identity=table.columns[: keys + 1],
    )


def _time(table: pa.Table, told: Mapping[bytes, bytes]) -> tuple[int | None, int | None]:
    """Return the first tick of the earliest slice, and the end of the latest one."""
    if _GRID not in told:
        start, end = (int(told[name]) if name in told else None for name in _TIME)
        return start, end
    if len(table) == 0:
        return None, None
    grid = rules.Grid(*map(int, told[_GRID].split(b",")))
    ends = pc.min_max(table.column(SLICE)).as_py()
    return rules.slice_start(ends["min"], grid), rules.slice_start(ends["max"] + 1, grid)


def _text(number: int) -> bytes:
    return str(number).encode()
