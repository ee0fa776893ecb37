"""The base of triggers, with Flink's methods. Their state is stored by key and window.

Write your own as a subclass: it runs row at a time, in Python, with the same results on every
runner. The built-in ones are written the same way and serve as examples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import pyarrow as pa

from gpu_windows.arguments import check_factories
from gpu_windows.errors import InvalidTriggerError
from gpu_windows.vocabulary.rich_functions import Openable

#: The columns of a row that a trigger, evictor or assigner reads.
Row = Mapping[str, object]


class TriggerResult(Enum):
    """The decision of a trigger (Flink: TriggerResult): (fire the window, purge it).

    Examples
    --------
    >>> result = gw.functions.TriggerResult.FIRE_AND_PURGE
    >>> result.fires, result.purges
    (True, True)
    """

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


class AnyWindow(Protocol):
    """A window, as triggers see it."""

    @property
    def max_timestamp(self) -> int:
        """The last tick that belongs to the window."""


class TriggerContext(Protocol):
    """The context of a trigger, for the current key and window. Times in ticks.

    Examples
    --------
    A trigger that fires once, at the second row:

    >>> class OnSecond(gw.functions.Trigger):
    ...     state = {"rows": pa.int64()}
    ...
    ...     def on_element(self, row, timestamp, window, context):
    ...         context.put("rows", context.get("rows", 0) + 1)
    ...         result = gw.functions.TriggerResult
    ...         return result.FIRE if context.get("rows") == 2 else result.CONTINUE
    ...
    ...     def clear(self, window, context):
    ...         context.remove("rows")
    >>> users = gw.stream(pa.table({"user": ["ann"] * 4})).key_by("user")
    >>> whole = users.window(gw.GlobalWindows.create()).trigger(OnSecond())
    >>> whole.aggregate(n=gw.count())["n"].to_pylist()
    [2]
    """

    @property
    def current_watermark(self) -> int:
        """The watermark; -2**63 before the first one."""

    @property
    def current_processing_time(self) -> int:
        """Processing time, in ticks."""

    def register_event_time_timer(self, time: int) -> None:
        """Set a timer: `Trigger.on_event_time` is called once the watermark reaches ``time``.

        A time that the watermark has passed already fires when it next advances.
        """

    def delete_event_time_timer(self, time: int) -> None:
        """Delete a timer, if it is set."""

    def register_processing_time_timer(self, time: int) -> None:
        """Set a timer: `Trigger.on_processing_time` is called once that time reaches ``time``.

        Raises
        ------
        InvalidTriggerError
            If neither the trigger (`uses_processing_time`) nor the assigner uses processing time.
        """

    def delete_processing_time_timer(self, time: int) -> None:
        """Delete a timer, if it is set."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return the state ``name`` (of `Trigger.state`) of this key and window."""

    def put(self, name: str, value: Any) -> None:
        """Set the state ``name`` of this key and window, to a value of the declared Arrow type."""

    def remove(self, name: str) -> None:
        """Remove the state ``name`` of this key and window."""

    def merge(self, name: str, combine: Callable[[Any, Any], Any]) -> None:
        """In `Trigger.on_merge`: set the state ``name`` to that of the merged windows, combined."""

    def count(self, counter: str, by: int = 1) -> None:
        """Add to a counter of your own, which `Outputs.metrics` shows."""


class Trigger(Openable, ABC):
    """When a window fires (Flink: Trigger).

    Examples
    --------
    >>> class OnCheckout(gw.functions.Trigger):
    ...     columns = ("page",)
    ...
    ...     def on_element(self, row, timestamp, window, context):
    ...         result = gw.functions.TriggerResult
    ...         return result.FIRE if row["page"] == "checkout" else result.CONTINUE
    ...
    ...     def clear(self, window, context):
    ...         pass
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "page": ["home", "checkout", "help"]}))
    >>> whole = clicks.key_by("user").window(gw.GlobalWindows.create())
    >>> whole.trigger(OnCheckout()).aggregate(n=gw.count())["n"].to_pylist()
    [2]
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_factories(cls)

    @property
    def state(self) -> Mapping[str, pa.DataType]:
        """Names to Arrow types of the trigger's state for each key and window."""
        return {}

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the row that `on_element` reads."""
        return ()

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """The triggers that it is made of."""
        return ()

    @property
    def uses_processing_time(self) -> bool:
        """Whether it sets processing-time timers, which a bounded input refuses."""
        return any(part.uses_processing_time for part in self.parts)

    @property
    def waits_for_end(self) -> bool:
        """Whether it waits for the window's end, which a global window does not have."""
        return any(part.waits_for_end for part in self.parts)

    @property
    def fires_by_intervals(self) -> bool:
        """Whether it fires at intervals, from the time of a window's first row on."""
        return any(part.fires_by_intervals for part in self.parts)

    @property
    def needs_watermarks(self) -> bool:
        """Whether it never fires without watermarks."""
        return False

    @property
    def ends_with_input(self) -> bool:
        """Whether nothing is left to fire in any window once the input has ended."""
        return False

    def walk(self) -> Iterator[Trigger]:
        """Yield the trigger and all triggers that it is made of."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @abstractmethod
    def on_element(
        self, row: Row, timestamp: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Called for each row that was put into a window, after it was added."""

    def on_event_time(self, time: int, window: AnyWindow, context: TriggerContext) -> TriggerResult:
        """Called when the watermark passes an event-time timer of the window.

        The operator's cleanup timer comes here, too, so compare ``time`` with the timers you set.
        """
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: AnyWindow, context: TriggerContext
    ) -> TriggerResult:
        """Called when processing time passes a timer of the window; see `on_event_time`."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Whether windows with this trigger can be merged, as sessions are."""
        return False

    def on_merge(self, window: AnyWindow, context: TriggerContext) -> None:
        """Called with the window that others are merged into; `clear` is called for those."""
        raise NotImplementedError(f"{type(self).__name__} says that it can merge, but does not")

    @abstractmethod
    def clear(self, window: AnyWindow, context: TriggerContext) -> None:
        """Called when the window is dropped: remove its state and timers."""

    def describe(self) -> str:
        """Return one line for ``explain()``."""
        return type(self).__name__


@dataclass(frozen=True)
class WrappingTrigger(Trigger):
    """A trigger around another one, whose state and columns are its own."""

    inner: Trigger

    def __post_init__(self) -> None:
        check_part(self.inner, self)

    @property
    def state(self) -> Mapping[str, pa.DataType]:
        """The state of the inner trigger."""
        return self.inner.state

    @property
    def parts(self) -> tuple[Trigger, ...]:
        """The inner trigger."""
        return (self.inner,)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the inner trigger reads."""
        return self.inner.columns


def check_part(part: object, whole: Trigger) -> None:
    """Raise an error unless a part is a trigger."""
    if not isinstance(part, Trigger):
        name = type(whole).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise InvalidTriggerError(f"{article} {name} is made of triggers", value=repr(part))
