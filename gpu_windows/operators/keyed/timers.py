"""Timers of keys and windows, in time order (Flink: InternalTimerService)."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from heapq import heappop, heappush
from operator import itemgetter
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from gpu_windows.vocabulary.windows import Window


class Pane(NamedTuple):
    """A key and a window, which own contents, timers and trigger state."""

    key: tuple[Hashable, ...]
    window: Window


#: Time domain of a timer.
Domain: TypeAlias = Literal["event_time", "processing_time"]
#: Owner of a timer: a pane or a key.
Owner = TypeVar("Owner", bound=Hashable)


class Timer(NamedTuple, Generic[Owner]):
    """A timer of a pane, or of a key.

    Parameters
    ----------
    time : int
        In ticks.
    pane : hashable
        Its owner.
    number : int
        Timers of the same time fire by ascending number.
    silent : bool
        Whether its trigger has deleted it, so that it only cleans the window up.
    """

    time: int
    pane: Owner
    number: int
    silent: bool


class TimerQueue(Generic[Owner]):
    """A set of (time, owner); timers of the same time fire in the order in which they were set.

    Their numbers are saved, so that the order does not depend on when timers are loaded.

    Attributes
    ----------
    next_number : int
        Number of the next timer: how many were ever set.
    """

    def __init__(self) -> None:
        self.next_number = 0
        # Time to owner to number: its complement if silent. Setting a timer again renumbers it.
        self._at: dict[int, dict[Owner, int]] = {}
        self._times: list[int] = []  # a heap; maybe with times that have no timers any longer
        # The timers of the earliest time, in order; an entry is stale if its number has changed.
        self._due: deque[tuple[int, Owner]] = deque()
        self._due_at = 0

    def __len__(self) -> int:
        return sum(map(len, self._at.values()))

    def __iter__(self) -> Iterator[Timer[Owner]]:
        for time, owners in self._at.items():
            for owner, number in owners.items():
                yield Timer(time, owner, _order(number), number < 0)

    def register(self, time: int, owner: Owner) -> None:
        """Set a timer; the same one twice is one timer."""
        owners = self._at.get(time)
        if owners is None:
            owners = self._at[time] = {}
            heappush(self._times, time)
        if owners.get(owner, -1) < 0:
            owners.pop(owner, None)  # so that it is the last one
            owners[owner] = self.next_number
            self.next_number += 1

    def load(self, timer: Timer[Owner]) -> None:
        """Load a stored timer."""
        time, owner, number, is_silent = timer
        if time not in self._at:
            self._at[time] = {}
            heappush(self._times, time)
        self._at[time][owner] = ~number if is_silent else number

    def delete(self, time: int, owner: Owner) -> None:
        """Delete a timer, if it is set."""
        owners = self._at.get(time)
        if owners is not None and owners.pop(owner, None) is not None and not owners:
            del self._at[time]

    def silence(self, time: int, owner: Owner) -> None:
        """Make a timer silent, if it is set: it fires without a call of the trigger."""
        owners = self._at.get(time, {})
        if owners.get(owner, -1) >= 0:
            owners[owner] = ~owners[owner]

    def pop_due(self, watermark: int) -> tuple[int, Owner, bool] | None:
        """Remove and return the earliest timer at or before ``watermark``, or None."""
        while self._times and self._times[0] <= watermark:
            time = self._times[0]
            owners = self._at.get(time)
            if not owners:
                heappop(self._times)
                continue
            if len(owners) == 1:  # mostly
                owner, number = owners.popitem()
                del self._at[time]
                heappop(self._times)
                return time, owner, number < 0
            if not self._due or self._due_at != time:
                numbered = ((_order(number), owner) for owner, number in owners.items())
                self._due_at, self._due = time, deque(sorted(numbered, key=itemgetter(0)))
            order, owner = self._due.popleft()
            found = owners.get(owner)
            if found is not None and _order(found) == order:
                self.delete(time, owner)
                return time, owner, found < 0
        return None


def _order(number: int) -> int:
    """Return the number of a timer, silent or not."""
    return max(number, ~number)
