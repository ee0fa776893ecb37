"""The rows of two inputs in one list: a column says which is whose."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gpu_windows.functions.vectorised import WindowBatch

Ints = NDArray[np.int64]

#: Name of the column that says whether a row is of the left input, and of the time of both.
SIDE, TIME = "is_left", "event_time"
#: Name of a column that is true in every row of a side, and so null in those of the other.
HERE = "__here"


class Sides:
    """The rows of each side of a batch.

    Attributes
    ----------
    left, right : int64[n], int64[m]
        Their places in the batch, one window after the other.
    places : int64[n + m]
        The window of every row of the batch.
    """

    def __init__(self, batch: WindowBatch) -> None:
        is_left = batch.rows.column(SIDE).to_numpy()
        self.left, self.right = np.flatnonzero(is_left), np.flatnonzero(~is_left)
        self.places = batch.places
        self._windows = batch.windows
        self._counts = [
            np.bincount(self.places[side], minlength=len(batch)) for side in (self.left, self.right)
        ]

    @property
    def counts(self) -> list[Ints]:
        """The number of left and of right rows of every window."""
        return self._counts

    def pairs(self, most: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield the pairs, about ``most`` at a time: numbers among the left and the right rows."""
        rights = np.where(self._has_null_key(), 0, self._counts[1])
        begins = np.cumsum(self._counts[1]) - self._counts[1]
        window = self.places[self.left]
        ends = np.cumsum(rights[window])
        total = int(ends[-1]) if len(ends) else 0
        for begin in range(0, total, most):
            number = np.arange(begin, min(begin + most, total))
            i = np.searchsorted(ends, number, side="right")
            j = begins[window[i]] + number - (ends[i] - rights[window[i]])
            yield i, j

    def _has_null_key(self) -> NDArray[np.bool_]:
        keys = self._windows.columns[:-2]  # then come the bounds
        nulls = [key.is_null().to_numpy() for key in keys]
        found: NDArray[np.bool_] = np.logical_or.reduce(nulls)
        return found
