"""Contexts of process functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from gpu_windows.column_types.time_units import FIRST_CERTAIN
from gpu_windows.errors import InvalidFunctionError
from gpu_windows.functions.checked_results import checked_tick
from gpu_windows.operators.keyed.backend import Key
from gpu_windows.operators.keyed.values import UserKey
from gpu_windows.operators.process.keyed_state import KeyedState
from gpu_windows.operators.process.open_function import OpenedFunction
from gpu_windows.operators.process.output import ProcessOutput
from gpu_windows.planning.kinds.process import ProcessQuery
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.options import Duration, ticks

#: Ticks of a duration; functions say the same one for every row.
_length_of = lru_cache(maxsize=256)(ticks)


class Context:
    """A `gpu_windows.functions.keyed_process.BaseContext` without the current key.

    Attributes
    ----------
    timestamp : int or None
    """

    def __init__(self, owner: str, keyed: KeyedState, output: ProcessOutput) -> None:
        self._owner, self._keyed, self._output = owner, keyed, output
        self.timestamp: int | None = None

    @property
    def current_watermark(self) -> int:
        """The watermark."""
        return self._keyed.watermark

    @property
    def current_processing_time(self) -> int:
        """Processing time."""
        return self._keyed.processing_time

    def count(self, counter: str, by: int = 1) -> None:
        """Add to a counter of the user's."""
        self._output.counts.add(counter, by)


class ProcessFunctionContext(Context):
    """A `gpu_windows.functions.keyed_process.TimerContext`, of the current key.

    Attributes
    ----------
    time_domain : str
        Time domain of the current timer; "" for a row.
    broadcast_state : callable
        Returns a map of broadcast state, of functions that have one; it is set by their operator.
    """

    broadcast_state: Callable[[str], Any]

    def __init__(
        self,
        query: ProcessQuery,
        opened: OpenedFunction,
        keyed: KeyedState,
        output: ProcessOutput,
    ) -> None:
        super().__init__(query.process.name, keyed, output)
        self._user_key, self._now = UserKey(query.display_key_fields), opened.now
        self._last: tuple[Key | None, dict[str, object]] = None, {}
        self._sets_processing_timers = query.uses_processing_time
        self._register = keyed.event_timers.register
        self.time_domain = ""
        self.state: Callable[[str], Any] = opened.state

    @property
    def key(self) -> Mapping[str, object]:
        """The current key."""
        key, (last, values) = self._key, self._last
        if key is not last:
            values = self._user_key(key)
            self._last = key, values
        return dict(values)

    @property
    def _key(self) -> Key:
        key: Key = self._now.key  # type: ignore[assignment]
        return key

    def after(self, duration: Duration, time: int | None = None) -> int:
        """Return the time that is a duration after another one, or after the row or timer."""
        start = self.timestamp if time is None else time
        if start is None:
            rule = (
                f"{self._owner} has rows without an event time: say "
                "after(duration, context.current_processing_time)"
            )
            raise InvalidFunctionError(rule)
        return start + _length_of(duration)

    def register_event_time_timer(self, time: int | datetime) -> None:
        """Set a timer of event time."""
        if time.__class__ is not int or not FIRST_CERTAIN <= time <= LONG_MAX:
            time = self._tick(time)
        self._register(time, self._now.key)  # type: ignore[arg-type]

    def delete_event_time_timer(self, time: int | datetime) -> None:
        """Delete a timer of event time."""
        self._keyed.event_timers.delete(self._tick(time), self._key)

    def register_processing_time_timer(self, time: int | datetime) -> None:
        """Set a timer of processing time."""
        if not self._sets_processing_timers:
            rule = f"{self._owner} must declare uses_processing_time = True to set such timers"
            raise InvalidFunctionError(rule, value=time)
        self._keyed.processing_timers.register(self._tick(time), self._key)

    def delete_processing_time_timer(self, time: int | datetime) -> None:
        """Delete a timer of processing time."""
        self._keyed.processing_timers.delete(self._tick(time), self._key)

    def output(self, tag: str, row: Mapping[str, object]) -> None:
        """Add a row to a side output."""
        self._output.emit_aside(tag, row)

    def _tick(self, time: Any) -> int:
        """Return a time that a timer can have."""
        if isinstance(time, timedelta):
            rule = f"{self._owner} sets timers at times: context.after(duration) is one"
            raise InvalidFunctionError(rule, value=repr(time))
        return checked_tick(time, self._owner)
