"""Windows of a calendar whose days last a few ticks, so that rows of a simulation are in several.

Days are of unequal length, some are empty, and months have days that they lack: what
`gpu_windows.rules.slicing` is for. The assigner counts as one of the package's, so it has no
strategy of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np

from gpu_windows import rules
from gpu_windows.rules import Grid, Units
from gpu_windows.vocabulary.windows import SlicedAssigner
from gpu_windows.vocabulary.windows.calendar_units import units_of_runs

#: Ticks of most days, and the numbers that a month has for its days.
LENGTH, DAYS_OF_MONTH = 5, 4
_FIRST, _LAST = -1200, 4000


@dataclass(frozen=True)
class SmallDays(SlicedAssigner):
    """Sliding windows of days, or those that grow by a day up to a month."""

    seed: int
    size: int = 1
    slide: int = 1
    grows: bool = False

    def grid(self) -> Grid:
        if self.grows:
            return rules.cumulative_grid(DAYS_OF_MONTH, 1, 0)
        return rules.sliding_grid(self.size, self.slide, self.seed % self.slide)

    @property
    def units(self) -> Units:
        return small_days(self.seed, has_empty=self.grows or self.size == self.slide)


SmallDays.__module__ = SlicedAssigner.__module__


def draw(rng: Random) -> SmallDays:
    """Draw windows of such a calendar."""
    seed, slide = rng.randint(0, 20), rng.randint(1, 4)
    if rng.random() < 0.3:
        return SmallDays(seed, grows=True)
    return SmallDays(seed, rng.randint(slide, 2 * slide + 1), slide)


@lru_cache(maxsize=32)
def small_days(seed: int, *, has_empty: bool) -> Units:
    """Draw days: runs of equal ones, of which the last is longer or shorter.

    ``has_empty``: some days are empty. Sliding windows could then be alike.
    """
    rng, number, tick = Random(seed), _FIRST * DAYS_OF_MONTH // 5, _FIRST
    numbers, ticks, lasts = [], [], []
    while tick < _LAST or number % DAYS_OF_MONTH:
        left = DAYS_OF_MONTH - number % DAYS_OF_MONTH
        count = rng.randint(1, left)
        numbers.append(number)
        ticks.append(tick)
        lasts.append(number + count - 1)
        is_empty = has_empty and count == 1 and rng.random() < 0.2
        tick += (count - 1) * LENGTH + (0 if is_empty else rng.randint(1, 2 * LENGTH - 1))
        number += left if has_empty and rng.random() < 0.4 else count
    numbers.append(number)
    ticks.append(tick)
    lasts.append(number)
    return units_of_runs(np.array(numbers), np.array(ticks), np.array(lasts), LENGTH)
