"""Numbers of windows: consecutive windows of an assigner have consecutive numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.rules import LONG_MAX, LONG_MIN, Grid

Ints = NDArray[np.int64]


class WindowNumbers:
    """The numbers of windows, in order of their ends.

    All that gap filling knows of an assigner: which window is the next one, and its bounds.

    Parameters
    ----------
    grid : Grid
        Of the assigner.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def ending_at(self, ends: Ints) -> Ints:
        """Return the numbers of the windows that end at some ticks."""
        ticks: Any = ends - 1
        numbers: Any = rules.last_window_fired(ticks, self._grid)
        return np.asarray(numbers, np.int64)

    def last_ended(self, watermark: int) -> int:
        """Return the number of the last window that has ended at a watermark."""
        if watermark in (LONG_MIN, LONG_MAX):
            return watermark
        return max(int(rules.last_window_fired(watermark, self._grid)), LONG_MIN)

    def last_within(self, numbers: Ints, ticks: int) -> Ints:
        """Return the last windows that end within some ticks after the end of windows."""
        ends = self.ends(numbers)
        return self.ending_at(np.minimum(ends, LONG_MAX - ticks) + ticks)

    def starts(self, numbers: Ints) -> Ints:
        """Return the first ticks of windows."""
        starts: Ints = rules.start_of(numbers, self._grid)
        return starts

    def ends(self, numbers: Ints) -> Ints:
        """Return the ticks after the last ones of windows."""
        ends: Ints = rules.end_of(numbers, self._grid)
        return ends

    def first_from(self, start: int) -> int:
        """Return the number of the first window that starts at a tick or later."""
        index = int(rules.slice_of(start, self._grid))
        if rules.slice_start(index, self._grid) < start:
            index += 1
        return int(rules.last_window(index - 1, self._grid)) + 1
