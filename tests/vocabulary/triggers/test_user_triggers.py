"""What triggers, assigners and functions of users may do.

As Flink's own tests have it: WindowOperatorContractTest of flink-streaming-java.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.functions.process import Process
from gpu_windows.vocabulary.windows import TimeWindow
from tests.operators.driven import Driven, Fixed

CONTINUE, FIRE = gw.functions.TriggerResult.CONTINUE, gw.functions.TriggerResult.FIRE
PURGE, FIRE_AND_PURGE = gw.functions.TriggerResult.PURGE, gw.functions.TriggerResult.FIRE_AND_PURGE

#: What a trigger that was asked did: sets timers, returns what is to become of the window.
Act = Callable[[Any, Any], gw.functions.TriggerResult]
ROW = ("a", 0, 0)


def nothing(*_: Any) -> gw.functions.TriggerResult:
    return CONTINUE


class Scripted(gw.functions.Trigger):
    """Does what a test says, and notes what it was asked."""

    state: ClassVar = {"mark": pa.int64()}

    def __init__(
        self,
        on_row: Act = nothing,
        at: Mapping[int, gw.functions.TriggerResult] | None = None,
        **more: Act,
    ) -> None:
        self._on_row, self._at = on_row, at or {}
        self._merging, self._clearing = more.get("merging"), more.get("clearing", nothing)
        self.asked: list[Any] = []

    def on_element(
        self, row: Any, timestamp: int, window: Any, context: Any
    ) -> gw.functions.TriggerResult:
        return self._on_row(window, context)

    def on_event_time(self, time: int, window: Any, context: Any) -> gw.functions.TriggerResult:
        self.asked.append(("event", time))
        return self._at.get(time, CONTINUE)

    def on_processing_time(
        self, time: int, window: Any, context: Any
    ) -> gw.functions.TriggerResult:
        self.asked.append(("processing", time))
        return self._at.get(time, CONTINUE)

    def can_merge(self) -> bool:
        return self._merging is not None

    def on_merge(self, window: Any, context: Any) -> None:
        assert self._merging is not None
        self.asked.append(("merge", *window))
        self._merging(window, context)

    def clear(self, window: Any, context: Any) -> None:
        self.asked.append(("clear", *window))
        self._clearing(window, context)


def sets(
    time: int, result: gw.functions.TriggerResult = CONTINUE, *, in_processing_time: bool = False
) -> Callable[[Any, Any], gw.functions.TriggerResult]:
    """Set a timer, and return a result."""

    def act(_: Any, context: Any) -> gw.functions.TriggerResult:
        if in_processing_time:
            context.register_processing_time_timer(time)
        else:
            context.register_event_time_timer(time)
        return result

    return act


class InProcessingTime(Fixed):
    """The same window, which ends in processing time."""

    is_event_time = False


class Touching(gw.functions.MergingWindowAssigner):
    """A window of two ticks for a row, of the length of its gap if it has one."""

    columns = ("gap",)

    def __init__(self, *, in_processing_time: bool = False) -> None:
        self._in_processing_time = in_processing_time

    @property
    def is_event_time(self) -> bool:
        return not self._in_processing_time

    def assign_windows(self, row: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        return [TimeWindow(timestamp, timestamp + (row["gap"] or 2))]


put_away = pytest.mark.parametrize("put_away", [False, True])


@put_away
def test_a_purge_leaves_the_window_to_its_cleanup(put_away: bool) -> None:
    trigger = Scripted(sets(0, PURGE))
    told = Driven(Fixed(2, 4), trigger=trigger, put_away=put_away)
    assert told.rows(ROW) == told.watermark(0) == []
    assert trigger.asked == [("event", 0)]
    assert told.left == {"event_timers": 1}
    assert told.watermark(3) == []
    assert trigger.asked == [("event", 0), ("event", 3), ("clear", 2, 4)]
    assert told.left == {}


@put_away
@pytest.mark.parametrize("purging", [False, True])
@pytest.mark.parametrize("in_processing_time", [False, True])
def test_a_purge_by_a_timer(put_away: bool, purging: bool, in_processing_time: bool) -> None:
    def once(window: Any, context: Any) -> gw.functions.TriggerResult:
        now = context.current_processing_time if in_processing_time else context.current_watermark
        return (
            sets(1, in_processing_time=in_processing_time)(window, context) if now < 1 else CONTINUE
        )

    trigger: gw.functions.Trigger = Scripted(once, at={1: PURGE, 3: FIRE})
    if purging:
        trigger = gw.PurgingTrigger.of(trigger)
    assigner = (InProcessingTime if in_processing_time else Fixed)(2, 4)
    told = Driven(assigner, trigger=trigger, put_away=put_away)
    advance = told.processing_time if in_processing_time else told.watermark
    assert told.rows(ROW) == advance(1) == told.rows(("a", 0, 7)) == []
    assert advance(3) == [("a", 2, 4, [7])]
    assert told.left == {}


@put_away
@pytest.mark.parametrize(
    ("result", "kept"), [(PURGE, []), (FIRE_AND_PURGE, []), (FIRE, []), (CONTINUE, [7])]
)
def test_a_purging_trigger_passes_what_its_own_says(
    put_away: bool, result: gw.functions.TriggerResult, kept: list[int]
) -> None:
    inner = Scripted(sets(1), at={1: result, 3: FIRE})
    told = Driven(Fixed(2, 4), trigger=gw.PurgingTrigger.of(inner), put_away=put_away)
    told.rows(("a", 0, 7))
    assert told.watermark(1) == ([("a", 2, 4, [7])] if result.fires else [])
    assert told.watermark(3) == ([("a", 2, 4, kept)] if kept else [])


@put_away
@pytest.mark.parametrize(("in_processing_time", "end"), [(False, 39), (True, 19)])
def test_a_firing_at_cleanup(put_away: bool, in_processing_time: bool, end: int) -> None:
    trigger = Scripted(at={end: FIRE})
    assigner = (InProcessingTime if in_processing_time else Fixed)(0, 20)
    told = Driven(assigner, trigger=trigger, allowed_lateness=20, put_away=put_away)
    assert told.rows(ROW) == []
    advance = told.processing_time if in_processing_time else told.watermark
    assert advance(end - 1) == []
    assert advance(end) == [("a", 0, 20, [0])]
    assert trigger.asked == [
        ("processing" if in_processing_time else "event", end),
        ("clear", 0, 20),
    ]
    assert told.left == {}


@put_away
@pytest.mark.parametrize("merges", [False, True])
def test_a_timer_that_outlives_its_window(put_away: bool, merges: bool) -> None:
    """Its trigger is asked, but never for a window that merges; and nothing is emitted."""
    trigger = Scripted(sets(20), at={20: FIRE}, **({"merging": nothing} if merges else {}))
    told = Driven(Touching() if merges else Fixed(2, 4), trigger=trigger, put_away=put_away)
    assert told.rows(("a", 2, 0)) == told.watermark(3) == []
    assert trigger.asked == [("event", 3), ("clear", 2, 4)]
    assert told.watermark(20) == []
    assert trigger.asked[2:] == ([] if merges else [("event", 20)])
    assert told.left == {}


@put_away
def test_a_firing_of_a_window_that_was_purged(put_away: bool) -> None:
    def both(window: Any, context: Any) -> gw.functions.TriggerResult:
        sets(1999)(window, context)
        return sets(2099)(window, context)

    trigger = Scripted(both, at={1999: FIRE_AND_PURGE, 2099: FIRE_AND_PURGE})
    assigner = gw.TumblingEventTimeWindows(2000)
    told = Driven(assigner, trigger=trigger, allowed_lateness=100, put_away=put_away)
    said = [told.rows(("a", 1000, 0)), *map(told.watermark, (1599, 1999, 2100, 5000))]
    assert said == [[], [], [("a", 0, 2000, [0])], [], []]
    assert told.left == {}


@put_away
def test_what_a_trigger_does_where_windows_merge(put_away: bool) -> None:
    """Of the parts nothing is left; of the whole, what its trigger set, and its cleanup."""

    def of_first(window: Any, context: Any) -> gw.functions.TriggerResult:
        if window == (0, 2):
            context.put("mark", 1)
            return sets(1)(window, context)
        return CONTINUE

    def merging(window: Any, context: Any) -> gw.functions.TriggerResult:
        context.merge("mark", int.__add__)
        return sets(2)(window, context)

    def clearing(_: Any, context: Any) -> gw.functions.TriggerResult:
        context.remove("mark")
        context.delete_event_time_timer(1)
        return CONTINUE

    trigger = Scripted(of_first, {2: FIRE}, merging=merging, clearing=clearing)
    told = Driven(Touching(), trigger=trigger, put_away=put_away)
    told.rows(("a", 0, 1), ("a", 2, 2))
    assert trigger.asked == [("merge", 0, 4), ("clear", 0, 2)]
    assert told.left["event_timers"] == 2
    assert told.left["trigger_state"] == 1
    assert told.watermark(2) == [("a", 0, 4, [1, 2])]
    assert told.watermark(3) == []
    assert trigger.asked[2:] == [("event", 2), ("event", 3), ("clear", 0, 4)]
    assert told.left == {}


@put_away
@pytest.mark.parametrize("purges", [False, True])
def test_a_function_is_told_that_its_window_is_dropped(put_away: bool, purges: bool) -> None:
    told_of = []

    class Watching(gw.functions.ProcessWindowFunction):
        window_state: ClassVar = {"calls": pa.int64()}

        def process(self, key: Any, context: Any, rows: Any) -> list[dict[str, object]]:
            context.window_state.put("calls", context.window_state.get("calls", 0) + 1)
            return [{"rows": rows.num_rows}]

        def clear(self, context: Any) -> None:
            super().clear(context)
            told_of.append(
                (*context.window, context.current_watermark, context.current_processing_time)
            )

    function = Process(Watching(), ("value",), pa.schema([("rows", pa.int64())]))
    trigger = Scripted(sets(1), at={1: FIRE_AND_PURGE if purges else FIRE})
    told = Driven(Fixed(2, 4), trigger=trigger, function=function, put_away=put_away)
    told.processing_time(77)
    told.rows(ROW)
    assert told.watermark(2) == [("a", 2, 4, 1)]
    assert told_of == []
    told.watermark(8)
    assert told_of == [(2, 4, 8, 77)]
    assert told.left == {}


class Shrinking(Touching):
    """Makes one window of what overlaps, which ends where a test says."""

    def __init__(self, *, in_processing_time: bool = False) -> None:
        super().__init__(in_processing_time=in_processing_time)
        self.end = 0

    def merge_windows(
        self, windows: Sequence[TimeWindow]
    ) -> list[tuple[TimeWindow, list[TimeWindow]]]:
        return [
            (TimeWindow(whole.start, self.end), parts)
            for whole, parts in super().merge_windows(windows)
        ]


@pytest.mark.parametrize(("in_processing_time", "taken"), [(False, 12), (True, 22)])
def test_a_merge_must_not_give_a_window_that_is_over(in_processing_time: bool, taken: int) -> None:
    """Watermark 20 with lateness 10, or processing time 20: [0, taken) is not over, one less is."""
    assigner = Shrinking(in_processing_time=in_processing_time)
    trigger = Scripted(merging=nothing)
    told = Driven(assigner, trigger=trigger, allowed_lateness=0 if in_processing_time else 10)
    advance = told.processing_time if in_processing_time else told.watermark
    advance(20)
    assert told.rows(("a", 0, 1, 22)) == []
    assigner.end = taken
    assert told.rows(("a", 0, 2, 25)) == []
    assigner.end = taken - 1
    with pytest.raises(errors.QueryError, match=f"must not be closed, got .*end={taken - 1}"):
        told.rows(("a", 0, 3, 25))


@put_away
@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("in_processing_time", [False, True])
def test_a_window_is_dropped_although_its_trigger_takes_the_timer_back(
    put_away: bool, engine: Any, in_processing_time: bool
) -> None:
    """In Flink it stays for ever: its cleanup has the same timer. What fires is the same."""
    inner = gw.ProcessingTimeTrigger if in_processing_time else gw.EventTimeTrigger
    assigner = (
        gw.TumblingProcessingTimeWindows if in_processing_time else gw.TumblingEventTimeWindows
    )(100)
    trigger = gw.ProcessingTimeoutTrigger(inner(), 50, clear_on_timeout=True)
    told = Driven(assigner, trigger=trigger, engine=engine, put_away=put_away)
    advance = told.processing_time if in_processing_time else told.watermark
    told.rows(("a", 1, 1))
    assert told.processing_time(50) == [("a", 0, 100, [1])]
    assert told.left
    assert advance(98) == []
    assert told.left
    assert advance(99) == []
    assert told.left == {}


@put_away
@pytest.mark.parametrize("purging", [False, True])
def test_a_timer_of_processing_time_without_a_word_of_it_is_refused(
    put_away: bool, purging: bool
) -> None:
    """Nobody would tell the operator what time it is: the timer would never fire."""
    trigger: gw.functions.Trigger = Scripted(sets(1, in_processing_time=True))
    if purging:
        trigger = gw.PurgingTrigger.of(trigger)
    told = Driven(Fixed(2, 4), trigger=trigger, put_away=put_away)
    rule = r"must say so \(uses_processing_time = True\): else they never fire, got Scripted$"
    with pytest.raises(errors.InvalidTriggerError, match=rule):
        told.rows(ROW)


class Silent(Scripted):
    """Sets a timer of processing time."""

    def __init__(self) -> None:
        super().__init__(sets(1, in_processing_time=True))


def silent(frame: Any) -> Any:
    """Count the rows of windows whose trigger is `Silent`."""
    rows = gw.stream(frame).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    made = rows.key_by("key").window(gw.TumblingEventTimeWindows(10)).trigger(Silent())
    return made.aggregate(n=gw.count())


INPUT = pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC")), "key": ["a"]})


def test_it_is_refused_on_a_bounded_input_too() -> None:
    with pytest.raises(errors.InvalidTriggerError, match=r"uses_processing_time.*, got Silent$"):
        silent(INPUT)


def test_spark_tells_it(spark: Any) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=r"uses_processing_time = True.*, got Silent"):
        silent(spark.createDataFrame(INPUT)).collect()
