"""The named process functions of scenarios with two inputs, as functions of ours.

See `tests.conformance.process_base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa

from gpu_windows.functions.keyed_process import KeyedContext, KeyedCoProcessFunction, TimerContext
from gpu_windows.functions.state_descriptors import ListStateDescriptor, ValueStateDescriptor
from gpu_windows.vocabulary.triggers import Row
from tests.conformance.process_base import DOUBLE, LONG, LONGS, TEXT, Found, OfScenario

#: A row that waits.
_ROW = pa.struct({"value": DOUBLE, "seq": LONG})


class _OfTwo(OfScenario, KeyedCoProcessFunction):
    """A function with a timer of each key, which is known by its time."""

    def move_timer(self, context: KeyedContext) -> None:
        """Set the key's timer anew, some time after the row at hand."""
        self.drop_timer(context)
        self.begin_timer(context)

    def begin_timer(self, context: KeyedContext) -> None:
        """Set the key's timer."""
        context.state("timer").update(self.at(context) + self.param)
        self.set_timer(context, self.at(context) + self.param)

    def drop_timer(self, context: KeyedContext) -> None:
        """Delete the key's timer, if it has one."""
        timer = context.state("timer")
        if timer.value() is not None:
            self.delete_timer(context, timer.value())
        timer.clear()

    def forget(self, context: KeyedContext) -> None:
        """Clear all state."""
        for name in self.state:
            context.state(name).clear()


class ThresholdRules(_OfTwo):
    """Left: events. Right: the threshold of a key, which expires."""

    output: ClassVar = {
        "how": TEXT, "value": DOUBLE, "threshold": DOUBLE, "seq": LONG, "timer": LONG,
        "timestamp": LONG,
    }  # fmt: skip
    _compared: ClassVar = ("value", "threshold", "seq")
    shapes: ClassVar = {
        "direct": _compared,
        "buffered": _compared,
        "rule_expired": ("timer", "threshold"),
    }
    state: ClassVar = {
        "threshold": ValueStateDescriptor(DOUBLE),
        "timer": ValueStateDescriptor(LONG),
        "lefts": ListStateDescriptor(_ROW),
    }

    def process_element1(self, row: Row, context: KeyedContext) -> Found:
        """Compare an event, or keep it until there is a threshold."""
        threshold = context.state("threshold").value()
        if threshold is None:
            context.state("lefts").add(dict(row))
        else:
            yield from self._told(row, threshold, "direct", context)

    def process_element2(self, row: Row, context: KeyedContext) -> Found:
        """Set the threshold, and compare what was kept."""
        lefts = context.state("lefts")
        context.state("threshold").update(row["value"])
        for left in lefts.get():
            yield from self._told(left, row["value"], "buffered", context)
        lefts.clear()
        self.move_timer(context)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Forget the threshold."""
        threshold, stamp = context.state("threshold").value(), self.timer_stamp(context)
        yield self.row(
            how="rule_expired", threshold=threshold, timer=self.ms(time), timestamp=stamp
        )
        context.state("threshold").clear()
        context.state("timer").clear()

    def _told(self, left: Row, threshold: Any, how: str, context: KeyedContext) -> Found:
        value: Any = left["value"]
        if value > threshold:
            named = {"how": how, "value": value, "threshold": threshold, "seq": left["seq"]}
            yield self.row(**named, timestamp=self.stamp(context))


class PairOrTimeout(_OfTwo):
    """Rows of both sides wait for each other for some time."""

    output: ClassVar = {
        "how": TEXT, "left": DOUBLE, "right": DOUBLE, "left_seq": LONGS, "timer": LONG,
        "watermark": LONG, "timestamp": LONG,
    }  # fmt: skip
    shapes: ClassVar = {
        "pair": ("left", "right"),
        "timeout": ("timer", "left_seq", "right", "watermark"),
    }
    state: ClassVar = {
        "lefts": ListStateDescriptor(_ROW),
        "right": ValueStateDescriptor(DOUBLE),
        "timer": ValueStateDescriptor(LONG),
    }

    def process_element1(self, row: Row, context: KeyedContext) -> Found:
        """Pair a left row with the right one that waits, or wait."""
        right = context.state("right")
        if right.value() is not None:
            yield self._pair(row["value"], right.value(), context)
            right.clear()
            self.drop_timer(context)
            return
        context.state("lefts").add(dict(row))
        if context.state("timer").value() is None:
            self.begin_timer(context)

    def process_element2(self, row: Row, context: KeyedContext) -> Found:
        """Pair a right row with those that wait, or wait."""
        waiting = context.state("lefts").get()
        for left in waiting:
            yield self._pair(left["value"], row["value"], context)
        context.state("lefts").clear()
        self.drop_timer(context)
        if not waiting:
            context.state("right").update(row["value"])
            self.begin_timer(context)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell who waited, and forget all."""
        yield self.row(
            how="timeout",
            left_seq=[left["seq"] for left in context.state("lefts").get()],
            right=context.state("right").value(),
            timer=self.ms(time),
            watermark=self.ms(context.current_watermark),
            timestamp=self.timer_stamp(context),
        )
        self.forget(context)

    def _pair(self, left: Any, right: Any, context: KeyedContext) -> dict[str, Any]:
        return self.row(how="pair", left=left, right=right, timestamp=self.stamp(context))


