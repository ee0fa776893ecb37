"""Runs of a log-structured tree by their size: which of them are merged."""

from __future__ import annotations

from collections.abc import Sequence

#: Runs of a size that are merged, and entries of the smallest size.
TOGETHER, SMALL = 8, 64


def size_of(entries: int) -> int:
    """Return how large a run is, as a power of `TOGETHER`."""
    size, most = 0, SMALL
    while entries > most:
        size, most = size + 1, most * TOGETHER
    return size


def merged_together(sizes: Sequence[int], most: int | None = None) -> int:
    """Return how many of the newest runs are to be merged: 0, or several.

    Parameters
    ----------
    sizes : sequence of int
        Of all runs, from the oldest on.
    most : int, optional
        The largest size of which runs are merged; default: any.
    """
    newest = sizes[::-1]
    count = 0
    for size in sorted(set(sizes)):
        if most is not None and size > most:
            break
        larger = (place for place, each in enumerate(newest) if each > size)
        upto = next(larger, len(newest))
        if newest[:upto].count(size) >= TOGETHER:
            count = upto
    return count
