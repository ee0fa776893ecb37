"""The named process functions of scenarios that keep state of all kinds, as functions of ours.

See `tests.conformance.process_base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from typing import Any, ClassVar

import pyarrow as pa

from gpu_windows.aggregates.user import AggregateFunction
from gpu_windows.functions.keyed_process import KeyedContext, KeyedProcessFunction, TimerContext
from gpu_windows.functions.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from gpu_windows.vocabulary.triggers import Row
from tests.conformance.process_base import DOUBLE, LONG, LONGS, TEXT, Found, OfScenario


class StateAndTimer(OfScenario, KeyedProcessFunction):
    """Keeps every second value, and tells it when its timer fires."""

    output: ClassVar = {"how": TEXT, "timer": LONG, "value": DOUBLE, "timestamp": LONG}
    shapes: ClassVar = {"input": ("value",), "state": ("timer", "value")}
    state: ClassVar = {"value": ValueStateDescriptor(DOUBLE)}

    def process_element(self, row: Row, context: KeyedContext) -> Found:
        """Keep the value, or clear the one that is kept."""
        kept, now = context.state("value"), self.now(context)
        if kept.value() is None:
            yield self.row(how="input", value=row["value"], timestamp=self.stamp(context))
            kept.update(row["value"])
            self.set_timer(context, now + self.param)
        else:
            kept.clear()
            self.delete_timer(context, now + self.param - self.unit)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell what is kept."""
        value, stamp = context.state("value").value(), self.timer_stamp(context)
        yield self.row(how="state", timer=self.ms(time), value=value, timestamp=stamp)


class _Mean(AggregateFunction):
    """The mean of values."""

    accumulator = pa.struct({"sum": DOUBLE, "count": LONG})
    result = DOUBLE

    def create_accumulator(self) -> Any:
        return {"sum": 0.0, "count": 0}

    def add(self, row: Any, accumulator: Any) -> Any:
        return {"sum": accumulator["sum"] + row, "count": accumulator["count"] + 1}

    def get_result(self, accumulator: Any) -> Any:
        return accumulator["sum"] / accumulator["count"]


