"""Directories of rows in a store: at which place and time each block of a run begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.store import Contents

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Directory:
    """The place and the time at which each block of a run begins, and its bytes.

    Parameters
    ----------
    place, time, bytes : int64[b]
    """

    place: Ints
    time: Ints
    bytes: Ints

    def before(self, places: Ints, times: Ints, *, or_at: bool) -> Ints:
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

    def blocks(self, places: Ints, first: Ints, last: Ints) -> Ints:
        """Return the blocks that may have rows of any of some places and times."""
        begin = np.maximum(self.before(places, first, or_at=False) - 1, 0)
        end = self.before(places, last, or_at=True)
        some = begin < end
        edges = np.zeros(len(self.place) + 1, np.int64)
        np.add.at(edges, begin[some], 1)
        np.add.at(edges, end[some], -1)
        return np.flatnonzero(np.cumsum(edges)[:-1])


def directory_kind(kind: str) -> str:
    """Return what a store calls the directories of runs whose blocks it calls ``kind``."""
    return f"{kind} blocks"


def directory_contents(table: pa.Table) -> Contents:
    """Tell what a directory holds."""
    return Contents({"blocks": len(table)})
