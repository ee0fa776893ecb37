"""The directory of a run: where each of its blocks begins, by place and time, and in bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.frames import pack_table, unpack_table
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]

#: Names of columns and of metadata.
_COLUMNS = ("place", "time", "size")
_SCHEMA, _FILTERS = b"schema", b"filters"


@dataclass(frozen=True)
class Directory:
    """Where blocks begin, and what they are.

    Parameters
    ----------
    place, time : int64[b]
        Of the first row of each block, in the order of (place, time).
    sizes : int64[b]
        Length of each block, in bytes.
    schemas : tuple of pyarrow.Schema
        Of the tables of a block.
    filters : tuple of int
        Lengths of the parts of the filter of keys, in bytes; none if there is no filter.
    """

    place: Ints
    time: Ints
    sizes: Ints
    schemas: tuple[pa.Schema, ...]
    filters: tuple[int, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.place)

    @cached_property
    def begins(self) -> Ints:
        """Offsets of the blocks behind the begin of their run, and of their end: int64[b + 1]."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])

    def count_before(self, places: Ints, times: Ints, *, or_at: bool) -> Ints:
        """Return how many blocks begin before each of some places and times, or at them."""
        low = np.searchsorted(self.place, places, "left")
        high = np.searchsorted(self.place, places, "right")
        while (low < high).any():
            middle = (low + high) >> 1
            begin = self.time[np.minimum(middle, len(self.time) - 1)]
            is_before = begin <= times if or_at else begin < times
            is_open = low < high
            low = np.where(is_open & is_before, middle + 1, low)
            high = np.where(is_open & ~is_before, middle, high)
        return low

    def find_blocks(self, places: Ints, first: Ints, last: Ints) -> Ints:
        """Return the blocks that may have rows of any of some places, within times: int64[k]."""
        begin = np.maximum(self.count_before(places, first, or_at=False) - 1, 0)
        end = self.count_before(places, last, or_at=True)
        some = begin < end
        edges = np.zeros(len(self.place) + 1, np.int64)
        np.add.at(edges, begin[some], 1)
        np.add.at(edges, end[some], -1)
        return np.flatnonzero(np.cumsum(edges)[:-1])

    def to_frame(self) -> bytes:
        """Return what `from_frame` reads."""
        metadata = {
            _SCHEMA + str(number).encode(): schema.serialize().to_pybytes()
            for number, schema in enumerate(self.schemas)
        }
        metadata[_FILTERS] = " ".join(map(str, self.filters)).encode()
        columns = [
            pa.array(self.place, pa.int32()),
            pa.array(self.time),
            pa.array(self.sizes),
        ]
        table = pa.Table.from_arrays(columns, names=list(_COLUMNS))
        return pack_table(table.replace_schema_metadata(metadata))

    @classmethod
    def from_frame(cls, frame: bytes | memoryview, where: str) -> Self:
        """Read a directory; ``where`` names it in errors.

        Raises
        ------
        StateCorruptedError
            If it is not what was written.
        """
        table = unpack_table(frame, where)
        metadata = table.schema.metadata
        schemas: list[pa.Schema] = []
        while (name := _SCHEMA + str(len(schemas)).encode()) in metadata:
            schemas.append(pa.ipc.read_schema(pa.py_buffer(metadata[name])))
        place, time, sizes = (table.column(name).to_numpy().astype(np.int64) for name in _COLUMNS)
        filters = tuple(map(int, metadata[_FILTERS].split()))
        return cls(place, time, sizes, tuple(schemas), filters)


def find_split_points(directories: Sequence[Directory], size: int) -> list[tuple[int, int]]:
    """Return where to cut runs so that what lies between two cuts has about ``size`` bytes.

    Returns
    -------
    list of (int, int)
        Places and times, ascending, at which a part ends and the next one begins. What has one
        place and time, and more bytes, is a part of its own.
    """
    if sum(int(each.begins[-1]) for each in directories) <= size:
        return []
    place = np.concatenate([each.place for each in directories])
    time = np.concatenate([each.time for each in directories])
    order = np.lexsort((time, place))
    total = np.cumsum(np.concatenate([each.sizes for each in directories])[order])
    ends = np.searchsorted(total, np.arange(size, int(total[-1]), size), "right")
    at = order[np.unique(np.minimum(ends, len(order) - 1))]
    cuts = Counter(zip(place[at].tolist(), time[at].tolist(), strict=True))
    ends_of_large = {next_point(*point) for point, count in cuts.items() if count > 1}
    return sorted({*cuts, *ends_of_large})


def next_point(place: int, time: int) -> tuple[int, int]:
    """Return the place and time right after a place and time."""
    return (place, time + 1) if time < LONG_MAX else (place + 1, LONG_MIN)
