"""Numbers of windows: consecutive windows of an assigner have consecutive numbers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.windows import SlicedAssigner

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class WindowNumbers:
    """The numbers of windows, in order of their ends.

    All that gap filling uses of an assigner: which window is the next one, and its bounds. Windows
    of a calendar may have the bounds of the next one (growing by days, at the end of a short
    month), or contain no time (a day that clocks skipped): these are void.

    Parameters
    ----------
    assigner : SlicedAssigner
    """

    def __init__(self, assigner: SlicedAssigner) -> None:
        self._grid, self._units = assigner.grid(), assigner.units

    def of_bounds(self, starts: Ints, ends: Ints) -> Ints:
        """Return the numbers of windows."""
        by_end: Ints = self._ending_before(self._units_at(ends))
        if self._grid.steps > 0 or not self.has_void:
            return by_end
        # units that contain no time begin with the next one, and give the number of a later window
        by_start: Ints = (self._units_at(starts) - self._grid.offset) // self._grid.slide
        return np.minimum(by_start, by_end)

    def _ending_before(self, units: Any) -> Any:
        """Return the numbers of the last windows that end with units, or before."""
        return rules.last_window_fired(units - 1, self._grid)

    def _units_at(self, ticks: Ints) -> Ints:
        """Return the units that begin at ticks, or contain them."""
        units = self._units
        if not self.has_void:
            return ticks
        low, high = (rules.tick_of(each, units) for each in (units.first, units.last))
        return np.asarray(rules.unit_of(np.clip(ticks, low, high), units), np.int64)

    def last_ended(self, watermark: int) -> int:
        """Return the number of the last window that has ended at a watermark."""
        if watermark in (LONG_MIN, LONG_MAX):
            return watermark
        complete = rules.last_complete_unit(watermark, self._units)
        return max(int(rules.last_window_fired(complete, self._grid)), LONG_MIN)

    def last_within(self, numbers: Ints, ticks: int) -> Ints:
        """Return the last windows that end within some ticks after the end of windows."""
        ends = np.minimum(self.ends(numbers), LONG_MAX - ticks) + ticks
        return np.asarray(self._ending_before(self._units_at(ends)), np.int64)

    def starts(self, numbers: Ints) -> Ints:
        """Return the first ticks of windows."""
        return self._ticks_of(rules.start_of(numbers, self._grid))

    def ends(self, numbers: Ints) -> Ints:
        """Return the ticks after the last ones of windows."""
        return self._ticks_of(rules.end_of(numbers, self._grid))

    def _ticks_of(self, units: Any) -> Ints:
        if self.has_void:
            units = rules.tick_of(np.clip(units, self._units.first, self._units.last), self._units)
        return np.asarray(units, np.int64)

    @property
    def has_void(self) -> bool:
        """Whether windows may be void: those of a calendar."""
        return self._units.length > 1

    def are_void(self, numbers: Ints) -> Flags:
        """Return which windows are void."""
        starts, ends = self.starts(numbers), self.ends(numbers)
        is_repeated = (starts == self.starts(numbers + 1)) & (ends == self.ends(numbers + 1))
        are_void: Flags = (starts >= ends) | is_repeated
        return are_void

    def ordinals(self, numbers: Ints) -> Ints:
        """Return the positions of windows among those of a slide that are not void."""
        return numbers - np.searchsorted(self._void, numbers) if self.has_void else numbers

    @cached_property
    def _void(self) -> Ints:
        """Numbers of all void windows, but for cumulative ones."""
        lasts, nexts = (np.asarray(each) for each in (self._units.lasts, self._units.ticks[1:]))
        skipped = lasts[self._ticks_of(lasts) == nexts]  # clocks change at the end of a run
        candidates: Ints = (skipped - self._grid.offset) // self._grid.slide
        return candidates[self.are_void(candidates)]

    def first_from(self, start: int) -> int:
        """Return the number of the first window that starts at a tick or later."""
        unit = int(self._units_at(np.array([start]))[0])
        index = int(rules.slice_of(unit, self._grid))
        if self._ticks_of(rules.slice_start(np.array([index]), self._grid))[0] < start:
            index += 1
        return int(rules.last_window(index - 1, self._grid)) + 1
