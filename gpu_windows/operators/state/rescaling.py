"""Rescaling: the selection of the state of a new shard from that of an old one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.operators.state.buffer_spec import KeyColumns
from gpu_windows.operators.state.entries import lists_of

Ints = NDArray[np.int64]


class FindGroups(Protocol):
    """Returns the key groups of rows, given how these are identified: int64[n]."""

    def __call__(self, rows: pa.Table, columns: KeyColumns) -> Ints:
        """``columns``: not ``NONE``."""


@dataclass
class Rescaling:
    """Selection of the state that a new shard takes from an old one.

    Parameters
    ----------
    first, end : int
        Key groups of the new shard, ``end`` exclusive.
    groups : FindGroups
    offset : int
        Added to the numbers of rows, so that those of several old shards differ.
    is_first : bool
        Whether to take the tables that every shard has in full.
    """

    first: int
    end: int
    groups: FindGroups
    offset: int
    is_first: bool
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def select(self, rows: pa.Table, columns: KeyColumns) -> NDArray[np.bool_]:
        """Return which rows the new shard takes: bool[n]."""
        if columns is KeyColumns.NONE:
            return np.full(len(rows), self.is_first)
        groups = self.groups(rows, columns)
        selected: NDArray[np.bool_] = (groups >= self.first) & (groups < self.end)
        return selected

    def shift(self, rows: pa.Table, names: Sequence[str]) -> pa.Table:
        """Return rows with shifted numbers, which differ from those of other old shards."""
        for name in names if self.offset else ():
            index = rows.column_names.index(name)
            rows = rows.set_column(index, rows.schema.field(name), _add(rows[name], self.offset))
        return rows


def _add(column: pa.ChunkedArray, offset: int) -> pa.ChunkedArray:
    if not pa.types.is_large_list(column.type):
        return pc.add(column, offset)
    lists = column.combine_chunks()
    lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    return pa.chunked_array([lists_of(lengths, pc.add(lists.flatten(), offset))])
