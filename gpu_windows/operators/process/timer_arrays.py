"""Timers of keys as arrays: a set of (key code, time)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.cpu.keys import Encoder

Ints = NDArray[np.int64]

#: Number of timers, in excess of those that are set, before the others are dropped.
_SLACK = 1 << 16


class TimerArrays:
    """A set of timers; those of a key fire in order of time.

    Attributes
    ----------
    next_number : int
        Unused: timers of a key differ in their times, so they need no numbers.
    """

    next_number = 0

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._times, self._pairs = Encoder(), Encoder()  # a pair: code of key, code of time
        self._is_set = np.empty(0, np.bool_)  # by the code of a pair

    def __len__(self) -> int:
        return int(np.count_nonzero(self._is_set))

    def set(self, codes: Ints, times: Ints) -> None:
        """Set timers; the same one twice is one timer."""
        pair_codes = self._pair_codes(codes, times)
        self._is_set[pair_codes] = True

    def delete(self, codes: Ints, times: Ints) -> None:
        """Delete timers; those that are not set are ignored."""
        if len(self._is_set):
            pair_codes = self._pair_codes(codes, times)
            self._is_set[pair_codes] = False
            self._compact()

    def all(self) -> tuple[Ints, Ints]:
        """Return keys and times of all timers."""
        return self._decode(np.flatnonzero(self._is_set))

    def pop_due(self, until: int) -> tuple[Ints, Ints]:
        """Remove and return keys and times up to ``until``: by key, those of a key by time."""
        pair_codes = np.flatnonzero(self._is_set)
        codes, times = self._decode(pair_codes)
        due = times <= until
        self._is_set[pair_codes[due]] = False
        codes, times = codes[due], times[due]
        order = np.lexsort((times, codes))
        self._compact()
        return codes[order], times[order]

    def _pair_codes(self, codes: Ints, times: Ints) -> Ints:
        """Return the codes of pairs."""
        pairs = (codes << 32) | self._times.encode(np.ascontiguousarray(times))
        pair_codes = self._pairs.encode(pairs)
        more = self._pairs.count - len(self._is_set)
        if more:
            self._is_set = np.concatenate([self._is_set, np.zeros(more, np.bool_)])
        return pair_codes

    def _decode(self, pair_codes: Ints) -> tuple[Ints, Ints]:
        """Return keys and times of pairs."""
        pairs = self._pairs.values[pair_codes]
        return pairs >> 32, self._times.values[pairs & 0xFFFFFFFF]

    def _compact(self) -> None:
        """Drop timers that are no longer set, if they are many."""
        if len(self._is_set) > 2 * len(self) + _SLACK:
            codes, times = self.all()
            self._begin()
            self.set(codes, times)
