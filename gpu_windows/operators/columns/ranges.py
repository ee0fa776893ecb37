"""Ranges of an array: runs of elements, one after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def ranges(begins: Ints, lengths: Ints) -> Ints:
    """Return the places of ranges, one after the other."""
    ends = np.cumsum(lengths)
    places: Ints = np.repeat(begins - (ends - lengths), lengths)
    return places + np.arange(len(places))


def offsets(lengths: Ints) -> Ints:
    """Return where ranges of these lengths begin, and where the last one ends: int64[n + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
