"""Triggers that follow processing time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from gpu_windows.rules import cleanup_time
from gpu_windows.vocabulary.options import Duration, show_ticks, ticks
from gpu_windows.vocabulary.triggers.base import (
    AnyWindow,
    Row,
    Trigger,
    TriggerContext,
    TriggerResult,
    WrappingTrigger,
)
from gpu_windows.vocabulary.triggers.continuous import check_interval


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
class ProcessingTimeoutTrigger(WrappingTrigger):
    """Fires when the inner trigger does, or when that has not for ``timeout`` of processing time.

    (Flink: ProcessingTimeoutTrigger.)

    Parameters
    ----------
    inner : Trigger
    timeout : int
        In ticks, from the first row since the last firing, or from each row.
    reset_on_new_row : bool
        Whether every row restarts the timeout.
    clear_on_timeout : bool
        Whether the state of the inner trigger is cleared at a timeout.

    Examples
    --------
    >>> gw.ProcessingTimeoutTrigger.of(gw.CountTrigger.of(100), "5 seconds").describe()
    'every 100 rows, or 5 s of processing time later'
    """

    timeout: int
    reset_on_new_row: bool = False
    clear_on_timeout: bool = True
    uses_processing_time = True

    @classmethod
    def of(
        cls,
        inner: Trigger,
        timeout: Duration,
        *,
        reset_on_new_row: bool = False,
        clear_on_timeout: bool = True,
    ) -> Self:
        """Build the trigger around another.

        Parameters
        ----------
        inner : Trigger
        timeout : str or datetime.timedelta
            Positive, such as ``"5 seconds"``.
        reset_on_new_row : bool
            Whether each row restarts the timeout.
        clear_on_timeout : bool
            Whether a timeout clears the inner trigger's state.
        """
        return cls(inner, ticks(timeout), reset_on_new_row, clear_on_timeout)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_interval(self.timeout, type(self).__name__)

    @property
    def state(self) -> Mapping[str, pa.DataType]:
        """The time of the timeout, and the state of the inner trigger."""
        return {"timeout": pa.int64(), **self.inner.state}

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Ask the inner trigger; start the timeout."""
        result = self.inner.on_element(row, timestamp, window, context)
        if result.fires:
            self.clear(window, context)
            return result
        timer = context.get("timeout")
        if timer is not None and self.reset_on_new_row:
            context.delete_processing_time_timer(timer)
            timer = None
        if timer is None:
            time = cleanup_time(context.current_processing_time, self.timeout)
            context.put("timeout", time)
            context.register_processing_time_timer(time)
        return result

    def on_processing_time(
        self, time: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire."""
        result = self.inner.on_processing_time(time, window, context)
        return self._timed_out(result, window, context)

    def on_event_time(self, time: int, window: AnyWindow, context: TriggerContext) -> TriggerResult:
        """Fire."""
        result = self.inner.on_event_time(time, window, context)
        return self._timed_out(result, window, context)

    def _timed_out(
        self, result: TriggerResult, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        if self.clear_on_timeout:
            self.clear(window, context)
        return TriggerResult.FIRE_AND_PURGE if result.purges else TriggerResult.FIRE

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Delete the timer of the timeout and clear the inner trigger."""
        timer = context.get("timeout")
        if timer is not None:
            context.delete_processing_time_timer(timer)
            context.remove("timeout")
        self.inner.clear(window, context)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"{self.inner.describe()}, or {show_ticks(self.timeout)} of processing time later"
