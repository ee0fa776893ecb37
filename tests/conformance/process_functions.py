"""The named process functions of scenarios that set timers, as functions of ours.

See `tests.conformance.process_base`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gpu_windows.functions.keyed_process import KeyedContext, KeyedProcessFunction, TimerContext
from gpu_windows.functions.state_descriptors import ListStateDescriptor, ValueStateDescriptor
from gpu_windows.rules import LONG_MIN
from gpu_windows.vocabulary.triggers import Row
from tests.conformance.process_base import LONG, LONGS, TEXT, Found, OfScenario


class CountWithTimeout(OfScenario, KeyedProcessFunction):
    """Counts; tells the count where a key was silent."""

    output: ClassVar = {"timer": LONG, "count": LONG, "timestamp": LONG}
    state: ClassVar = {"count": ValueStateDescriptor(LONG), "last": ValueStateDescriptor(LONG)}

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Count a row; a timer for each."""
        del row
        count, at = context.state("count"), self.at(context)
        count.update(count.value(0) + 1)
        context.state("last").update(at)
        self.set_timer(context, at + self.param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell, if no row came after that of the timer."""
        if time == context.state("last").value() + self.param:
            count, stamp = context.state("count").value(), self.timer_stamp(context)
            yield self.row(timer=self.ms(time), count=count, timestamp=stamp)


class Inactivity(OfScenario, KeyedProcessFunction):
    """Counts until a key is silent; one timer, which is moved."""

    output: ClassVar = dict.fromkeys(("timer", "count", "last_ts", "watermark", "timestamp"), LONG)
    state: ClassVar = {name: ValueStateDescriptor(LONG) for name in ("count", "last_ts", "timer")}

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Count a row; a later one moves the timer."""
        del row
        count, last, timer = map(context.state, ("count", "last_ts", "timer"))
        at = self.at(context)
        count.update(count.value(0) + 1)
        if at > last.value(LONG_MIN):
            if timer.value() is not None:
                self.delete_timer(context, timer.value())
            last.update(at)
            timer.update(at + self.param)
            self.set_timer(context, at + self.param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell, and forget all."""
        yield self.row(
            timer=self.ms(time),
            count=context.state("count").value(),
            last_ts=self.ms(context.state("last_ts").value()),
            watermark=self.ms(context.current_watermark),
            timestamp=self.timer_stamp(context),
        )
        for name in self.state:
            context.state(name).clear()


class AlignAndChain(OfScenario, KeyedProcessFunction):
    """Collects until the next multiple of a time, and some times more."""

    output: ClassVar = {"timer": LONG, "seq": LONGS, "remaining": LONG, "timestamp": LONG}
    state: ClassVar = {"seq": ListStateDescriptor(LONG), "remaining": ValueStateDescriptor(LONG)}

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Collect a row."""
        context.state("seq").add(row["seq"])
        self.set_timer(context, self.at(context) // self.param * self.param + self.param)
        if context.state("remaining").value() is None:
            context.state("remaining").update(3)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell, and set the next timer."""
        seq, remaining = context.state("seq"), context.state("remaining")
        left, stamp = remaining.value(0), self.timer_stamp(context)
        yield self.row(timer=self.ms(time), seq=seq.get(), remaining=left, timestamp=stamp)
        seq.clear()
        if left > 1:
            remaining.update(left - 1)
            self.set_timer(context, time + self.param)
        else:
            remaining.clear()


class TimerPerElement(OfScenario, KeyedProcessFunction):
    """A timer for each row."""

    output: ClassVar = dict.fromkeys(("timer", "count", "watermark", "timestamp"), LONG)
    state: ClassVar = {"count": ValueStateDescriptor(LONG)}

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Set a timer, and count."""
        del row
        count = context.state("count")
        self.set_timer(context, self.at(context) + self.param)
        count.update(count.value(0) + 1)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell the count."""
        yield self.row(
            timer=self.ms(time),
            count=context.state("count").value(0),
            watermark=self.ms(context.current_watermark),
            timestamp=self.timer_stamp(context),
        )


class DeleteOnNegative(OfScenario, KeyedProcessFunction):
    """Values set timers, negative ones take them back."""

    output: ClassVar = {"timer": LONG, "timestamp": LONG}

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Set or delete."""
        value: Any = row["value"]
        change = self.delete_timer if value < 0 else self.set_timer
        change(context, self.at(context) + self.param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell the time."""
        yield self.row(timer=self.ms(time), timestamp=self.timer_stamp(context))


class WatermarkProbe(OfScenario, KeyedProcessFunction):
    """Tells the watermark at each row."""

    output: ClassVar = dict.fromkeys(("watermark", "element_ts", "timestamp"), LONG)

    def process_element(self, row: Row, context: KeyedContext) -> Found:
        """Tell it."""
        del row
        at = self.stamp(context)
        watermark = self.ms(context.current_watermark)
        yield self.row(watermark=watermark, element_ts=at, timestamp=at)


class BothTimers(OfScenario, KeyedProcessFunction):
    """Timers of both times, set and taken back."""

    uses_processing_time = True
    output: ClassVar = {
        "timer": LONG, "time_domain": TEXT, "watermark": LONG, "clock": LONG, "timestamp": LONG,
    }  # fmt: skip

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Set six and delete two, or delete the two that are left."""
        value: Any = row["value"]
        at, param = context.timestamp, self.param
        assert at is not None
        if value < 0:
            context.delete_processing_time_timer(at + 5 * param)
            context.delete_event_time_timer(at + 6 * param)
            return
        context.register_processing_time_timer(at + 3 * param)
        context.register_event_time_timer(at + 4 * param)
        context.register_processing_time_timer(at + 5 * param)
        context.register_event_time_timer(at + 6 * param)
        context.delete_processing_time_timer(at + 3 * param)
        context.delete_event_time_timer(at + 4 * param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell all times."""
        yield self.row(
            timer=self.ms(time),
            time_domain=context.time_domain,
            watermark=self.ms(context.current_watermark),
            clock=self.ms(context.current_processing_time),
            timestamp=self.timer_stamp(context),
        )


class TimersInTimers(OfScenario, KeyedProcessFunction):
    """Timers that set timers, also at times that have passed."""

    output: ClassVar = dict.fromkeys(("timer", "remaining", "now", "timestamp"), LONG)
    state: ClassVar = {"remaining": ValueStateDescriptor(LONG)}

    def process_element(self, row: Row, context: KeyedContext) -> None:
        """Set the first timer."""
        value: Any = row["value"]
        if value < 0:
            self.set_timer(context, self.at(context) - self.unit)
        else:
            context.state("remaining").update(int(value // 1) % 5)
            self.set_timer(context, self.at(context) + self.param)

    def on_timer(self, time: int, context: TimerContext) -> Found:
        """Tell, and set the next ones."""
        remaining = context.state("remaining")
        left, now, stamp = remaining.value(0), self.ms(self.now(context)), self.timer_stamp(context)
        yield self.row(timer=self.ms(time), remaining=left, now=now, timestamp=stamp)
        if left > 0:
            remaining.update(left - 1)
            if left % 2:
                self.set_timer(context, time + self.param)
            else:
                self.set_timer(context, time - self.param)
                self.set_timer(context, time + 2 * self.param)
