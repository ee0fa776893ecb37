"""Find the windows that hold entries, a thread a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_windows.kernels.cuda import primitives, rules
from gpu_windows.kernels.cuda.kernel import kernel
from gpu_windows.kernels.cuda.primitives import cuda
from gpu_windows.kernels.cuda.search import first_entry, owner
from gpu_windows.kernels.cuda.types import GRID, INT, INTS
from gpu_windows.rules import Grid


@dataclass(frozen=True)
class Windows:
    """The windows of some entries, grouped by the last entry in each, then by number.

    Parameters
    ----------
    codes, slices : int64[m]
        The entries.
    numbers : int64[count]
        Window numbers (`gpu_windows.rules`).
    first, last : int64[count]
        First and last entry of every window.
    grid : Grid
    """

    codes: Any
    slices: Any
    numbers: Any
    first: Any
    last: Any
    grid: Grid

    @property
    def count(self) -> int:
        """Number of windows."""
        return len(self.numbers)


@kernel((INTS, INTS, GRID, INT, INT, INTS))
def _count_windows(codes: Any, slices: Any, grid: Any, low: Any, high: Any, counts: Any) -> None:
    for e in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        begin = max(rules.first_window(slices[e], grid), low)
        end = min(rules.last_window(slices[e], grid), high)
        if e + 1 < codes.size and codes[e + 1] == codes[e]:
            end = min(end, rules.last_window_before(slices[e + 1], grid))
        counts[e] = max(end - begin + 1, 0)


@kernel((INTS, INTS, GRID, INT, INTS, INTS, INTS, INTS))
def _fill_windows(
    codes: Any, slices: Any, grid: Any, low: Any, starts: Any,
    numbers: Any, first: Any, last: Any,
) -> None:  # fmt: skip
    for i in range(cuda.grid(1), numbers.size, cuda.gridsize(1)):
        e = owner(starts, i)
        number = max(rules.first_window(slices[e], grid), low) + i - starts[e]
        edge = rules.first_slice(number, grid)
        numbers[i] = number
        first[i] = first_entry(codes, slices, edge, max(e - grid.span + 1, 0), e)
        last[i] = e


@kernel((INTS, GRID, INTS, INTS))
def _bounds(numbers: Any, grid: Any, starts: Any, ends: Any) -> None:
    for i in range(cuda.grid(1), numbers.size, cuda.gridsize(1)):
        starts[i] = rules.start_of(numbers[i], grid)
        ends[i] = rules.end_of(numbers[i], grid)


def total_windows(codes: Any, slices: Any, grid: Grid, low: int, high: int) -> int:
    """Return how many windows `windows` would find."""
    return _starts(codes, slices, grid, low, high)[1]


def windows(codes: Any, slices: Any, grid: Grid, low: int, high: int) -> Windows:
    """Find the windows with numbers in [low, high] that hold an entry.

    Parameters
    ----------
    codes, slices : int64[m]
        Entries, sorted by (code, slice), each pair once.
    """
    starts, total = _starts(codes, slices, grid, low, high)
    numbers, first, last = (primitives.empty(total, np.int64) for _ in range(3))
    _fill_windows(total, codes, slices, grid, low, starts, numbers, first, last)
    return Windows(codes, slices, numbers, first, last, grid)


def _starts(codes: Any, slices: Any, grid: Grid, low: int, high: int) -> tuple[Any, int]:
    """Return the first window of every entry, int64[m], and the number of windows."""
    counts = primitives.empty(len(codes), np.int64)
    _count_windows(len(codes), codes, slices, grid, low, high, counts)
    return primitives.exclusive_scan(counts)


def bounds(found: Windows) -> tuple[Any, Any]:
    """Return start and end of every window, int64[count] each, in ticks."""
    starts, ends = (primitives.empty(found.count, np.int64) for _ in range(2))
    _bounds(found.count, found.numbers, found.grid, starts, ends)
    return starts, ends
