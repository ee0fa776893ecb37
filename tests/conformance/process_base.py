"""What the named process functions of scenarios share: a parameter, and of which time they are.

Each function does step by step what ``function.words`` of the scenario files say. Times in
scenarios are milliseconds; functions see ticks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa

from gpu_windows.functions.broadcast import BroadcastContext
from gpu_windows.functions.keyed_process import KeyedContext, TimerContext
from gpu_windows.rules import LONG_MAX, LONG_MIN

LONG, LONGS, DOUBLE, TEXT = pa.int64(), pa.list_(pa.int64()), pa.float64(), pa.string()
Found = Iterator[dict[str, Any]]


class OfScenario:
    """A function with the parameters of its scenario.

    Parameters
    ----------
    param_ms : int
    unit : int
        Ticks in a millisecond.
    by_clock : bool
        Whether its timers are of processing time; then the time of a row is the clock's.
    """

    #: Arrow types of its results, by name; those of a kind of row that lacks one are null.
    output: ClassVar[Mapping[str, pa.DataType]] = {}
    #: What rows of each kind tell, by ``how``, where there are several.
    shapes: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init__(self, param_ms: int, unit: int, *, by_clock: bool) -> None:
        self.param, self.unit, self.by_clock = param_ms * unit, unit, by_clock

    @property
    def uses_processing_time(self) -> bool:
        """Whether it sets timers of processing time."""
        return self.by_clock

    def ms(self, tick: int) -> int:
        """Return ticks in milliseconds; the ends of time stay."""
        return tick if tick in (LONG_MIN, LONG_MAX) else tick // self.unit

    def at(self, context: KeyedContext) -> int:
        """Return the time of the row at hand, in ticks."""
        if self.by_clock:
            return context.current_processing_time
        assert context.timestamp is not None
        return context.timestamp

    def now(self, context: KeyedContext | BroadcastContext) -> int:
        """Return the clock, or the watermark."""
        return context.current_processing_time if self.by_clock else context.current_watermark

    def set_timer(self, context: KeyedContext, tick: int) -> None:
        """Register a timer."""
        if self.by_clock:
            context.register_processing_time_timer(tick)
        else:
            context.register_event_time_timer(tick)

    def delete_timer(self, context: KeyedContext, tick: int) -> None:
        """Delete a timer."""
        if self.by_clock:
            context.delete_processing_time_timer(tick)
        else:
            context.delete_event_time_timer(tick)

    def stamp(self, context: KeyedContext | BroadcastContext) -> int | None:
        """Return the timestamp of what is emitted for a row: the row's."""
        assert context.timestamp is not None
        return self.ms(context.timestamp)

    def timer_stamp(self, context: TimerContext) -> int | None:
        """Return the timestamp of what a timer emits: its time, or none if it is of the clock."""
        return None if context.time_domain == "processing_time" else self.stamp(context)

    def told(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload of a result row, as scenario files write it."""
        every = [name for name in self.output if name != "timestamp"]
        names = ("how", *self.shapes[row["how"]]) if "how" in row else every
        return {name: row[name] for name in names}

    def row(self, **named: Any) -> dict[str, Any]:
        """Return a result: what is not named is null."""
        return {**dict.fromkeys(self.output), **named}
