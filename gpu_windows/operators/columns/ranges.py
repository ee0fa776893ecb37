"""Consecutive ranges of an array, and arrays one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

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


def split(lengths: Ints, limit: int, max_count: int) -> Iterator[tuple[int, int]]:
    """Yield parts whose lengths add up to ``limit`` at most, or of one element.

    ``max_count``: maximum number of elements in a part.
    """
    ends = np.cumsum(lengths)
    begin = 0
    while begin < len(ends):
        before = ends[begin - 1] if begin else 0
        end = max(int(np.searchsorted(ends, before + limit, side="right")), begin + 1)
        end = min(end, begin + max_count)
        yield begin, end
        begin = end


def join_ranges(
    first: Ints, first_lengths: Ints, second: Ints, second_lengths: Ints
) -> tuple[Ints, Ints, Ints]:
    """Append to each range of an array one of another array.

    Returns
    -------
    begins : int64[n + 1]
        Where the ranges begin, and where the last one ends.
    seconds : int64[n]
        Where the second part of each begins.
    values : int64
    """
    begins = offsets(first_lengths + second_lengths)
    seconds = begins[:-1] + first_lengths
    values = np.empty(int(begins[-1]), np.int64)
    values[ranges(begins[:-1], first_lengths)] = first
    values[ranges(seconds, second_lengths)] = second
    return begins, seconds, values


def concat_fields(parts: Sequence[object], *names: str) -> Iterator[NDArray[Any]]:
    """Yield fields of parts that are arrays, each concatenated."""
    for name in names:
        yield np.concatenate([getattr(part, name) for part in parts])
