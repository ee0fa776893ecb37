"""Sets of hashes, as sorted arrays without duplicates: int64[n].

NumPy's own functions of sets take several times as long: they sort again what is sorted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def distinct(values: Ints) -> Ints:
    """Return values as a set: sorted, each once."""
    values = np.sort(values, kind="stable")
    return values[np.flatnonzero(np.diff(values, prepend=~values[:1]))]


def union(one: Ints, other: Ints) -> Ints:
    """Return the union of two sets, which may have duplicates."""
    return distinct(np.concatenate([one, other]))


def among(values: Ints, keys: Ints) -> NDArray[np.bool_]:
    """Return whether each value, in any order, is in a set: bool[n]."""
    if len(keys) == 0:
        return np.zeros(len(values), np.bool_)
    found: NDArray[np.bool_] = keys[np.searchsorted(keys[:-1], values)] == values
    return found


def without(keys: Ints, others: Ints) -> Ints:
    """Return the difference of two sets."""
    return keys[~among(keys, others)]


def part_of(hashes: Ints, count: int) -> Ints:
    """Return the part of each hash, below ``count``, by its upper bits.

    The lower bits select the shard.
    """
    upper = as_unsigned(hashes) >> np.uint64(32)
    return ((upper * np.uint64(count)) >> np.uint64(32)).astype(np.int64)


def as_unsigned(hashes: Ints) -> NDArray[np.uint64]:
    """Return hashes as unsigned numbers, whose order is that of parts."""
    return np.ascontiguousarray(hashes).view(np.uint64)
