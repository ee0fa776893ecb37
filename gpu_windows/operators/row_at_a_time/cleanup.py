"""When windows are dropped, and the timers that drop them."""

from __future__ import annotations

from gpu_windows.operators.keyed.timers import Pane, TimerQueue
from gpu_windows.operators.row_at_a_time.memory import Memory
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.rules import LONG_MAX, cleanup_time, end_of, is_late, slice_of
from gpu_windows.vocabulary.windows import Window


class Cleanup:
    """The timers of a query's windows, beside those that its trigger sets.

    Parameters
    ----------
    query : WindowQuery
    memory : Memory
        Where the timers are.
    """

    def __init__(self, query: WindowQuery, memory: Memory) -> None:
        self.memory = memory
        self._is_event_time = query.assigner.is_event_time
        self._slides = query.last_slides if query.changed_only else None
        self._lateness = query.allowed_lateness if self._is_event_time else 0

    def time_of(self, window: Window) -> int:
        """Return when a window is dropped; LONG_MAX: never."""
        time: int = cleanup_time(window.max_timestamp, self._lateness)
        return time

    def is_over(self, window: Window) -> bool:
        """Whether a window has been dropped, so that rows are late for it."""
        return self.is_late(window.max_timestamp)

    def is_late(self, time: int) -> bool:
        """Whether a time and the allowed lateness are over; never in processing time."""
        late: bool = is_late(time, self._lateness, self.memory.watermark)
        return self._is_event_time and late

    def is_behind(self, timestamp: int) -> bool:
        """Whether a row is late whatever its windows are.

        Where only a window's last slide makes it fire, a row is late when that of its own is over.
        """
        if self._slides is None:
            return False
        return self.is_late(end_of(slice_of(timestamp, self._slides), self._slides) - 1)

    def register(self, pane: Pane) -> None:
        """Set the timer that drops a window; one that lasts for ever needs none."""
        time = self.time_of(pane.window)
        if time < LONG_MAX:
            self._timers.register(time, pane)

    def delete(self, pane: Pane) -> None:
        """Take the timer back that drops a window."""
        self._timers.delete(self.time_of(pane.window), pane)

    def take_back(self, timers: TimerQueue[Pane], time: int, pane: Pane) -> None:
        """Take a timer of the trigger's back.

        In Flink the one that drops the window goes with it, if it is of the same time, and the
        window stays for ever. Here it stays, and the trigger is not asked.
        """
        if timers is self._timers and time == self.time_of(pane.window):
            timers.silence(time, pane)
        else:
            timers.delete(time, pane)

    @property
    def _timers(self) -> TimerQueue[Pane]:
        return self.memory.event_timers if self._is_event_time else self.memory.processing_timers
