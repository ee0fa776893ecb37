"""Rows in a store that are appended and read again, but never changed: segments.

A call appends the rows that came in it as one segment and reads nothing. When there are several of
a level they are merged, as in a log-structured tree, into segments of the next level, which are cut
by slices: so a row is written again once for each factor of `_TOGETHER` in the number of calls,
until its segments are large. A segment whose slices are all over is forgotten unread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.store import Store, to_blob

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Describe = Callable[[int, int], Mapping[bytes, bytes]]

#: The columns of the index: which segments were written together, what a segment is called in the
#: store, and how often its rows were merged; how many they are, in how many bytes; the least and
#: the greatest slice.
_COLUMNS = ("together", "number", "level", "rows", "bytes", "least", "greatest")
#: So many times are segments written together until they are merged.
_TOGETHER = 8
#: Bytes in a store of segments that were written together and are not merged any more.
_LARGE = 1 << 24
#: Bytes in memory that become a segment, about: of the first level that was merged, by how much
#: more on each next one, and at most.
_PIECE, _LARGER, _LARGEST = 1 << 18, 4, 1 << 22


@dataclass
class _Index:
    """The segments: a value of each array for each. See `_COLUMNS`."""

    together: Ints
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
    wanted : callable, optional
        From rows that are merged to those that are kept; default: all.
    """

    def __init__(
        self, store: Store, kind: str, index: pa.Table, column: str, describe: Describe,
        wanted: Callable[[pa.Table], pa.Table] = lambda rows: rows,
    ) -> None:  # fmt: skip
        self._store, self._kind, self._column, self._describe = store, kind, column, describe
        self._wanted = wanted
        self._held = _Index(*(index[name].to_numpy() for name in _COLUMNS))

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

    def append(self, rows: pa.Table, over: int) -> None:
        """Keep rows; what is of a slice before ``over`` need not be kept any more."""
        if len(rows):
            self._write(rows, 0)
        while len(full := self._full()):
            merged = np.isin(self._held.together, full)
            level = int(self._held.level[merged][0]) + 1
            tables = [*self.load(merged)]
            rows = pa.concat_tables(tables, promote_options="default")  # who may be null may differ
            self.remove(merged)
            alive = rows.filter(pa.array(self._slices(rows) >= over))
            self._write(self._wanted(alive), level)

    def _full(self) -> Ints:
        """Return which segments, by what was written together, are to be merged.

        What is much larger than all others of its level waits for more of its size.
        """
        held = self._held
        runs, first, of = np.unique(held.together, return_index=True, return_inverse=True)
        size = np.bincount(of, held.bytes, len(runs))
        levels = np.where(size < _LARGE, held.level[first], -1)
        for level in np.unique(levels[levels >= 0]).tolist():
            full = np.flatnonzero(levels == level)
            full = full[np.argsort(size[full], kind="stable")]
            while len(full) and size[full[-1]] > _TOGETHER * size[full[:-1]].sum():
                full = full[:-1]
            if len(full) >= _TOGETHER:
                found: Ints = runs[full]
                return found
        return np.empty(0, np.int64)

    def _write(self, rows: pa.Table, level: int) -> None:
        """Write rows as segments, by their slices."""
        rows = rows.take(pa.array(np.argsort(self._slices(rows), kind="stable"))).combine_chunks()
        most = min(_PIECE * _LARGER ** max(level - 1, 0), _LARGEST) if level else _LARGEST
        each = max(1, -(-len(rows) * most // max(rows.nbytes, 1)))
        first = int(self._held.number.max(initial=-1)) + 1
        new = []
        for number, begin in enumerate(range(0, len(rows), each), first):
            part = rows.slice(begin, each)
            slices = self._slices(part)
            bounds = int(slices[0]), int(slices[-1])
            blob = to_blob(part.replace_schema_metadata(self._describe(*bounds)))
            self._store.write(self._kind, number, blob, held=0)
            new.append((first, number, level, len(part), len(blob), *bounds))
        columns = np.array(new, np.int64).reshape(-1, len(_COLUMNS)).T
        old = (getattr(self._held, name) for name in _COLUMNS)
        self._held = _Index(*map(np.concatenate, zip(old, columns, strict=True)))

    def _slices(self, rows: pa.Table) -> Ints:
        slices: Ints = rows.column(self._column).to_numpy()
        return slices
