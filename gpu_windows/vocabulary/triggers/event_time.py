"""Triggers that follow the watermark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from gpu_windows.vocabulary.triggers.base import (
    AnyWindow,
    Row,
    Trigger,
    TriggerContext,
    TriggerResult,
)


@dataclass(frozen=True)
class EventTimeTrigger(Trigger):
    """Fires when the watermark passes the window's end, and at each late row after that.

    The default of event-time windows (Flink: EventTimeTrigger).

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann", "ann"], "ts": [0, 1]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> minutes = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 minute"))
    >>> minutes.trigger(gw.EventTimeTrigger.create()).aggregate(n=gw.count())["n"].to_pylist()
    [2]
    """

    waits_for_end = True
    needs_watermarks = True

    @classmethod
    def create(cls) -> Self:
        """Build the trigger."""
        return cls()

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire if the window has ended already, else wait for its end."""
        if window.max_timestamp <= context.current_watermark:
            return TriggerResult.FIRE
        context.register_event_time_timer(window.max_timestamp)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: AnyWindow, context: TriggerContext) -> TriggerResult:
        """Fire at the end of the window."""
        return TriggerResult.FIRE if time == window.max_timestamp else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: AnyWindow, context: TriggerContext) -> None:
        """Wait for the end of the merged window, unless that is reached."""
        if window.max_timestamp > context.current_watermark:
            context.register_event_time_timer(window.max_timestamp)

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Delete the timer."""
        context.delete_event_time_timer(window.max_timestamp)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "at the window's end"


@dataclass(frozen=True)
class EndOfStreamTrigger(Trigger):
    """Fires once, when the input ends (Flink: GlobalWindows.EndOfStreamTrigger).

    Examples
    --------
    >>> users = gw.stream(pa.table({"user": ["ann", "ann"]})).key_by("user")
    >>> whole = users.window(gw.GlobalWindows.create()).trigger(gw.EndOfStreamTrigger.create())
    >>> whole.aggregate(n=gw.count())["n"].to_pylist()
    [2]
    """

    ends_with_input = True

    @classmethod
    def create(cls) -> Self:
        """Build the trigger."""
        return cls()

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Wait for the end."""
        context.register_event_time_timer(window.max_timestamp)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: AnyWindow, context: TriggerContext) -> TriggerResult:
        """Fire at the end."""
        return TriggerResult.FIRE if time == window.max_timestamp else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: AnyWindow, context: TriggerContext) -> None:
        """Wait for the end."""
        context.register_event_time_timer(window.max_timestamp)

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Delete the timer."""
        context.delete_event_time_timer(window.max_timestamp)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "at the end of the input"
