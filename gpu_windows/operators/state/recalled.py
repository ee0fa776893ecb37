"""The keys of a store that a call has in memory: those that it asked for, each read once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.hashes import among, distinct, union, without
from gpu_windows.operators.state.runs import HASH, TIMERS, KeyRuns
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]


class Recalled:
    """Which keys of a store are in memory.

    Parameters
    ----------
    runs : KeyRuns
        The entries of all keys.

    Attributes
    ----------
    runs : KeyRuns
    """

    def __init__(self, runs: KeyRuns) -> None:
        self.runs = runs
        self._looked_for = self._known = np.empty(0, np.int64)  # hashes of keys
        self._is_cleared = self._has_all = False

    def of(self, keys: Ints) -> Entries | None:
        """Return the entries of some keys, by their hashes, but of those that are in memory.

        None if there are none.
        """
        missing = without(distinct(keys), self._looked_for)
        self._looked_for = union(self._looked_for, missing)
        return self._noted(self.runs.find(missing))

    def due(self, until: int, *, in_processing_time: bool = False) -> Entries | None:
        """Return the entries of keys that have a timer up to some time, but of those in memory.

        None if there are none. Up to LONG_MAX these are all entries.
        """
        if until == LONG_MAX:  # the end of time, which some wait for, and windows without an end
            found, self._has_all = self.runs.everything(), True
        else:
            keys = self.runs.take_due(until, in_processing_time=in_processing_time)
            found = self.runs.find(keys)
        if found is None:
            return None
        name = TIMERS[int(in_processing_time)]
        hashes, times = (found.table.column(each).to_numpy() for each in (HASH, name))
        keys = without(distinct(hashes[times <= until]), self._looked_for)
        self._looked_for = union(self._looked_for, keys)
        return self._noted(found.take(np.flatnonzero(among(hashes, keys))))

    def _noted(self, found: Entries | None) -> Entries | None:
        """Return entries after they were noted as known; None if there are none."""
        if found is None or len(found) == 0:
            return None
        self._known = union(self._known, found.table.column(HASH).to_numpy())
        return found

    def next_timers(self) -> tuple[int | None, int | None]:
        """Return the earliest times of event time and of processing time in the store."""
        event, processing = self.runs.next_timers()
        return None if event == LONG_MAX else event, None if processing == LONG_MAX else processing

    @property
    def is_cleared(self) -> bool:
        """Whether the store is to forget what it holds."""
        return self._is_cleared

    def clear(self) -> None:
        """Have the store forget what it holds when `save` is called."""
        self._is_cleared = True

    def save(self, entries: Entries) -> None:
        """Have the store hold these entries of the keys that are in memory, and no others."""
        if self._is_cleared or self._has_all:
            self.runs.clear()
            self._known, self._is_cleared, self._has_all = self._known[:0], False, False
        hashes = distinct(entries.table.column(HASH).to_numpy())
        if self.runs.keys:
            assert among(hashes, self._looked_for).all(), "keys are asked for before they change"
        self._looked_for = union(self._looked_for, hashes)
        self.runs.save(entries, self._looked_for, self._known)
        self._known = hashes
