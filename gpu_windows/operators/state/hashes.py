"""Sets of hashes, as sorted arrays without duplicates: int64[n].

NumPy's own functions of sets take several times as long: they sort again what is sorted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def distinct(values: Ints) -> Ints:
    """Return the set of some values."""
    values = np.sort(values, kind="stable")
    return values[np.flatnonzero(np.diff(values, prepend=~values[:1]))]


def union(one: Ints, other: Ints) -> Ints:
    """Return what is in one of two sets; they may have duplicates."""
    return distinct(np.concatenate([one, other]))


def among(values: Ints, keys: Ints) -> NDArray[np.bool_]:
    """Tell of each of some values, in any order, whether it is in a set."""
    if len(keys) == 0:
        return np.zeros(len(values), np.bool_)
    found: NDArray[np.bool_] = keys[np.searchsorted(keys[:-1], values)] == values
    return found


def without(keys: Ints, others: Ints) -> Ints:
    """Return what is in a set and not in another one."""
    return keys[~among(keys, others)]


def part_of(hashes: Ints, count: int) -> Ints:
    """Return of each hash which of ``count`` parts it is in: by its upper bits.

    The lower ones chose the shard.
    """
    upper = unsigned(hashes) >> np.uint64(32)
    return ((upper * np.uint64(count)) >> np.uint64(32)).astype(np.int64)


def unsigned(hashes: Ints) -> NDArray[np.uint64]:
    """Return hashes as numbers in whose order parts are."""
    return np.ascontiguousarray(hashes).view(np.uint64)
