"""Moments of groups of rows: count, mean and sum of squared deviations.

While a cell is added to, its mean is less a shift, which is near it, and in one word: a chain of
additions is as short then as that of a sum. A cell is `WORDS` floats side by side, for one access.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import (
    BOOLS,
    FLOATS,
    INT,
    INTS,
    INTS32,
    OUT_FLOATS,
    OUT_INTS,
)
from gpu_windows.kernels.compile import JIT, inner, kernel, specialize
from gpu_windows.kernels.cpu import rules
from gpu_windows.kernels.cpu.grouping import Groups
from gpu_windows.rules import BLOCK

Moments = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

#: What a cell holds beside its count: the shift (an int64 as its bits), then of values their sum
#: and that of their squares, of moments the mean and m2, all less the shift.
WORDS = 4
#: So many values are summed about one at most.
_LONGEST = 64
#: The shift follows the mean once in ``2**_FOLLOWS`` values.
_FOLLOWS = 4


@inner(inline="always")
def follows(before: Any, after: Any) -> Any:
    """Return whether a shift follows the mean, given how many values it is of, and was.

    Nothing else decides it: not where in a batch the values are, nor of which keys others are. So
    the same values, merged in the same order, give the same bits in every batch and shard.
    """
    return before >> _FOLLOWS != after >> _FOLLOWS


@kernel((INTS32, INTS, FLOATS, FLOATS, FLOATS, OUT_FLOATS, OUT_INTS))
def _moments(cells: Any, n: Any, high: Any, low: Any, m2: Any, sums: Any, bits: Any) -> None:
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for i in range(cells.size):
        if n[i] > 0:
            at = np.uint64(cells[i]) * np.uint64(WORDS)
            if bits[at] == 0:
                sums[at + one] = high[i]
            elif follows(bits[at], bits[at] + n[i]):
                sums[at + one], sums[at + two] = rules.two_sum(sums[at + one], sums[at + two])
            mean = (high[i] - sums[at + one]) + low[i]
            bits[at], sums[at + two], sums[at + three] = rules.moments(
                bits[at], sums[at + two], sums[at + three], n[i], mean, m2[i]
            )


@kernel((INTS, FLOATS, INTS, OUT_INTS, OUT_FLOATS, OUT_FLOATS, OUT_FLOATS))
def _unpack(cells: Any, sums: Any, bits: Any, n: Any, high: Any, low: Any, m2: Any) -> None:
    for group in range(cells.size):
        at = cells[group] * WORDS
        n[group], m2[group] = bits[at], sums[at + 3]
        high[group], low[group] = rules.two_sum(sums[at + 1], sums[at + 2])


@inner(inline="always", error_model="numpy")
def whole(squares: Any, rest: Any) -> Any:
    """Return m2 in one word; what it is off by is no number where it is beyond all floats."""
    return squares + rest if squares < np.inf else squares


@inner(**JIT)
def _of_block(of_ints: Any, sums: Any, bits: Any, cell: Any) -> Any:
    """Return the moments of the last values of a cell, one at least."""
    at = cell * WORDS
    count = bits[at]
    mean, m2 = rules.shifted_moments(count, sums[at + 2], sums[at + 3])
    if of_ints:
        upper, lower = rules.words_of(bits[at + 1])
        high, low = rules.two_sum(upper, mean)
        return count, high, low + lower, m2
    high, low = rules.two_sum(sums[at + 1], mean)
    return count, high, low, m2


@inner(**JIT)
def _close_block(
    of_ints: Any, sums: Any, bits: Any, cell: Any,
    n: Any, high: Any, low: Any, m2: Any, rest: Any,
) -> None:  # fmt: skip
    """Add the last block of values of a cell to its moments, and empty the block."""
    count, mean, off, squares = _of_block(of_ints, sums, bits, cell)
    n[cell], high[cell], low[cell], more = rules.wide_moments(
        n[cell], high[cell], low[cell], 0.0, count, mean, off, squares
    )
    m2[cell], off = rules.two_sum(m2[cell], more)
    rest[cell] += off
    bits[cell * WORDS] = 0


@inner(inline="always")
def difference(value: Any, other: Any) -> Any:
    """Return ``value - other`` of two float64; of int64 it is a rule."""
    return value - other


def _add(
    of_ints: Any, cells: Any, values: Any, valid: Any, shifts: Any, sums: Any, bits: Any,
    n: Any, high: Any, low: Any, m2: Any, rest: Any,
) -> None:  # fmt: skip
    """Add values to the blocks of their cells; ``shifts`` are these cells as their type."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    for i in range(cells.size):
        if valid.size == 0 or valid[i]:
            at = np.uint64(cells[i]) * np.uint64(WORDS)
            count = bits[at] + 1
            bits[at] = count
            if count == 1:
                shifts[at + one], sums[at + two], sums[at + three] = values[i], 0.0, 0.0
            else:
                apart = difference(values[i], shifts[at + one])
                sums[at + two] += apart
                sums[at + three] += apart * apart
                if count == _LONGEST or (
                    count == BLOCK and rules.is_far(count, sums[at + two], sums[at + three])
                ):
                    _close_block(of_ints, sums, bits, cells[i], n, high, low, m2, rest)


