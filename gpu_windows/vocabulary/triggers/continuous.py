"""Triggers that fire at multiples of an interval."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import pyarrow as pa

from gpu_windows.errors import InvalidTriggerError
from gpu_windows.rules import interval_start
from gpu_windows.vocabulary.options import Duration, is_whole, show_ticks, ticks
from gpu_windows.vocabulary.triggers.base import (
    AnyWindow,
    Row,
    Trigger,
    TriggerContext,
    TriggerResult,
)


@dataclass(frozen=True)
class _Continuous(Trigger):
    """The base of both triggers: one timer, at the next multiple or at the window's end."""

    interval: int

    state: ClassVar = {"next": pa.int64()}

    @classmethod
    def of(cls, interval: Duration) -> Self:
        """Fire every ``interval``.

        Parameters
        ----------
        interval : str or datetime.timedelta
            Positive, such as ``"10 seconds"``.
        """
        return cls(ticks(interval))

    def __post_init__(self) -> None:
        check_interval(self.interval, type(self).__name__)

    @abstractmethod
    def _register(self, time: int, context: TriggerContext) -> None:
        """Set a timer of this trigger's time."""

    @abstractmethod
    def _delete(self, time: int, context: TriggerContext) -> None:
        """Delete a timer of this trigger's time."""

    def _begin(self, time: int, window: AnyWindow, context: TriggerContext) -> None:
        """Set a timer at the first multiple after ``time``, unless one is set."""
        if context.get("next") is None:
            self._wait(interval_start(time, self.interval), window, context)

    def _fire(self, time: int, window: AnyWindow, context: TriggerContext) -> TriggerResult:
        """Fire at the window's end, or at the multiple of the timer; then set the next one."""
        if time == window.max_timestamp:
            return TriggerResult.FIRE
        if time != context.get("next"):
            return TriggerResult.CONTINUE
        self._wait(time, window, context)
        return TriggerResult.FIRE

    def _wait(self, time: int, window: AnyWindow, context: TriggerContext) -> None:
        following = min(time + self.interval, window.max_timestamp)
        context.put("next", following)
        self._register(following, context)

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: AnyWindow, context: TriggerContext) -> None:
        """Set a timer at the earliest one of the merged windows."""
        context.merge("next", min)
        if (time := context.get("next")) is not None:
            self._register(time, context)

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Delete the timer of the next multiple."""
        if (time := context.get("next")) is not None:
            self._delete(time, context)
            context.remove("next")


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(_Continuous):
    """Fires whenever the watermark passes a multiple of ``interval``, and at the window's end.

    Multiples are counted from the epoch, not from the window's start. After the end each late row
    fires (Flink: ContinuousEventTimeTrigger).

    Parameters
    ----------
    interval : int
        In ticks; `of` takes a duration.

    Examples
    --------
    The watermark of a bounded input moves after the last row, so each firing sees all rows:

    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "ts": [0, 15_000_000, 31_000_000]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> minutes = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 minute"))
    >>> early = minutes.trigger(gw.ContinuousEventTimeTrigger.of("20 seconds"))
    >>> early.aggregate(n=gw.count())["n"].to_pylist()
    [3, 3, 3]
    """

    fires_by_intervals = True
    needs_watermarks = True

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire if the window has ended already, else wait for the next multiple and the end."""
        if window.max_timestamp <= context.current_watermark:
            return TriggerResult.FIRE
        context.register_event_time_timer(window.max_timestamp)
        self._begin(timestamp, window, context)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: AnyWindow, context: TriggerContext) -> TriggerResult:
        """Fire, and wait for the next multiple."""
        return self._fire(time, window, context)

    def _register(self, time: int, context: TriggerContext) -> None:
        context.register_event_time_timer(time)

    def _delete(self, time: int, context: TriggerContext) -> None:
        context.delete_event_time_timer(time)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"every {show_ticks(self.interval)} of event time and at the window's end"


@dataclass(frozen=True)
class ContinuousProcessingTimeTrigger(_Continuous):
    """Fires whenever processing time passes a multiple of ``interval``, and at the window's end.

    Multiples are counted from the epoch (Flink: ContinuousProcessingTimeTrigger).

    Parameters
    ----------
    interval : int
        In ticks; `of` takes a duration.

    Examples
    --------
    >>> trigger = gw.ContinuousProcessingTimeTrigger.of("10 seconds")
    >>> trigger.describe(), trigger.uses_processing_time
    ('every 10 s of processing time', True)
    """

    uses_processing_time = True

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Wait for the next multiple."""
        self._begin(context.current_processing_time, window, context)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire, and wait for the next multiple."""
        return self._fire(time, window, context)

    def _register(self, time: int, context: TriggerContext) -> None:
        context.register_processing_time_timer(time)

    def _delete(self, time: int, context: TriggerContext) -> None:
        context.delete_processing_time_timer(time)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"every {show_ticks(self.interval)} of processing time"


def check_interval(interval: int, name: str) -> None:
    """Refuse an interval that is not positive."""
    if not is_whole(interval):
        rule = f"a {name} is made by of('1 minute'), or takes ticks"
        raise InvalidTriggerError(rule, value=repr(interval))
    if interval <= 0:
        rule = f"the interval of a {name} must be positive"
        raise InvalidTriggerError(rule, value=show_ticks(interval))
