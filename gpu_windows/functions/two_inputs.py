"""The rows of two inputs united in one, with a column for the side of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_windows.functions.vector_window import WindowBatch

Ints = NDArray[np.int64]

#: Names of the column whether a row is of the left input, and of the time of both.
SIDE, TIME = "is_left", "event_time"
#: Name of a column that is true in copies of rows of a broadcast side: each shard has one, and only
#: one shard's counts in results.
COPY = "__copy"
#: Name of a column that is true in every row of a side, and null in those of the other.
HERE = "__here"
#: Names of columns of the left and of the right side that are never null in its rows: in a pair
#: they say whether it has a row of that side.
MARKS = ("__left_mark", "__right_mark")
#: Name of a column that is true in a row of a versioned side where its key is deleted.
DELETED = "__version_deleted"


class Sides:
    """The rows of each side of a batch.

    Attributes
    ----------
    left, right : int64[n], int64[m]
        Their row indices in the batch, one window after the other.
    places : int64[n + m]
        The window of every row of the batch, by index.
    counts : list of int64[w]
        The number of left and of right rows of every window.
    """

    def __init__(self, batch: WindowBatch) -> None:
        is_left = batch.rows.column(SIDE).to_numpy()
        self.left, self.right = np.flatnonzero(is_left), np.flatnonzero(~is_left)
        self.places = batch.places
        self.counts = [
            np.bincount(self.places[side], minlength=len(batch)) for side in (self.left, self.right)
        ]
