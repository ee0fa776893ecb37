"""Specification of a row buffer: times, key prefixes and compaction of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Bits of the prefix of a hash: the upper ones.
_PREFIX_BITS = 31


class KeyColumns(Enum):
    """How a table identifies the key group of a row."""

    #: By key columns, with their names in the query.
    BY_NAME = auto()
    #: By key columns, named ``key0`` and so on.
    BY_NUMBER = auto()
    #: By a column of key groups.
    GROUP = auto()
    #: Not at all: every shard has all rows of the table.
    NONE = auto()


def all_rows(rows: pa.Table, *, are_oldest: bool) -> pa.Table:
    """Return all rows: a `Compact`."""
    del are_oldest
    return rows


def no_markers(rows: pa.Table) -> Flags:
    """Return that no row is a marker."""
    return np.zeros(len(rows), np.bool_)


class Compact(Protocol):
    """Compaction of rows: drops those that are no longer needed."""

    def __call__(self, rows: pa.Table, *, are_oldest: bool) -> pa.Table:
        """Return the needed rows of ``rows``, oldest first; ``are_oldest``: no rows are older."""


@dataclass(frozen=True)
class BufferSpec:
    """Properties of the rows of a buffer.

    Parameters
    ----------
    time : str
        The column of their times, int64.
    prefixes : callable
        Returns the prefixes of the hashes of their keys: int64[n].
    compact : Compact
        Compacts merged rows; default: all of them are retained.
    are_markers : callable
        Returns which rows are markers that change earlier rows; default: none are.
    in_order : bool
        Whether rows are only read by time, those of all keys together. Then a large run has large
        blocks, because a request to a store takes as long for a small one.
    adapts : bool
        Whether a call that has read most blocks writes large ones, because the next call may read
        most of them, too.
    key_columns : KeyColumns
        How key groups are identified.
    numbers : sequence of str
        Columns of numbers that are unique among rows: int64.
    to_ticks : callable
        Returns the first tick of the first time, and the end of the last; default: times are ticks.
    """

    time: str
    prefixes: Callable[[pa.Table], Ints]
    compact: Compact = all_rows
    are_markers: Callable[[pa.Table], Flags] = no_markers
    in_order: bool = False
    adapts: bool = False
    key_columns: KeyColumns = KeyColumns.BY_NAME
    numbers: Sequence[str] = ()
    to_ticks: Callable[[int, int], tuple[int, int]] = lambda first, last: (first, last + 1)

    def times(self, rows: pa.Table) -> Ints:
        """Return the times of rows: int64[n]."""
        times: Ints = rows.column(self.time).to_numpy().astype(np.int64, copy=False)
        return times


def hash_prefixes(hashes: Ints) -> Ints:
    """Return the prefixes of hashes of keys, their upper 31 bits: int64[n]."""
    upper = np.ascontiguousarray(hashes).view(np.uint64) >> np.uint64(64 - _PREFIX_BITS)
    return upper.astype(np.int64)


def no_prefix(rows: pa.Table) -> Ints:
    """Return the one prefix of rows that are read by time alone: zeros, int64[n]."""
    return np.zeros(len(rows), np.int64)