class CoSideOutputs(_OfTwo):
    """Pairs; what is refused, and what has no partner, goes aside."""

    output: ClassVar = {
        "how": TEXT, "left": DOUBLE, "right": DOUBLE, "left_seq": LONG, "right_seq": LONG,
        "timer": LONG, "waiting": LONG, "now": LONG, "timestamp": LONG,
    }  # fmt: skip
    _aside: ClassVar = {
        "how": TEXT, "value": DOUBLE, "seq": LONG, "timer": LONG, "timestamp": LONG,
    }  # fmt: skip
    side_outputs: ClassVar = dict.fromkeys(("rejected", "unmatched"), pa.schema(_aside.items()))
    shapes: ClassVar = {
        "left": ("value", "seq"),
        "pair": ("left", "right", "left_seq", "right_seq"),
        "right": ("value", "seq"),
        "timeout": ("timer", "waiting", "now"),
    }
    state: ClassVar = {
        "lefts": ListStateDescriptor(_ROW),
        "timer": ValueStateDescriptor(LONG),
    }

    def told(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload of a row; one that a timer gave aside tells its time."""
        timer = {"timer": row["timer"]} if row["how"] == "left" and row["timer"] is not None else {}
        return {**super().told(row), **timer}

    def process_element1(self, row: Row, context: KeyedContext) -> None:
        """Keep a left row, unless it is negative."""
        value: Any = row["value"]
        if value < 0:
            self._put(context, "rejected", "left", row, self.stamp(context))
            return
        context.state("lefts").add(dict(row))
        if context.state("timer").value() is None:
            self.begin_timer(context)

    def process_element2(self, row: Row, context: KeyedContext) -> Found:
        """Pair a right row with all left rows that wait."""
        lefts, stamp = context.state("lefts"), self.stamp(context)
        for left in lefts.get():
            named = {"left_seq": left["seq"], "right_seq": row["seq"], "timestamp": stamp}
            yield self.row(how="pair", left=left["value"], right=row["value"], **named)
        if not lefts.get():
            self._put(context, "unmatched", "right", row, stamp)
        lefts.clear()
        self.drop_timer(context)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell who waited."""
        lefts, at = context.state("lefts").get(), self.ms(time)
        for left in lefts:
            self._put(context, "unmatched", "left", left, at, timer=at)
        named = {"timer": at, "waiting": len(lefts), "now": self.ms(self.now(context))}
        yield self.row(how="timeout", **named, timestamp=self.timer_stamp(context))
        self.forget(context)

    def _put(
        self,
        context: KeyedContext,
        tag: str,
        how: str,
        row: Row,
        at: int | None,
        timer: int | None = None,
    ) -> None:
        told = {"how": how, "value": row["value"], "seq": row["seq"], "timer": timer}
        context.output(tag, {**told, "timestamp": at})
