"""The blobs in which slices lie in a store: what is known of each, and which are merged when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]
#: A row of `Blobs`.
Row = tuple[int, int, int, int, int]

#: The size of a blob of which nobody knows it: one that version 2 of the format wrote.
UNKNOWN = -1
#: So many blobs of one level become one.
MOST_ALIKE = 8


@dataclass(frozen=True)
class Blobs:
    """What is known of the blobs in a store, sorted by bucket and number.

    Parameters
    ----------
    bucket : int64[n]
        Which slices are in it, by time: ``slice // width``.
    number : int64[n]
        Under which the store holds it; of one bucket, the later rows are in the greater number.
    entries : int64[n]
        Partials in it, those of slices that are over too.
    size : int64[n]
        Its bytes, or `UNKNOWN`.
    least : int64[n]
        No slice of it before this one is alive, and a slice of its bucket that is the least one of
        the bucket's blobs is.
    """

    bucket: Ints
    number: Ints
    entries: Ints
    size: Ints
    least: Ints

    @classmethod
    def of(cls, index: pa.Table) -> Self:
        """Read the table that `to_table` made, or the one of version 2: a blob a bucket."""
        columns = {name: to_lane(index[name]).values for name in index.column_names}
        unknown = np.full(len(index), UNKNOWN)
        return cls(**{"number": columns["bucket"], "size": unknown, **columns})

    def to_table(self) -> pa.Table:
        """Return a table, a row each."""
        return pa.table({name: pa.array(getattr(self, name)) for name in _names()})

    @staticmethod
    def none() -> pa.Table:
        """Return the table of no blobs."""
        return pa.table({name: pa.array([], pa.int64()) for name in _names()})

    def __len__(self) -> int:
        return len(self.bucket)

    @property
    def first(self) -> int:
        """The least slice that is alive; LONG_MAX if there is none."""
        return int(self.least.min(initial=LONG_MAX))

    def known(self, place: int) -> int | None:
        """Return the bytes of a blob, if they are known."""
        size = int(self.size[place])
        return None if size == UNKNOWN else size

    def of_buckets(self, buckets: Ints) -> tuple[Ints, Ints]:
        """Return where the blobs of each bucket begin and end."""
        return np.searchsorted(self.bucket, buckets), np.searchsorted(
            self.bucket, buckets, side="right"
        )

    def alive_from(self, least: int, some: NDArray[np.bool_]) -> Self:
        """Return the blobs, the slices of ``some`` of them that are before ``least`` being over."""
        return replace(self, least=np.where(some, np.maximum(self.least, least), self.least))

    def changed(self, gone: Sequence[int], new: Sequence[Row]) -> Self:
        """Return the blobs without those at the places ``gone``, and with ``new``."""
        if not gone and not new:
            return self
        added = np.array(new, np.int64).reshape(-1, len(_names())).T
        columns = [
            np.concatenate([np.delete(getattr(self, name), np.array(gone, np.int64)), column])
            for name, column in zip(_names(), added, strict=True)
        ]
        order = np.lexsort((columns[1], columns[0]))
        return type(self)(*(column[order] for column in columns))


def _names() -> list[str]:
    return [field.name for field in fields(Blobs)]


def to_merge(older: Sequence[int], new: int, small: int) -> int:
    """Return with how many of the last blobs of its bucket a new one becomes one.

    A blob is of level 0 if it has less than ``small`` entries, and of one more for each factor of
    `MOST_ALIKE` beyond. Blobs become one where they are `MOST_ALIKE` of a level, and where one
    comes after some of lower levels. So from older to newer blobs levels never rise, and there are
    less than `MOST_ALIKE` of each: of n entries O(log n) blobs. Blobs that become one rise by a
    level, or else they have the same keys and become smaller. So an entry is written about once a
    level: three times in 300 calls that touch equally many.

    Parameters
    ----------
    older : sequence of int
        Entries of the blobs of the bucket, the oldest first.
    new : int
        Entries that came now.
    small : int
        Up to how many entries a blob costs about as much as an empty one.
    """
    levels = [_level(entries, small) for entries in older]
    left, size = len(older), new
    while True:
        level = _level(size, small)
        lower = _last_above(levels[:left], level - 1)
        alike = _last_above(levels[:lower], level)
        if lower - alike + 1 >= MOST_ALIKE:
            lower = alike
        if lower == left:
            return len(older) - left
        size += sum(older[lower:left])
        left = lower


def _level(entries: int, small: int) -> int:
    level = 0
    while entries >= small:
        entries //= MOST_ALIKE
        level += 1
    return level


def _last_above(levels: Sequence[int], most: int) -> int:
    """Return where the last levels begin that are ``most`` or less."""
    begin = len(levels)
    while begin and levels[begin - 1] <= most:
        begin -= 1
    return begin