class ReducingAndMap(OfScenario, KeyedProcessFunction):
    """Keeps a list, a map, a sum and a mean."""

    output: ClassVar = {
        "how": TEXT, "timer": LONG, "seq": LONGS, "counts": pa.list_(LONGS), "empty": pa.bool_(),
        "sum": DOUBLE, "mean": DOUBLE, "timestamp": LONG,
    }  # fmt: skip
    _kept: ClassVar = ("seq", "counts", "empty", "sum", "mean")
    shapes: ClassVar = {"record": _kept, "timer": ("timer", *_kept)}
    state: ClassVar = {
        "seqs": ListStateDescriptor(LONG),
        "counts": MapStateDescriptor(LONG, LONG),
        "sum": ReducingStateDescriptor(add, DOUBLE),
        "mean": AggregatingStateDescriptor(_Mean()),
    }

    def process_element(self, row: Row, context: KeyedContext) -> Found:
        """Add a value to all, or take some back."""
        value: Any = row["value"]
        seqs, counts, total, mean = (context.state(name) for name in self.state)
        bucket = int(value // 1) % 3
        if value >= 0:
            seqs.add(row["seq"])
            counts.put(bucket, counts.get(bucket, 0) + 1)
            total.add(value)
            mean.add(value)
        else:
            seqs.update([row["seq"]])
            counts.remove(bucket)
            total.clear()
        yield self._told(context, how="record", timestamp=self.stamp(context))
        self.set_timer(context, self.at(context) + self.param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell all, and clear."""
        stamp = self.timer_stamp(context)
        yield self._told(context, how="timer", timer=self.ms(time), timestamp=stamp)
        for name in self.state:
            context.state(name).clear()

    def _told(self, context: KeyedContext, **named: Any) -> dict[str, Any]:
        seqs, counts, total, mean = (context.state(name) for name in self.state)
        pairs = [[bucket, count] for bucket, count in sorted(counts.items())]
        kept = {"counts": pairs, "empty": counts.is_empty(), "sum": total.get(), "mean": mean.get()}
        return self.row(seq=seqs.get(), **kept, **named)


class Ttl(OfScenario, KeyedProcessFunction):
    """Keeps state that expires."""

    uses_processing_time = True
    output: ClassVar = {
        "how": TEXT, "seq": LONG, "timer": LONG, "clock": LONG, "value": DOUBLE,
        "map": pa.list_(pa.list_(DOUBLE)), "list": pa.list_(DOUBLE), "read": DOUBLE,
        "timestamp": LONG,
    }  # fmt: skip

    _kept: ClassVar = ("clock", "value", "map", "list", "read")
    shapes: ClassVar = {"record": ("seq", *_kept), "timer": ("timer", *_kept)}

    @property
    def state(self) -> Mapping[str, StateDescriptor]:
        """Three that live from when they were written, and one from when it was read, too."""
        written = StateTtlConfig(self.param)
        return {
            "value": ValueStateDescriptor(DOUBLE, ttl=written),
            "map": MapStateDescriptor(LONG, DOUBLE, ttl=written),
            "list": ListStateDescriptor(DOUBLE, ttl=written),
            "read": ValueStateDescriptor(
                DOUBLE, ttl=StateTtlConfig(self.param, update_on_read=True)
            ),
        }

    def process_element(self, row: Row, context: KeyedContext) -> Found:
        """Tell all, then write some."""
        yield self._told(context, how="record", seq=row["seq"], timestamp=self.stamp(context))
        given: Any = row["value"]
        if given < 0:
            return
        n = int(given // 1)
        if n % 5 in (0, 4):
            context.state("value").update(given)
        if n % 5 in (1, 4):
            context.state("map").put(n // 5 % 3, given)
        if n % 5 in (2, 4):
            context.state("list").add(given)
        if n % 5 in (3, 4):
            context.state("read").update(given)
        due = context.current_processing_time + self.param - self.unit
        context.register_processing_time_timer(due)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell all."""
        yield self._told(context, how="timer", timer=self.ms(time), timestamp=None)

    def _told(self, context: KeyedContext, **named: Any) -> dict[str, Any]:
        return self.row(
            clock=self.ms(context.current_processing_time),
            value=context.state("value").value(),
            map=[[of, value] for of, value in sorted(context.state("map").items())],
            list=context.state("list").get(),
            read=context.state("read").value(),
            **named,
        )


class SideOutputs(OfScenario, KeyedProcessFunction):
    """Gives rows and timers to two side outputs."""

    output: ClassVar = {
        "how": TEXT, "value": DOUBLE, "seq": LONG, "timer": LONG, "count": LONG, "timestamp": LONG,
    }  # fmt: skip
    side_outputs: ClassVar = dict.fromkeys(("first", "second"), pa.schema(output.items()))
    shapes: ClassVar = {"record": ("value", "seq"), "timer": ("timer", "count")}
    state: ClassVar = {"count": ValueStateDescriptor(LONG)}

    def process_element(self, row: Row, context: KeyedContext) -> Found:
        """Give a row by its value."""
        value: Any = row["value"]
        stamp = self.stamp(context)
        told = self.row(how="record", value=value, seq=row["seq"], timestamp=stamp)
        if value < 0:
            context.output("first", told)
        else:
            yield told
        if value >= 20:
            context.output("second", told)
        count = context.state("count")
        count.update(count.value(0) + 1)
        self.set_timer(context, self.at(context) + self.param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell the count."""
        count, at = context.state("count").value(0), self.ms(time)
        told = self.row(how="timer", timer=at, count=count)
        yield {**told, "timestamp": self.timer_stamp(context)}
        context.output("second", {**told, "timestamp": at})
        if count >= 3:
            context.output("first", {**told, "timestamp": at})
        context.state("count").clear()
