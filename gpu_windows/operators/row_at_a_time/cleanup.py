"""Cleanup of windows after their allowed lateness: times and timers."""

from __future__ import annotations

from gpu_windows.operators.keyed.timers import Pane, TimerQueue
from gpu_windows.operators.row_at_a_time.window_state import WindowState
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.rules import (
    LONG_MAX,
    cleanup_time,
    end_of,
    is_late,
    slice_of,
    tick_within,
    unit_of,
)
from gpu_windows.vocabulary.windows import Window


class Cleanup:
    """The cleanup timers of windows, in addition to those that the trigger sets.

    Parameters
    ----------
    query : WindowQuery
    state : WindowState
        Has the timers and the watermark.
    """

    def __init__(self, query: WindowQuery, state: WindowState) -> None:
        self.query, self.state = query, state
        self._is_event_time = query.assigner.is_event_time
        self._slides, self._units = query.last_slides if query.changed_only else None, query.units
        self._lateness = query.allowed_lateness if self._is_event_time else 0

    def time_of(self, window: Window) -> int:
        """Return the time at which a window is dropped; LONG_MAX: never."""
        time: int = cleanup_time(window.max_timestamp, self._lateness)
        return time

    def is_closed(self, window: Window) -> bool:
        """Whether a window is closed: its rows are late."""
        return self.is_late(window.max_timestamp)

    def is_late(self, time: int) -> bool:
        """Whether the watermark has passed a time plus the lateness; never in processing time."""
        late: bool = is_late(time, self._lateness, self.state.watermark)
        return self._is_event_time and late

    def is_behind(self, timestamp: int) -> bool:
        """Whether a row is late regardless of its windows.

        If only rows in its last slide make a window fire, a row is late once its slide has ended.
        """
        if self._slides is None:
            return False
        slide = slice_of(unit_of(timestamp, self._units), self._slides)
        return self.is_late(tick_within(end_of(slide, self._slides), self._units) - 1)

    def register(self, pane: Pane) -> None:
        """Set the cleanup timer of a window, unless the window never ends."""
        time = self.time_of(pane.window)
        if time < LONG_MAX:
            self._timers.register(time, pane)

    def delete(self, pane: Pane) -> None:
        """Delete the cleanup timer of a window."""
        self._timers.delete(self.time_of(pane.window), pane)

    def delete_trigger_timer(self, timers: TimerQueue[Pane], time: int, pane: Pane) -> None:
        """Delete a timer of the trigger.

        In Flink this also deletes a cleanup timer of the same time, and the window is never
        dropped. Here the cleanup timer stays, and fires without a call of the trigger.
        """
        if timers is self._timers and time == self.time_of(pane.window):
            timers.silence(time, pane)
        else:
            timers.delete(time, pane)

    @property
    def _timers(self) -> TimerQueue[Pane]:
        return self.state.event_timers if self._is_event_time else self.state.processing_timers
