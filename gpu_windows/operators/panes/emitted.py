"""Windows of sessions that have a row in the result table of a changelog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gpu_windows.operators.columns.ranges import offsets, ranges

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class EmittedWindows:
    """Windows with a row in the result table, by the live session that contains them.

    Parameters
    ----------
    begins : int64[s + 1]
        Where the windows of every session begin.
    start, last : int64[e]
        Their first and last ticks.
    """

    begins: Ints
    start: Ints
    last: Ints

    @classmethod
    def nothing(cls, sessions: int) -> Self:
        """Return no windows, for sessions that have not fired."""
        none = np.empty(0, np.int64)
        return cls(np.zeros(sessions + 1, np.int64), none, none)

    def take(self, index: Ints) -> Self:
        """Return the windows of some sessions."""
        lengths = np.diff(self.begins)[index]
        at = ranges(self.begins[index], lengths)
        return type(self)(offsets(lengths), self.start[at], self.last[at])

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the windows of sessions."""
        lengths = np.concatenate([np.diff(part.begins) for part in parts])
        start = np.concatenate([part.start for part in parts])
        return cls(offsets(lengths), start, np.concatenate([part.last for part in parts]))
