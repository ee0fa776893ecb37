"""What triggers do, apart from what they are: Flink's methods, row at a time.

The descriptions are in `gpu_windows.triggers`. A logic holds no state of its own: what it
must remember of a key and window it keeps in its `TriggerContext`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Protocol

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.functions import Row
from gpu_windows.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger, Trigger
from gpu_windows.windows import TimeWindow


class TriggerResult(Enum):
    """What becomes of a window (Flink: TriggerResult): (emit it, empty it)."""

    CONTINUE = (False, False)
    FIRE = (True, False)
    PURGE = (False, True)
    FIRE_AND_PURGE = (True, True)

    @property
    def fires(self) -> bool:
        """Whether the window function is called."""
        return self.value[0]

    @property
    def purges(self) -> bool:
        """Whether the contents of the window are dropped."""
        return self.value[1]


class TriggerContext(Protocol):
    """What a trigger may ask of the operator, for the key and window at hand."""

    @property
    def current_watermark(self) -> int:
        """The watermark, in ticks; LONG_MIN before the first one."""

    def register_event_time_timer(self, time: int) -> None:
        """Have `TriggerLogic.on_event_time` called once the watermark reaches ``time``.

        A time that the watermark has passed already is due at its next advance.
        """

    def delete_event_time_timer(self, time: int) -> None:
        """Take a timer back; nothing happens if there is none."""

    def get(self, name: str, default: int) -> int:
        """Return what was kept under ``name`` for this key and window."""

    def put(self, name: str, value: int) -> None:
        """Keep a value for this key and window."""

    def remove(self, name: str) -> None:
        """Forget what was kept under ``name``."""


class TriggerLogic(ABC):
    """A trigger at work (Flink: Trigger)."""

    @abstractmethod
    def on_element(
        self, row: Row, ts: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Called for each row that was put into a window, after it was added."""

    def on_event_time(
        self, time: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Called when the watermark passes an event-time timer of the window.

        The operator's own cleanup timer comes here too, so compare ``time`` with what was set.
        """
        return TriggerResult.CONTINUE

    @abstractmethod
    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """Called when the window is dropped: forget its state and timers."""


class EventTimeLogic(TriggerLogic):
    """Fires at the end of the window, and at once for a row that comes after it."""

    def on_element(
        self, row: Row, ts: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire if the window has ended already, else wait for its end."""
        if window.max_timestamp <= context.current_watermark:
            return TriggerResult.FIRE
        context.register_event_time_timer(window.max_timestamp)
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire at the end of the window."""
        return TriggerResult.FIRE if time == window.max_timestamp else TriggerResult.CONTINUE

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """Take the timer back."""
        context.delete_event_time_timer(window.max_timestamp)


class CountLogic(TriggerLogic):
    """Fires at each n-th row of a key and window."""

    _COUNT = "count"

    def __init__(self, count: int) -> None:
        self._limit = count

    def on_element(
        self, row: Row, ts: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Count the row; fire and start again at the n-th."""
        count = context.get(self._COUNT, 0) + 1
        if count < self._limit:
            context.put(self._COUNT, count)
            return TriggerResult.CONTINUE
        context.remove(self._COUNT)
        return TriggerResult.FIRE

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """Forget the count."""
        context.remove(self._COUNT)


class PurgingLogic(TriggerLogic):
    """Empties the window whenever the inner trigger fires."""

    def __init__(self, inner: TriggerLogic) -> None:
        self._inner = inner

    def on_element(
        self, row: Row, ts: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Ask the inner trigger."""
        return _purging(self._inner.on_element(row, ts, window, context))

    def on_event_time(
        self, time: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Ask the inner trigger."""
        return _purging(self._inner.on_event_time(time, window, context))

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """Clear the inner trigger."""
        self._inner.clear(window, context)


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.fires else result


def trigger_logic(trigger: Trigger) -> TriggerLogic:
    """Return the logic of a trigger.

    Raises
    ------
    UnsupportedQueryError
        If this operator does not know the trigger.
    """
    match trigger:
        case EventTimeTrigger():
            return EventTimeLogic()
        case CountTrigger(count):
            return CountLogic(count)
        case PurgingTrigger(inner):
            return PurgingLogic(trigger_logic(inner))
    rule = "the row-at-a-time operator has no logic for this trigger"
    raise UnsupportedQueryError(rule, value=trigger.describe())
