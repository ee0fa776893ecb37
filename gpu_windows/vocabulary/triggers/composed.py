"""Triggers made of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from gpu_windows.errors import InvalidTriggerError
from gpu_windows.rules import cleanup_time
from gpu_windows.vocabulary.options import Duration, show_ticks, ticks
from gpu_windows.vocabulary.triggers.base import (
    AnyWindow,
    Row,
    Trigger,
    TriggerContext,
    TriggerResult,
    WrappingTrigger,
    check_part,
)
from gpu_windows.vocabulary.triggers.continuous import check_interval


@dataclass(frozen=True)
class PurgingTrigger(WrappingTrigger):
    """Empties the window whenever the inner trigger fires (Flink: PurgingTrigger).

    Parameters
    ----------
    inner : Trigger
        Decides when the window fires.

    Examples
    --------
    >>> users = gw.stream(pa.table({"user": ["ann"] * 4})).key_by("user")
    >>> whole = users.window(gw.GlobalWindows.create())
    >>> twos = whole.trigger(gw.PurgingTrigger.of(gw.CountTrigger.of(2)))
    >>> twos.aggregate(n=gw.count())["n"].to_pylist()
    [2, 2]
    """

    @classmethod
    def of(cls, inner: Trigger) -> Self:
        """Purge at each firing of ``inner``.

        Parameters
        ----------
        inner : Trigger
            Decides when the window fires.
        """
        return cls(inner)

    @property
    def needs_watermarks(self) -> bool:
        """Whether the inner trigger does."""
        return self.inner.needs_watermarks

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Return the result of the inner trigger, purging if it fires."""
        return _purging(self.inner.on_element(row, timestamp, window, context))

    def on_event_time(self, time: int, window: AnyWindow, context: TriggerContext) -> TriggerResult:
        """Return the result of the inner trigger, purging if it fires."""
        return _purging(self.inner.on_event_time(time, window, context))

    def on_processing_time(
        self, time: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Return the result of the inner trigger, purging if it fires."""
        return _purging(self.inner.on_processing_time(time, window, context))

    def can_merge(self) -> bool:
        """Whether the inner trigger can."""
        return self.inner.can_merge()

    def on_merge(self, window: AnyWindow, context: TriggerContext) -> None:
        """Merge the inner trigger."""
        self.inner.on_merge(window, context)

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Clear the inner trigger."""
        self.inner.clear(window, context)

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return f"{self.inner.describe()}, purging"


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.fires else result


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


@dataclass(frozen=True)
class EarlyAndLateTrigger(Trigger):
    """Fires early as one trigger says, at the window's end, and late as another says.

    Flink has this in SQL (``table.exec.emit``) only; each part has its own state and timers.

    Parameters
    ----------
    early, late : Trigger, optional
        Decide before the window has fired at its end, and after. Without ``early`` nothing fires
        before; without ``late`` each late row fires. A window that ended before its first row came,
        or before it was merged, has not fired at its end: there each row fires.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "ts": [0, 1, 2]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> minutes = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 minute"))
    >>> early = minutes.trigger(gw.EarlyAndLateTrigger.of(early=gw.CountTrigger.of(2)))
    >>> early.aggregate(n=gw.count())["n"].to_pylist()
    [2, 3]
    """

    early: Trigger | None = None
    late: Trigger | None = None

    @classmethod
    def of(cls, *, early: Trigger | None = None, late: Trigger | None = None) -> Self:
        """Build the trigger, e.g. ``early=ContinuousProcessingTimeTrigger.of("10 seconds")``.

        Parameters
        ----------
        early, late : Trigger, optional
            At least one must be given.
        """
        return cls(early, late)

    def __post_init__(self) -> None:
        if self.early is None and self.late is None:
            rule = "without early and late firings, take the EventTimeTrigger"
            raise InvalidTriggerError(rule, value="none")
        for part in self.parts:
            check_part(part, self)

    @property
    def state(self) -> Mapping[str, pa.DataType]:
        """Whether the window has fired at its end, and the state of the parts by own names."""
        parts = {
            f"{part}.{name}": dtype
            for part, trigger in self._parts
            for name, dtype in trigger.state.items()
        }
        return {"on_time": pa.bool_(), **parts}

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the parts read."""
        return tuple(dict.fromkeys(name for part in self._parts for name in part[1].columns))

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """The early and the late trigger."""
        return tuple(part for _, part in self._parts)

    @property
    def _parts(self) -> list[tuple[str, Trigger]]:
        parts = (("early", self.early), ("late", self.late))
        return [(name, part) for name, part in parts if part is not None]

    def _active(self, context: TriggerContext) -> tuple[str, Trigger | None]:
        fired = context.get("on_time", False)
        return ("late", self.late) if fired else ("early", self.early)

    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Ask the current part; wait for the window's end. Fire if that was missed."""
        ended = window.max_timestamp <= context.current_watermark
        if not ended:
            context.register_event_time_timer(window.max_timestamp)
        name, part = self._active(context)
        if ended and (part is None or name == "early"):
            return TriggerResult.FIRE
        if part is None:
            return TriggerResult.CONTINUE
        return part.on_element(row, timestamp, window, _Part(context, name))

    def on_event_time(self, time: int, window: AnyWindow, context: TriggerContext) -> TriggerResult:
        """Fire at the window's end; before and after it, as the parts decide."""
        name, part = self._active(context)
        if name == "early" and time == window.max_timestamp:
            if part is not None:
                part.clear(window, _Part(context, name))
            context.put("on_time", value=True)
            return TriggerResult.FIRE
        if part is None:
            return TriggerResult.CONTINUE
        return part.on_event_time(time, window, _Part(context, name))

    def on_processing_time(
        self, time: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Return the result of the current part."""
        name, part = self._active(context)
        if part is None:
            return TriggerResult.CONTINUE
        return part.on_processing_time(time, window, _Part(context, name))

    def can_merge(self) -> bool:
        """Return whether both parts can."""
        return all(part.can_merge() for _, part in self._parts)

    def on_merge(self, window: AnyWindow, context: TriggerContext) -> None:
        """Merge the parts; wait for the end of the merged window, unless that is reached."""
        if window.max_timestamp > context.current_watermark:
            context.register_event_time_timer(window.max_timestamp)
        for name, part in self._parts:
            part.on_merge(window, _Part(context, name))

    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Delete the timer and clear the parts."""
        for name, part in self._parts:
            part.clear(window, _Part(context, name))
        context.delete_event_time_timer(window.max_timestamp)
        context.remove("on_time")

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        early = "" if self.early is None else f"early {self.early.describe()}, "
        late = "at each late row" if self.late is None else f"late {self.late.describe()}"
        return f"{early}at the window's end, {late}"


class _Part:
    """The context of a part, whose state has names of its own."""

    def __init__(self, context: TriggerContext, name: str) -> None:
        self._context = context
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def get(self, name: str, default: Any = None) -> Any:
        return self._context.get(f"{self._name}.{name}", default)

    def put(self, name: str, value: Any) -> None:
        self._context.put(f"{self._name}.{name}", value)

    def remove(self, name: str) -> None:
        self._context.remove(f"{self._name}.{name}")

    def merge(self, name: str, combine: Callable[[Any, Any], Any]) -> None:
        self._context.merge(f"{self._name}.{name}", combine)
