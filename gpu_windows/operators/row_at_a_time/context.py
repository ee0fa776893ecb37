"""Contexts of triggers, evictors and process functions in the reference operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpu_windows.errors import InvalidTriggerError
from gpu_windows.functions.checked_results import checked_tick
from gpu_windows.functions.counts import Counts
from gpu_windows.functions.process import WindowState
from gpu_windows.functions.side_outputs import GatheredSides
from gpu_windows.operators.keyed.backend import Key
from gpu_windows.operators.keyed.state import NamedState
from gpu_windows.operators.keyed.timers import Pane
from gpu_windows.operators.row_at_a_time.cleanup import Cleanup
from gpu_windows.planning.validation import is_user_code
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.windows import Window


class PaneContext(NamedState):
    """A `gpu_windows.vocabulary.triggers.TriggerContext` of one pane, with the trigger's state.

    Parameters
    ----------
    cleanup : Cleanup
        Of the operator, with its query and its state.
    counts : Counts
        The counters of user code.
    pane : Pane
    merged : sequence of Window
        The windows that were merged into the pane's, during ``on_merge``.
    """

    _pane: Pane

    def __init__(
        self, cleanup: Cleanup, counts: Counts, pane: Pane, merged: Sequence[Window] = ()
    ) -> None:
        super().__init__(cleanup.state.trigger_state, pane)
        self._query, self._counts, self._merged = cleanup.query, counts, merged
        self._cleanup, self._state = cleanup, cleanup.state

    # ---- times

    @property
    def window(self) -> Window:
        """The window."""
        return self._pane.window

    @property
    def current_watermark(self) -> int:
        """The watermark."""
        return self._state.watermark

    @property
    def current_processing_time(self) -> int:
        """Processing time, in ticks."""
        return self._state.processing_time

    # ---- timers

    def register_event_time_timer(self, time: int) -> None:
        """Set an event-time timer."""
        self._state.event_timers.register(self._tick(time), self._pane)

    def delete_event_time_timer(self, time: int) -> None:
        """Delete an event-time timer."""
        self._cleanup.delete_trigger_timer(self._state.event_timers, self._tick(time), self._pane)

    def register_processing_time_timer(self, time: int) -> None:
        """Set a processing-time timer.

        Raises
        ------
        InvalidTriggerError
            If no part of the query declares that it uses processing time: the timer would not fire.
        """
        if not self._query.uses_processing_time:
            names = [type(t).__name__ for t in self._query.trigger.walk() if is_user_code(t)]
            rule = (
                "a trigger that sets processing-time timers must say so "
                "(uses_processing_time = True): else they never fire"
            )
            raise InvalidTriggerError(rule, value=", ".join(names))
        self._state.processing_timers.register(self._tick(time), self._pane)

    def delete_processing_time_timer(self, time: int) -> None:
        """Delete a processing-time timer."""
        timers = self._state.processing_timers
        self._cleanup.delete_trigger_timer(timers, self._tick(time), self._pane)

    def _tick(self, time: int) -> int:
        """Return a time that a timer can have."""
        if time.__class__ is int and LONG_MIN <= time <= LONG_MAX:
            return time
        return checked_tick(time, type(self._query.trigger).__name__)

    # ---- state of the trigger

    def merge(self, name: str, combine: Callable[[Any, Any], Any]) -> None:
        """Combine the values of the merged windows, in their order."""
        value = self.get(name)
        for window in self._merged:
            state = NamedState(self._table, Pane(self._pane.key, window))
            found = state.get(name)
            if found is not None:
                value = found if value is None else combine(value, found)
                state.remove(name)
        if value is not None:
            self.put(name, value)

    def count(self, counter: str, by: int = 1) -> None:
        """Add to a counter of the user's."""
        self._counts.add(counter, by)


class FunctionPaneContext(PaneContext):
    """The context of a process function or an evictor, for one pane.

    Parameters
    ----------
    cleanup, counts, pane
        See `PaneContext`.
    sides : GatheredSides
        The side outputs of the function.
    """

    def __init__(
        self, cleanup: Cleanup, counts: Counts, pane: Pane, sides: GatheredSides[Key]
    ) -> None:
        super().__init__(cleanup, counts, pane)
        self._sides = sides

    def output(self, tag: str, row: Mapping[str, object]) -> None:
        """Add a row to a side output."""
        self._sides.add(tag, self._pane.key, row)

    @property
    def window_state(self) -> WindowState:
        """State of this key and window."""
        return NamedState(self._state.window_state, self._pane)

    @property
    def key_state(self) -> WindowState:
        """State of this key."""
        return NamedState(self._state.key_state, self._pane.key)
