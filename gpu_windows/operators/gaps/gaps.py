"""Gaps between the windows of keys: which windows are missing, and between which results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: Instead of an index: there is none.
NONE = -1


@dataclass(frozen=True)
class Gaps:
    """Gaps of keys, each followed by at most one window with rows: int64[n] each.

    Parameters
    ----------
    codes : int64[n]
        The key of each gap.
    first : int64[n]
        Number of the first window to fill.
    lengths : int64[n]
        How many windows to fill; 0: a window with rows follows the one before it.
    rows : int64[n]
        Index of the result of the window after the gap, or `NONE`.
    numbers : int64[n]
        Number of that window.
    before : int64[n]
        Index of the carried values of the last window with rows, or `NONE`.
    before_numbers : int64[n]
        Number of that window.
    after : int64[n]
        Index of the result up to which values are interpolated, or `NONE`.
    """

    codes: Ints
    first: Ints
    lengths: Ints
    rows: Ints
    numbers: Ints
    before: Ints
    before_numbers: Ints
    after: Ints

    @property
    def has_row(self) -> NDArray[np.bool_]:
        """Whether a window with rows follows the gap."""
        has_row: NDArray[np.bool_] = self.rows != NONE
        return has_row

    def windows(self, max_windows: int) -> Iterator[Windows]:
        """Yield the windows of all gaps, ``max_windows`` at once, those of a gap in order."""
        ends = np.cumsum(self.lengths + self.has_row)
        total = int(ends[-1]) if len(ends) else 0
        for low in range(0, total, max_windows):
            high = min(low + max_windows, total)
            first = int(np.searchsorted(ends, low, "right"))
            last = int(np.searchsorted(ends, high, "left")) + 1
            begins = ends[first:last] - self.lengths[first:last] - self.has_row[first:last]
            counts = np.minimum(ends[first:last], high) - np.maximum(begins, low)
            gaps = np.repeat(np.arange(first, last), counts)
            within = np.arange(low, high) - np.repeat(begins, counts)
            yield Windows(self, gaps, within)


class Windows:
    """Some windows of gaps.

    Parameters
    ----------
    gaps : Gaps
    index : int64[n]
        The gap of each window.
    within : int64[n]
        How many windows of the gap are before it.
    """

    def __init__(self, gaps: Gaps, index: Ints, within: Ints) -> None:
        self.is_filled = within < gaps.lengths[index]
        self.numbers = np.where(self.is_filled, gaps.first[index] + within, gaps.numbers[index])
        self._gaps, self._index, self._within = gaps, index, within

    def __len__(self) -> int:
        return len(self._index)

    @property
    def codes(self) -> Ints:
        """The key of each window."""
        return self._gaps.codes[self._index]

    @property
    def rows(self) -> Ints:
        """The result of each window with rows."""
        return self._gaps.rows[self._index]

    @property
    def before(self) -> Ints:
        """The carried values before each window, or `NONE`."""
        return self._gaps.before[self._index]

    @property
    def after(self) -> Ints:
        """The result after each filled window, or `NONE`."""
        return self._gaps.after[self._index]

    @property
    def numbers_around(self) -> tuple[Ints, Ints]:
        """Numbers of the windows with rows before and after each window."""
        return self._gaps.before_numbers[self._index], self._gaps.numbers[self._index]

    def take(self, order: Ints) -> Windows:
        """Return the windows in another order."""
        return Windows(self._gaps, self._index[order], self._within[order])
