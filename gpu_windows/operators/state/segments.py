"""Rows in a store that are appended and read again, but never changed: segments of time buckets.

A call appends the rows that came in it and reads nothing. Small segments of a bucket are merged, as
in a log-structured tree: a row is written again once for each factor of `_TOGETHER` in the number
of calls that brought rows, until its segment is large. A segment that is over is forgotten unread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.store import Store, to_blob

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Describe = Callable[[int, int], Mapping[bytes, bytes]]

#: The columns of the index: where a segment belongs and what it is called in the store; how often
#: its rows were merged; how many they are, in how many bytes; the least and the greatest slice.
_COLUMNS = ("bucket", "number", "level", "rows", "bytes", "least", "greatest")
#: Segments of a level that are merged into one of the next.
_TOGETHER = 16
#: Bytes of a segment that is not merged any more, and about how many rows of memory become one.
_LARGE, _MOST_BYTES = 1 << 20, 1 << 24


@dataclass
class _Index:
    """The segments: a value of each array for each. See `_COLUMNS`."""

    bucket: Ints
    number: Ints
    level: Ints
    rows: Ints
    bytes: Ints
    least: Ints
    greatest: Ints

    def __len__(self) -> int:
        return len(self.number)


class Segments:
    """The segments of a store that are of one kind.

    Parameters
    ----------
    store : Store
    kind : str
        What the store calls them.
    index : pyarrow.Table
        What it holds of them, as `index` gave it.
    column : str
        The rows' column of slices, int64, by which a segment is over.
    describe : callable
        From the least and the greatest slice of a segment to the metadata that it is given.
    """

    def __init__(
        self, store: Store, kind: str, index: pa.Table, column: str, describe: Describe
    ) -> None:
        self._store, self._kind, self._column, self._describe = store, kind, column, describe
        self._held = _Index(*(index[name].to_numpy() for name in _COLUMNS))
        self._next = int(self._held.number.max(initial=-1)) + 1

    @staticmethod
    def nothing() -> pa.Table:
        """Return the index of an empty store."""
        return pa.table({name: pa.array([], pa.int64()) for name in _COLUMNS})

    def index(self) -> pa.Table:
        """Return what the store holds now."""
        return pa.table({name: pa.array(getattr(self._held, name)) for name in _COLUMNS})

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._held.rows.sum())

    @property
    def slices(self) -> tuple[Ints, Ints]:
        """The least and the greatest slice of every segment."""
        return self._held.least, self._held.greatest

    def load(self, wanted: Flags) -> Iterator[pa.Table]:
        """Yield the rows of some segments; ``wanted`` has a value for each, as `slices`."""
        for number in self._held.number[wanted].tolist():
            yield self._store.load_listed(self._kind, number)

    def remove(self, gone: Flags) -> None:
        """Forget some segments, unread."""
        for number, size in zip(self._held.number[gone], self._held.bytes[gone], strict=True):
            self._store.remove(self._kind, int(number), held=int(size))
        self._held = _Index(*(getattr(self._held, name)[~gone] for name in _COLUMNS))

    def append(self, rows: pa.Table, width: int) -> None:
        """Keep rows; a bucket is of ``width`` slices."""
        buckets = rows.column(self._column).to_numpy() // width
        order = np.argsort(buckets, kind="stable")
        edges = np.flatnonzero(np.diff(buckets[order], prepend=buckets[order[0]] - 1)).tolist()
        rows = rows.take(pa.array(order))
        new: list[tuple[int, ...]] = []
        for begin, end in pairwise([*edges, len(rows)]):
            part = rows.slice(begin, end - begin)
            new += self._write(int(buckets[order[begin]]), 0, part)
        self._add(new)
        self._merge(buckets[order[edges]])

    def _merge(self, buckets: Ints) -> None:
        """Merge the small segments of some buckets where there are many of a level."""
        while True:
            held = self._held
            some = np.flatnonzero(np.isin(held.bucket, buckets) & (held.bytes < _LARGE))
            where = np.stack([held.bucket[some], held.level[some]], axis=1)
            groups, of, counts = np.unique(where, axis=0, return_inverse=True, return_counts=True)
            full = np.flatnonzero(counts >= _TOGETHER)
            if len(full) == 0:
                return
            new: list[tuple[int, ...]] = []
            gone = np.isin(np.arange(len(held)), some[np.isin(of, full)])
            for group in full.tolist():
                bucket, level = groups[group].tolist()
                here = np.isin(np.arange(len(held)), some[of == group])
                rows = pa.concat_tables(self.load(here)).combine_chunks()
                new += self._write(bucket, level + 1, rows)
            self.remove(gone)
            self._add(new)

    def _write(self, bucket: int, level: int, rows: pa.Table) -> Iterator[tuple[int, ...]]:
        """Write rows of a bucket in segments that are not too large; yield what is known."""
        count = max(1, -(-rows.nbytes // _MOST_BYTES))
        each = -(-len(rows) // count)
        for begin in range(0, len(rows), each):
            part = rows.slice(begin, each)
            number, self._next = self._next, self._next + 1
            slices = part.column(self._column).to_numpy()
            bounds = int(slices.min()), int(slices.max())
            blob = to_blob(part.replace_schema_metadata(self._describe(*bounds)))
            self._store.write(self._kind, number, blob, held=0)
            yield bucket, number, level, len(part), len(blob), *bounds

    def _add(self, new: list[tuple[int, ...]]) -> None:
        columns = np.array(new, np.int64).reshape(-1, len(_COLUMNS)).T
        old = (getattr(self._held, name) for name in _COLUMNS)
        self._held = _Index(*map(np.concatenate, zip(old, columns, strict=True)))
