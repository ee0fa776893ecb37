"""What triggers, assigners, evictors and process functions may ask of the reference operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpu_windows.functions.window import KeptState
from gpu_windows.operators.keyed.timers import Slot
from gpu_windows.windows import Window

if TYPE_CHECKING:
    from gpu_windows.operators.by_row.operator import ReferenceOperator


class SlotContext:
    """A `gpu_windows.triggers.TriggerContext` (and what evictors and functions see) of one slot.

    ``merged``: the windows that were merged into the slot's, during ``on_merge``.
    """

    def __init__(
        self, operator: ReferenceOperator, slot: Slot, merged: Sequence[Window] = ()
    ) -> None:
        self._operator = operator
        self._slot = slot
        self._merged = merged

    # ---- times

    @property
    def window(self) -> Window:
        """The window."""
        return self._slot.window

    @property
    def current_watermark(self) -> int:
        """The watermark."""
        return self._operator.memory.watermark

    @property
    def current_processing_time(self) -> int:
        """The clock."""
        return self._operator.memory.clock

    # ---- timers

    def register_event_time_timer(self, time: int) -> None:
        """Set an event-time timer."""
        self._operator.memory.event_timers.register(time, self._slot)

    def delete_event_time_timer(self, time: int) -> None:
        """Take an event-time timer back."""
        self._operator.take_back(self._operator.memory.event_timers, time, self._slot)

    def register_processing_time_timer(self, time: int) -> None:
        """Set a processing-time timer."""
        self._operator.memory.clock_timers.register(time, self._slot)

    def delete_processing_time_timer(self, time: int) -> None:
        """Take a processing-time timer back."""
        self._operator.take_back(self._operator.memory.clock_timers, time, self._slot)

    # ---- state of the trigger

    def get(self, name: str, default: Any = None) -> Any:
        """Return what was kept under ``name``."""
        return self._operator.memory.trigger_state.get(self._slot, name, default)

    def put(self, name: str, value: Any) -> None:
        """Keep a value."""
        self._operator.memory.trigger_state.put(self._slot, name, value)

    def remove(self, name: str) -> None:
        """Forget what was kept under ``name``."""
        self._operator.memory.trigger_state.remove(self._slot, name)

    def merge(self, name: str, combine: Callable[[Any, Any], Any]) -> None:
        """Combine what the merged windows kept, in their order."""
        state, value = self._operator.memory.trigger_state, self.get(name)
        for window in self._merged:
            slot = Slot(self._slot.key, window)
            found = state.get(slot, name, None)
            if found is not None:
                value = found if value is None else combine(value, found)
                state.remove(slot, name)
        if value is not None:
            self.put(name, value)

    def count(self, counter: str, by: int = 1) -> None:
        """Add to a counter of the user's."""
        self._operator.user_counts[counter] += by

    # ---- state of a process function

    @property
    def window_state(self) -> KeptState:
        """State of this key and window."""
        return self._operator.memory.window_state.of(self._slot)

    @property
    def key_state(self) -> KeptState:
        """State of this key."""
        return self._operator.memory.key_state.of(self._slot.key)
