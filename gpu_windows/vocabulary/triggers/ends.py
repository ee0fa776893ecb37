"""Triggers that fire at the end of windows, or of the input; and the one that never does."""

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


class _AtEnd(Trigger):
    """A trigger that waits for a window's last tick in event time."""

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
        """Wait for the end of the merged window."""
        context.register_event_time_timer(window.max_timestamp)

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Delete the timer."""
        context.delete_event_time_timer(window.max_timestamp)


@dataclass(frozen=True)
class EventTimeTrigger(_AtEnd):
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
        return super().on_element(row, timestamp, window, context)

    def on_merge(self, window: AnyWindow, context: TriggerContext) -> None:
        """Wait for the end of the merged window, unless that is reached."""
        if window.max_timestamp > context.current_watermark:
            super().on_merge(window, context)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "at the window's end"


@dataclass(frozen=True)
class EndOfStreamTrigger(_AtEnd):
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

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "at the end of the input"


@dataclass(frozen=True)
class ProcessingTimeTrigger(Trigger):
    """Fires when processing time passes the window's end.

    The default of processing-time windows (Flink: ProcessingTimeTrigger).

    Examples
    --------
    >>> trigger = gw.ProcessingTimeTrigger.create()
    >>> trigger.describe(), trigger.uses_processing_time
    ("when processing time passes the window's end", True)
    """

    uses_processing_time = True
    waits_for_end = True

    @classmethod
    def create(cls) -> Self:
        """Build the trigger."""
        return cls()

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Wait for the window's end."""
        context.register_processing_time_timer(window.max_timestamp)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire."""
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: AnyWindow, context: TriggerContext) -> None:
        """Wait for the end of the merged window, unless that is reached."""
        if window.max_timestamp > context.current_processing_time:
            context.register_processing_time_timer(window.max_timestamp)

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Delete the timer."""
        context.delete_processing_time_timer(window.max_timestamp)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "when processing time passes the window's end"


@dataclass(frozen=True)
class NeverTrigger(Trigger):
    """Never fires: the default of global windows (Flink: GlobalWindows.NeverTrigger).

    Examples
    --------
    >>> users = gw.stream(pa.table({"user": ["ann", "ann"]})).key_by("user")
    >>> silent = users.window(gw.GlobalWindows.create()).trigger(gw.NeverTrigger.create())
    >>> silent.aggregate(n=gw.count()).num_rows
    0
    """

    @classmethod
    def create(cls) -> Self:
        """Build the trigger."""
        return cls()

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Do nothing: it has no state."""

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "never"
