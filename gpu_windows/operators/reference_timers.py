"""Timers of keys and windows, in time order (Flink: InternalTimerService)."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from itertools import count
from typing import NamedTuple

from gpu_windows.windows import Window


class Slot(NamedTuple):
    """A key and a window: what contents, timers and trigger state belong to."""

    key: tuple[Hashable, ...]
    window: Window


class TimerQueue:
    """A set of (time, slot); those of one time fire in the order in which they were set."""

    def __init__(self) -> None:
        self._live: dict[tuple[int, Slot], int] = {}  # to its number: one set again has another
        self._heap: list[tuple[int, int, Slot]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[tuple[int, Slot]]:
        """Iterate in the order of firing."""
        return iter(sorted(self._live, key=lambda timer: (timer[0], self._live[timer])))

    def first(self) -> int | None:
        """Return the time of the earliest timer; None if there is none."""
        return min((time for time, _ in self._live), default=None)

    def register(self, time: int, slot: Slot) -> None:
        """Set a timer; the same one twice is one timer."""
        if (time, slot) not in self._live:
            self._live[time, slot] = number = next(self._numbers)
            heapq.heappush(self._heap, (time, number, slot))

    def delete(self, time: int, slot: Slot) -> None:
        """Take a timer back; its entry in the heap is passed over when its time comes."""
        self._live.pop((time, slot), None)

    def pop_due(self, watermark: int) -> tuple[int, Slot] | None:
        """Remove and return the earliest timer at or before ``watermark``; None if none is."""
        while self._heap and self._heap[0][0] <= watermark:
            time, number, slot = heapq.heappop(self._heap)
            if self._live.get((time, slot)) == number:
                del self._live[time, slot]
                return time, slot
        return None

    def clear(self) -> None:
        """Drop all timers."""
        self._live.clear()
        self._heap.clear()
