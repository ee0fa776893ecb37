"""Timers of keys and windows, in time order (Flink: InternalTimerService)."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from gpu_windows.windows import Window


class Pane(NamedTuple):
    """A key and a window: what contents, timers and trigger state belong to."""

    key: tuple[Hashable, ...]
    window: Window


#: What timers are of: panes, or keys.
Owner = TypeVar("Owner", bound=Hashable)


class Timer(NamedTuple, Generic[Owner]):
    """A timer of a pane, or of a key.

    Parameters
    ----------
    time : int
        In ticks.
    pane : hashable
        Whose it is.
    number : int
        Of those of one time the one with the least fires first.
    silent : bool
        Whether it is the operator's alone: its trigger, which had taken it back, is not asked.
    """

    time: int
    pane: Owner
    number: int
    silent: bool


class TimerQueue(Generic[Owner]):
    """A set of (time, owner); those of one time fire in the order in which they were set.

    Attributes
    ----------
    next_number : int
        Of the next timer that is set: how many ever were.
    """

    def __init__(self) -> None:
        self.next_number = 0
        # To its number, for one set again has another, and whether it is silent.
        self._live: dict[tuple[int, Owner], tuple[int, bool]] = {}
        self._heap: list[tuple[int, int, Owner]] = []

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[Timer[Owner]]:
        return (Timer(*timer, *known) for timer, known in self._live.items())

    def register(self, time: int, pane: Owner) -> None:
        """Set a timer; the same one twice is one timer."""
        _, is_silent = self._live.get((time, pane), (0, True))
        if is_silent:
            number = self.next_number
            self.next_number = number + 1
            self._live[time, pane] = number, False
            heapq.heappush(self._heap, (time, number, pane))

    def load(self, timer: Timer[Owner]) -> None:
        """Take a timer that was set before."""
        time, pane, number, is_silent = timer
        self._live[time, pane] = number, is_silent
        heapq.heappush(self._heap, (time, number, pane))

    def delete(self, time: int, pane: Owner) -> None:
        """Take a timer back; its entry in the heap is passed over when its time comes."""
        self._live.pop((time, pane), None)

    def silence(self, time: int, pane: Owner) -> None:
        """Keep a timer, if there is one, but do not ask the trigger when its time comes."""
        if (time, pane) in self._live:
            number, _ = self._live[time, pane]
            self._live[time, pane] = number, True

    def pop_due(self, watermark: int) -> tuple[int, Owner, bool] | None:
        """Remove and return the earliest timer at or before ``watermark``; None if none is."""
        while self._heap and self._heap[0][0] <= watermark:
            time, number, pane = heapq.heappop(self._heap)
            alive, is_silent = self._live.get((time, pane), (None, False))
            if alive == number:
                del self._live[time, pane]
                return time, pane, is_silent
        return None
