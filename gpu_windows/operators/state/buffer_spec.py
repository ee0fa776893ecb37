"""What a buffer has to know of its rows: their times, their places, what is left of them."""

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

#: Bits of a hash that are a place: the upper ones.
_PLACE_BITS = 31


class KeyColumns(Enum):
    """What tells the key group of a row of a table."""

    #: Its key columns, under the names that the query has for them.
    NAMED = auto()
    #: Its key columns, which are called ``key0`` and so on.
    NUMBERED = auto()
    #: A column of its own.
    GROUP = auto()
    #: Nothing: every shard has all rows of the table.
    NONE = auto()


def all_rows(rows: pa.Table, *, are_oldest: bool) -> pa.Table:
    """Return rows as they are: a `Compact`."""
    del are_oldest
    return rows


def no_markers(rows: pa.Table) -> Flags:
    """Return that no row is a marker of another one."""
    return np.zeros(len(rows), np.bool_)


class Compact(Protocol):
    """Reduces rows that are merged to those that are still needed."""

    def __call__(self, rows: pa.Table, *, are_oldest: bool) -> pa.Table:
        """Return the needed rows; ``rows``: oldest first; ``are_oldest``: none are older."""


@dataclass(frozen=True)
class BufferSpec:
    """Properties of the rows of a buffer.

    Parameters
    ----------
    time : str
        The column of their times, int64.
    places : callable
        Returns their places: int64[n].
    compact : Compact
        Reduces rows that are merged; default: all of them are retained.
    are_markers : callable
        Returns which rows are markers of earlier rows; default: none are.
    in_order : bool
        Whether they are read in order of time only, those of all places together: then a large run
        has large blocks, for a store takes as long for a small one.
    learns : bool
        Whether a call that has read most blocks writes large ones, for the next one may, too.
    key_columns : KeyColumns
        What tells their key groups.
    numbers : sequence of str
        Columns of numbers that no two rows have: int64.
    to_ticks : callable
        Returns the first tick of a time, and the tick after a later one; default: times are ticks.
    """

    time: str
    places: Callable[[pa.Table], Ints]
    compact: Compact = all_rows
    are_markers: Callable[[pa.Table], Flags] = no_markers
    in_order: bool = False
    learns: bool = False
    key_columns: KeyColumns = KeyColumns.NAMED
    numbers: Sequence[str] = ()
    to_ticks: Callable[[int, int], tuple[int, int]] = lambda first, last: (first, last + 1)

    def times(self, rows: pa.Table) -> Ints:
        """Return the times of rows: int64[n]."""
        times: Ints = rows.column(self.time).to_numpy().astype(np.int64, copy=False)
        return times


def places_of(hashes: Ints) -> Ints:
    """Return the places of keys, given by their hashes: int64[n], from 0 on, below 2^31."""
    upper = np.ascontiguousarray(hashes).view(np.uint64) >> np.uint64(64 - _PLACE_BITS)
    return upper.astype(np.int64)


def one_place(rows: pa.Table) -> Ints:
    """Return the place of rows that are read by time alone: int64[n]."""
    return np.zeros(len(rows), np.int64)
