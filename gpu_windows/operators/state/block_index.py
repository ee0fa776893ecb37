"""The block index of a run: first prefix and time of each block, and its length in bytes."""

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

#: Names of columns and of metadata in files.
_COLUMNS = ("place", "time", "size")
_SCHEMA, _FILTERS = b"schema", b"filters"


@dataclass(frozen=True)
class BlockIndex:
    """The blocks of a run.

    Parameters
    ----------
    prefix, time : int64[b]
        Of the first row of each block, in the order of (prefix, time); prefix of the hash of its
        key.
    sizes : int64[b]
        Length of each block, in bytes.
    schemas : tuple of pyarrow.Schema
        Of the tables of a block.
    filters : tuple of int
        Lengths of the parts of the key filter, in bytes; empty without a filter.
    """

    prefix: Ints
    time: Ints
    sizes: Ints
    schemas: tuple[pa.Schema, ...]
    filters: tuple[int, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.prefix)

    @cached_property
    def begins(self) -> Ints:
        """Offsets of the blocks in their run, and of the end of the last one: int64[b + 1]."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])

    def count_before(self, prefixes: Ints, times: Ints, *, or_at: bool) -> Ints:
        """Return how many blocks begin before (or at) each of some prefixes and times."""
        low = np.searchsorted(self.prefix, prefixes, "left")
        high = np.searchsorted(self.prefix, prefixes, "right")
        while (low < high).any():
            middle = (low + high) >> 1
            begin = self.time[np.minimum(middle, len(self.time) - 1)]
            is_before = begin <= times if or_at else begin < times
            is_open = low < high
            low = np.where(is_open & is_before, middle + 1, low)
            high = np.where(is_open & ~is_before, middle, high)
        return low

    def find_blocks(self, prefixes: Ints, first: Ints, last: Ints) -> Ints:
        """Return the blocks that may have rows of some prefixes within times: int64[k]."""
        begin = np.maximum(self.count_before(prefixes, first, or_at=False) - 1, 0)
        end = self.count_before(prefixes, last, or_at=True)
        some = begin < end
        edges = np.zeros(len(self.prefix) + 1, np.int64)
        np.add.at(edges, begin[some], 1)
        np.add.at(edges, end[some], -1)
        return np.flatnonzero(np.cumsum(edges)[:-1])

    def to_frame(self) -> bytes:
        """Return the frame that `from_frame` reads."""
        metadata = {
            _SCHEMA + str(number).encode(): schema.serialize().to_pybytes()
            for number, schema in enumerate(self.schemas)
        }
        metadata[_FILTERS] = " ".join(map(str, self.filters)).encode()
        columns = [
            pa.array(self.prefix, pa.int32()),
            pa.array(self.time),
            pa.array(self.sizes),
        ]
        table = pa.Table.from_arrays(columns, names=list(_COLUMNS))
        return pack_table(table.replace_schema_metadata(metadata))

    @classmethod
    def from_frame(cls, frame: bytes | memoryview, where: str) -> Self:
        """Read a block index; ``where`` names it in errors.

        Raises
        ------
        StateCorruptedError
            If the bytes are damaged.
        """
        table = unpack_table(frame, where)
        metadata = table.schema.metadata
        schemas: list[pa.Schema] = []
        while (name := _SCHEMA + str(len(schemas)).encode()) in metadata:
            schemas.append(pa.ipc.read_schema(pa.py_buffer(metadata[name])))
        prefix, time, sizes = (table.column(name).to_numpy().astype(np.int64) for name in _COLUMNS)
        filters = tuple(map(int, metadata[_FILTERS].split()))
        return cls(prefix, time, sizes, tuple(schemas), filters)


def find_split_points(indexes: Sequence[BlockIndex], size: int) -> list[tuple[int, int]]:
    """Return where to split runs into parts of about ``size`` bytes.

    Returns
    -------
    list of (int, int)
        Prefixes and times, ascending, at which a part ends and the next one begins. Rows of one
        prefix and time that have more bytes are a part of their own.
    """
    if sum(int(each.begins[-1]) for each in indexes) <= size:
        return []
    prefix = np.concatenate([each.prefix for each in indexes])
    time = np.concatenate([each.time for each in indexes])
    order = np.lexsort((time, prefix))
    total = np.cumsum(np.concatenate([each.sizes for each in indexes])[order])
    ends = np.searchsorted(total, np.arange(size, int(total[-1]), size), "right")
    at = order[np.unique(np.minimum(ends, len(order) - 1))]
    cuts = Counter(zip(prefix[at].tolist(), time[at].tolist(), strict=True))
    ends_of_large = {next_point(*point) for point, count in cuts.items() if count > 1}
    return sorted({*cuts, *ends_of_large})


def next_point(prefix: int, time: int) -> tuple[int, int]:
    """Return the next possible (prefix, time)."""
    return (prefix, time + 1) if time < LONG_MAX else (prefix + 1, LONG_MIN)