_MEMORY = OUT_FLOATS, OUT_INTS, OUT_INTS, *[OUT_FLOATS] * 4
_add_floats = kernel((INT, INTS32, FLOATS, BOOLS, OUT_FLOATS, *_MEMORY))(
    specialize(_add, "add_floats")
)
_add_ints = kernel((INT, INTS32, INTS, BOOLS, OUT_INTS, *_MEMORY))(
    specialize(_add, "add_ints", difference=rules.difference)
)


@kernel((INTS, INT, FLOATS, INTS, INTS, *[FLOATS] * 4, OUT_INTS, *[OUT_FLOATS] * 3))
def _close(
    cells: Any, of_ints: Any, sums: Any, bits: Any,
    n: Any, high: Any, low: Any, m2: Any, rest: Any,
    out_n: Any, out_high: Any, out_low: Any, out_m2: Any,
) -> None:  # fmt: skip
    for group in range(cells.size):
        cell = cells[group]
        count, mean, off, squares = 0, 0.0, 0.0, 0.0
        if bits[cell * WORDS] > 0:
            count, mean, off, squares = _of_block(of_ints, sums, bits, cell)
        if n[cell] > 0:
            total = whole(m2[cell], rest[cell])
            count, mean, off, squares = rules.wide_moments(
                n[cell], high[cell], low[cell], total, count, mean, off, squares
            )
        out_n[group], out_high[group], out_low[group] = count, mean, off
        out_m2[group] = squares


def moments(groups: Groups, n: NDArray[np.int64], *parts: NDArray[np.float64]) -> Moments:
    """See `contract.groups.Reduce.moments`."""
    sums, out = np.zeros(groups.size * WORDS), empty_moments(groups.count)
    bits = sums.view(np.int64)
    _moments(groups.cells, n, *parts, sums, bits)
    _unpack(_cells_of(groups), sums, bits, *out)
    return out


def moments_of(groups: Groups, values: NDArray[Any], valid: NDArray[np.bool_]) -> Moments:
    """See `contract.groups.Reduce.moments_of`."""
    of_ints = int(values.dtype == np.int64)
    sums, blocks, out = (
        np.zeros(groups.size * WORDS),
        _zeros(groups.size),
        empty_moments(groups.count),
    )
    bits = sums.view(np.int64)
    add, shifts = (_add_ints, bits) if of_ints else (_add_floats, sums)
    add(of_ints, groups.cells, values, valid, shifts, sums, bits, *blocks)
    _close(_cells_of(groups), of_ints, sums, bits, *blocks, *out)
    return out


def empty_moments(count: int) -> Moments:
    """Allocate the moments of ``count`` groups."""
    return np.empty(count, np.int64), np.empty(count), np.empty(count), np.empty(count)


def _zeros(count: int) -> tuple[NDArray[Any], ...]:
    """Return the moments of no values, m2 in two words; memory that nobody writes is none."""
    return np.zeros(count, np.int64), *(np.zeros(count) for _ in range(4))


def _cells_of(groups: Groups) -> NDArray[np.int64]:
    return np.arange(groups.size) if groups.occupied is None else groups.occupied
