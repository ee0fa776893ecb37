"""The named process functions of scenarios, as functions of ours.

Each does step by step what ``function.words`` of the scenario files say. Times in scenarios are
milliseconds; functions see ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa

from gpu_windows.functions.keyed_process import (
    KeyedContext,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    TimerContext,
)
from gpu_windows.functions.keyed_state import ListStateDescriptor, ValueStateDescriptor
from gpu_windows.rules import LONG_MIN
from gpu_windows.triggers import Row

_LONG, _LONGS, _DOUBLE = pa.int64(), pa.list_(pa.int64()), pa.float64()
Found = Iterator[dict[str, Any]]


class _OfScenario:
    """A function with the parameter of its scenario.

    Parameters
    ----------
    param_ms : int
    unit : int
        Ticks in a millisecond.
    """

    def __init__(self, param_ms: int, unit: int) -> None:
        self.param, self.unit = param_ms * unit, unit

    def _ms(self, tick: int) -> int:
        """Return ticks in milliseconds; the first of all watermarks stays."""
        return tick if tick == LONG_MIN else tick // self.unit


class CountWithTimeout(_OfScenario, KeyedProcessFunction):
    """Counts; tells the count where a key was silent."""

    output: ClassVar = {"timer": _LONG, "count": _LONG, "timestamp": _LONG}
    state: ClassVar = {"count": ValueStateDescriptor(_LONG), "last": ValueStateDescriptor(_LONG)}

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Count a row; a timer for each."""
        del row
        count, at = context.state("count"), context.timestamp
        assert at is not None
        count.update(count.value(0) + 1)
        context.state("last").update(at)
        context.register_event_time_timer(at + self.param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell, if no row came after that of the timer."""
        if time == context.state("last").value() + self.param:
            at = self._ms(time)
            yield {"timer": at, "count": context.state("count").value(), "timestamp": at}


class Inactivity(_OfScenario, KeyedProcessFunction):
    """Counts until a key is silent; one timer, which is moved."""

    output: ClassVar = dict.fromkeys(("timer", "count", "last_ts", "watermark", "timestamp"), _LONG)
    state: ClassVar = {name: ValueStateDescriptor(_LONG) for name in ("count", "last_ts", "timer")}

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Count a row; a later one moves the timer."""
        del row
        count, last, timer = map(context.state, ("count", "last_ts", "timer"))
        at = context.timestamp
        assert at is not None
        count.update(count.value(0) + 1)
        if at > last.value(LONG_MIN):
            if timer.value() is not None:
                context.delete_event_time_timer(timer.value())
            last.update(at)
            timer.update(at + self.param)
            context.register_event_time_timer(at + self.param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell, and forget all."""
        at = self._ms(time)
        yield {
            "timer": at,
            "count": context.state("count").value(),
            "last_ts": self._ms(context.state("last_ts").value()),
            "watermark": self._ms(context.current_watermark),
            "timestamp": at,
        }
        for name in self.state:
            context.state(name).clear()


class AlignAndChain(_OfScenario, KeyedProcessFunction):
    """Collects until the next multiple of a time, and some times more."""

    output: ClassVar = {"timer": _LONG, "seq": _LONGS, "remaining": _LONG, "timestamp": _LONG}
    state: ClassVar = {"seq": ListStateDescriptor(_LONG), "remaining": ValueStateDescriptor(_LONG)}

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Collect a row."""
        at = context.timestamp
        assert at is not None
        context.state("seq").add(row["seq"])
        context.register_event_time_timer(at // self.param * self.param + self.param)
        if context.state("remaining").value() is None:
            context.state("remaining").update(3)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell, and set the next timer."""
        seq, remaining, at = context.state("seq"), context.state("remaining"), self._ms(time)
        left = remaining.value(0)
        yield {"timer": at, "seq": seq.get(), "remaining": left, "timestamp": at}
        seq.clear()
        if left > 1:
            remaining.update(left - 1)
            context.register_event_time_timer(time + self.param)
        else:
            remaining.clear()


class TimerPerElement(_OfScenario, KeyedProcessFunction):
    """A timer for each row."""

    output: ClassVar = dict.fromkeys(("timer", "count", "watermark", "timestamp"), _LONG)
    state: ClassVar = {"count": ValueStateDescriptor(_LONG)}

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Set a timer, and count."""
        del row
        count, at = context.state("count"), context.timestamp
        assert at is not None
        context.register_event_time_timer(at + self.param)
        count.update(count.value(0) + 1)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell the count."""
        at, count = self._ms(time), context.state("count").value(0)
        watermark = self._ms(context.current_watermark)
        yield {"timer": at, "count": count, "watermark": watermark, "timestamp": at}


class ThresholdRules(_OfScenario, KeyedCoProcessFunction):
    """Left: events. Right: the threshold of a key, which expires."""

    output: ClassVar = {
        "how": pa.string(), "value": _DOUBLE, "threshold": _DOUBLE, "seq": _LONG, "timer": _LONG,
        "timestamp": _LONG,
    }  # fmt: skip
    state: ClassVar = {
        "threshold": ValueStateDescriptor(_DOUBLE),
        "timer": ValueStateDescriptor(_LONG),
        "values": ListStateDescriptor(_DOUBLE),
        "seqs": ListStateDescriptor(_LONG),
    }

    def process_element1(self, row: Row, context: KeyedContext) -> Found:
        """Compare an event, or keep it until there is a threshold."""
        threshold = context.state("threshold").value()
        if threshold is None:
            context.state("values").add(row["value"])
            context.state("seqs").add(row["seq"])
        else:
            yield from self._told(row["value"], row["seq"], threshold, "direct", context)

    def process_element2(self, row: Row, context: KeyedContext) -> Found:
        """Set the threshold, and compare what was kept."""
        threshold, timer, at = row["value"], context.state("timer"), context.timestamp
        assert at is not None
        values, seqs = context.state("values"), context.state("seqs")
        context.state("threshold").update(threshold)
        for value, seq in zip(values.get(), seqs.get(), strict=True):
            yield from self._told(value, seq, threshold, "buffered", context)
        values.clear()
        seqs.clear()
        if timer.value() is not None:
            context.delete_event_time_timer(timer.value())
        timer.update(at + self.param)
        context.register_event_time_timer(at + self.param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Forget the threshold."""
        at, threshold = self._ms(time), context.state("threshold").value()
        row = {"how": "rule_expired", "threshold": threshold, "timer": at, "timestamp": at}
        yield {**dict.fromkeys(self.output), **row}
        context.state("threshold").clear()
        context.state("timer").clear()

    def _told(
        self, value: Any, seq: object, threshold: Any, how: str, context: KeyedContext
    ) -> Found:
        assert context.timestamp is not None
        if value > threshold:
            row = {"how": how, "value": value, "threshold": threshold, "seq": seq}
            at = self._ms(context.timestamp)
            yield {**dict.fromkeys(self.output), **row, "timestamp": at}


class PairOrTimeout(_OfScenario, KeyedCoProcessFunction):
    """Rows of both sides wait for each other for some time."""

    output: ClassVar = {
        "how": pa.string(), "left": _DOUBLE, "right": _DOUBLE, "left_seq": _LONGS, "timer": _LONG,
        "watermark": _LONG, "timestamp": _LONG,
    }  # fmt: skip
    state: ClassVar = {
        "lefts": ListStateDescriptor(pa.struct({"value": _DOUBLE, "seq": _LONG})),
        "right": ValueStateDescriptor(_DOUBLE),
        "timer": ValueStateDescriptor(_LONG),
    }

    def process_element1(self, row: Row, context: KeyedContext) -> Found:
        """Pair a left row with the right one that waits, or wait."""
        right, timer, at = context.state("right"), context.state("timer"), context.timestamp
        assert at is not None
        if right.value() is not None:
            yield self._pair(row["value"], right.value(), at)
            right.clear()
            _drop_timer(timer, context)
            return
        context.state("lefts").add({"value": row["value"], "seq": row["seq"]})
        if timer.value() is None:
            timer.update(at + self.param)
            context.register_event_time_timer(at + self.param)

    def process_element2(self, row: Row, context: KeyedContext) -> Found:
        """Pair a right row with those that wait, or wait."""
        lefts, timer, at = context.state("lefts"), context.state("timer"), context.timestamp
        assert at is not None
        waiting = lefts.get()
        for left in waiting:
            yield self._pair(left["value"], row["value"], at)
        lefts.clear()
        _drop_timer(timer, context)
        if not waiting:
            context.state("right").update(row["value"])
            timer.update(at + self.param)
            context.register_event_time_timer(at + self.param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell who waited, and forget all."""
        at = self._ms(time)
        yield {
            **dict.fromkeys(self.output),
            "how": "timeout",
            "left_seq": [left["seq"] for left in context.state("lefts").get()],
            "right": context.state("right").value(),
            "timer": at,
            "watermark": self._ms(context.current_watermark),
            "timestamp": at,
        }
        for name in self.state:
            context.state(name).clear()

    def _pair(self, left: Any, right: Any, at: int) -> dict[str, Any]:
        row = {"how": "pair", "left": left, "right": right, "timestamp": self._ms(at)}
        return {**dict.fromkeys(self.output), **row}


def _drop_timer(timer: Any, context: KeyedContext) -> None:
    if timer.value() is not None:
        context.delete_event_time_timer(timer.value())
    timer.clear()


class DeleteOnNegative(_OfScenario, KeyedProcessFunction):
    """Values set timers, negative ones take them back."""

    output: ClassVar = {"timer": _LONG, "timestamp": _LONG}

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Set or delete."""
        value: Any = row["value"]
        assert context.timestamp is not None
        change = context.register_event_time_timer
        if value < 0:
            change = context.delete_event_time_timer
        change(context.timestamp + self.param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell the time."""
        del context
        yield {"timer": self._ms(time), "timestamp": self._ms(time)}


class WatermarkProbe(_OfScenario, KeyedProcessFunction):
    """Tells the watermark at each row."""

    output: ClassVar = dict.fromkeys(("watermark", "element_ts", "timestamp"), _LONG)

    def process_element(self, row: Row, context: KeyedContext) -> Found:
        """Tell it."""
        del row
        assert context.timestamp is not None
        at = self._ms(context.timestamp)
        watermark = self._ms(context.current_watermark)
        yield {"watermark": watermark, "element_ts": at, "timestamp": at}


#: Makes a function of its parameter and of how many ticks a millisecond has.
Make = Callable[[int, int], Any]
KEYED: Mapping[str, Make] = {
    "align_and_chain": AlignAndChain,
    "count_with_timeout": CountWithTimeout,
    "delete_on_negative": DeleteOnNegative,
    "inactivity": Inactivity,
    "timer_per_element": TimerPerElement,
    "watermark_probe": WatermarkProbe,
}
CO_KEYED: Mapping[str, Make] = {
    "pair_or_timeout": PairOrTimeout,
    "threshold_rules": ThresholdRules,
}
#: What rows of functions with several kinds of rows tell, by ``how``.
_TOLD = {
    "pair": ("how", "left", "right"),
    "timeout": ("how", "timer", "left_seq", "right", "watermark"),
    "direct": ("how", "value", "threshold", "seq"),
    "buffered": ("how", "value", "threshold", "seq"),
    "rule_expired": ("how", "timer", "threshold"),
}


def payload(row: Mapping[str, Any], output: pa.Schema) -> dict[str, Any]:
    """Return a result row's payload, as scenario files write it."""
    names = _TOLD[row["how"]] if "how" in row else [n for n in output.names if n != "timestamp"]
    return {name: row[name] for name in names}
