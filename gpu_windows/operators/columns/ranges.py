"""Consecutive ranges of an array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def ranges(begins: Ints, lengths: Ints) -> Ints:
    """Return the indices of all elements of ranges, range by range."""
    ends = np.cumsum(lengths)
    positions: Ints = np.repeat(begins - (ends - lengths), lengths)
    return positions + np.arange(len(positions))


def offsets(lengths: Ints) -> Ints:
    """Return where ranges of these lengths begin, and where the last one ends: int64[n + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
