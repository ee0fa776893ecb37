"""Timers of keys and windows, in time order (Flink: InternalTimerService)."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from itertools import count
from typing import NamedTuple

from gpu_windows.windows import Window


class Pane(NamedTuple):
    """A key and a window: what contents, timers and trigger state belong to."""

    key: tuple[Hashable, ...]
    window: Window


class TimerQueue:
    """A set of (time, pane); those of one time fire in the order in which they were set.

    A timer of the operator may be silent: its trigger, which had taken it back, is not asked.
    """

    def __init__(self) -> None:
        # To its number, for one set again has another, and whether it is silent.
        self._live: dict[tuple[int, Pane], tuple[int, bool]] = {}
        self._heap: list[tuple[int, int, Pane]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[tuple[int, Pane, bool]]:
        """Iterate in the order of firing: time, pane, whether it is silent."""
        timers = sorted(self._live, key=lambda timer: (timer[0], self._live[timer][0]))
        return ((*timer, self._live[timer][1]) for timer in timers)

    def first(self) -> int | None:
        """Return the time of the earliest timer; None if there is none."""
        return min((time for time, _ in self._live), default=None)

    def register(self, time: int, pane: Pane) -> None:
        """Set a timer; the same one twice is one timer."""
        _, is_silent = self._live.get((time, pane), (0, True))
        if is_silent:
            number = next(self._numbers)
            self._live[time, pane] = number, False
            heapq.heappush(self._heap, (time, number, pane))

    def delete(self, time: int, pane: Pane) -> None:
        """Take a timer back; its entry in the heap is passed over when its time comes."""
        self._live.pop((time, pane), None)

    def silence(self, time: int, pane: Pane) -> None:
        """Keep a timer, if there is one, but do not ask the trigger when its time comes."""
        if (time, pane) in self._live:
            number, _ = self._live[time, pane]
            self._live[time, pane] = number, True

    def pop_due(self, watermark: int) -> tuple[int, Pane, bool] | None:
        """Remove and return the earliest timer at or before ``watermark``; None if none is."""
        while self._heap and self._heap[0][0] <= watermark:
            time, number, pane = heapq.heappop(self._heap)
            alive, is_silent = self._live.get((time, pane), (None, False))
            if alive == number:
                del self._live[time, pane]
                return time, pane, is_silent
        return None
