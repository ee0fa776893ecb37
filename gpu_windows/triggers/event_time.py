"""Triggers that follow the watermark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import pyarrow as pa

from gpu_windows.errors import InvalidTriggerError
from gpu_windows.options import Duration, show_ticks, ticks
from gpu_windows.rules import interval_start
from gpu_windows.triggers.base import AnyWindow, Row, Trigger, TriggerContext, TriggerResult


@dataclass(frozen=True)
class EventTimeTrigger(Trigger):
    """Fires when the watermark passes the window's end, and at each late row after that.

    The default of event-time windows (Flink: EventTimeTrigger).
    """

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
        """Wait for the end of the merged window, unless that is over."""
        if window.max_timestamp > context.current_watermark:
            context.register_event_time_timer(window.max_timestamp)

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Take the timer back."""
        context.delete_event_time_timer(window.max_timestamp)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "at the window's end"


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(Trigger):
    """Fires whenever the watermark passes a multiple of ``interval``, and at the window's end.

    Multiples are counted from the epoch, not from the window's start. After the end each late row
    fires (Flink: ContinuousEventTimeTrigger).
    """

    interval: int

    state: ClassVar = {"next": pa.int64()}

    @classmethod
    def of(cls, interval: Duration) -> Self:
        """Fire every ``interval`` of event time."""
        return cls(ticks(interval))

    def __post_init__(self) -> None:
        check_interval(self.interval, type(self).__name__)

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire if the window has ended already, else wait for the next multiple and the end."""
        if window.max_timestamp <= context.current_watermark:
            return TriggerResult.FIRE
        context.register_event_time_timer(window.max_timestamp)
        if context.get("next") is None:
            self._wait(interval_start(timestamp, self.interval), window, context)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: AnyWindow, context: TriggerContext) -> TriggerResult:
        """Fire, and wait for the next multiple."""
        if time == window.max_timestamp:
            return TriggerResult.FIRE
        if time != context.get("next"):
            return TriggerResult.CONTINUE
        self._wait(time, window, context)
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: AnyWindow, context: TriggerContext) -> None:
        """Wait for the earliest time that a merged window waited for."""
        context.merge("next", min)
        if (time := context.get("next")) is not None:
            context.register_event_time_timer(time)

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Take the timer of the next multiple back."""
        if (time := context.get("next")) is not None:
            context.delete_event_time_timer(time)
            context.remove("next")

    def _wait(self, time: int, window: AnyWindow, context: TriggerContext) -> None:
        following = min(time + self.interval, window.max_timestamp)
        context.put("next", following)
        context.register_event_time_timer(following)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"every {show_ticks(self.interval)} of event time and at the window's end"


@dataclass(frozen=True)
class EndOfStreamTrigger(Trigger):
    """Fires once, when the input ends (Flink: GlobalWindows.EndOfStreamTrigger)."""

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
        """Take the timer back."""
        context.delete_event_time_timer(window.max_timestamp)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return "at the end of the input"


def check_interval(interval: int, name: str) -> None:
    """Refuse an interval that is not positive."""
    if interval <= 0:
        rule = f"the interval of a {name} must be positive"
        raise InvalidTriggerError(rule, value=show_ticks(interval))
