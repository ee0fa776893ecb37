"""Draws the parts of a query: assigners, triggers, evictors and functions; times in ticks."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.built_in import collect_list, count_distinct, median, quantile
from gpu_windows.aggregates.definitions import bind
from gpu_windows.aggregates.sketches import approx_count_distinct
from gpu_windows.aggregates.user import BoundUserAggregate
from gpu_windows.functions.process import Process
from gpu_windows.functions.top import Top
from gpu_windows.functions.vectorised import Vectorised
from gpu_windows.functions.window import Aggregates, Collect, Reduce, WindowFunction
from gpu_windows.vocabulary.deltas import Delta, DeltaKind
from gpu_windows.vocabulary.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from gpu_windows.vocabulary.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EarlyAndLateTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from gpu_windows.vocabulary.windows import (
    CumulativeEventTimeWindows,
    CumulativeProcessingTimeWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SlicedAssigner,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from tests.planning.queries import AGGREGATES, MORE
from tests.simulation import calendars
from tests.simulation import user_parts as users

pytest.importorskip("datasketches", reason="no wheels for Python 3.14; of the extra `sketches`")

LISTS = {
    "texts": collect_list("text"),
    "days": collect_list("day"),
    "different": count_distinct("f"),
    "names": count_distinct("text"),
    "median": median("f"),
    "low": quantile("small", 0.1),
    "texts_if": collect_list("text").filter("b"),
    "sum_once": Aggregate("sum", "small").distinct(),
    "mean_once": Aggregate("mean", "d").distinct().filter("b"),
    "least_once": Aggregate("min", "f").distinct(),
    "texts_once": collect_list("text").distinct(),
    "median_if": median("f").filter("b"),
}
SKETCHES = {
    "about": approx_count_distinct("i"),
    "kinds": approx_count_distinct("text", lg_k=7),
    "kinds_if": approx_count_distinct("text", lg_k=7).filter("b"),
}


def keys(rng: Random) -> tuple[str, ...]:
    """Draw the columns of the key, of several types: floats have a NaN and two zeros."""
    if rng.random() < 0.7:
        return ("key", "part")
    return (rng.choice(["f", "d", "b", "day", "text", "small"]),)


def sliced(rng: Random) -> SlicedAssigner:
    """Draw tumbling, sliding (dividing or not, with gaps or not) and cumulative windows."""
    size = rng.randint(1, 30)
    offset = rng.randint(1 - size, size - 1)
    match rng.randrange(6):
        case 5:
            return calendars.draw(rng)
        case 0 | 1:
            return TumblingEventTimeWindows(size, offset)
        case 2:
            return CumulativeEventTimeWindows(size * rng.randint(1, 5), size, offset)
        case _:
            slide = rng.randint(1, 30)
            return SlidingEventTimeWindows(size, slide, rng.randint(1 - slide, slide - 1))


def assigner(rng: Random) -> WindowAssigner:
    """Draw windows of either time, that merge or do not, and those of users."""
    size = rng.randint(1, 30)
    offset = rng.randint(1 - size, size - 1)
    match rng.randrange(16):
        case 0 | 1 | 2 | 3 | 4:
            return sliced(rng)
        case 5 | 6 | 7:
            return EventTimeSessionWindows(size)
        case 8:
            return EventTimeSessionWindows(0, "gap")
        case 9 | 10:
            return GlobalWindows(at_end=rng.random() < 0.4)
        case 11:
            return TumblingProcessingTimeWindows(size, offset)
        case 12:
            if rng.random() < 0.3:
                return CumulativeProcessingTimeWindows(size * rng.randint(1, 4), size, offset)
            return SlidingProcessingTimeWindows(size, rng.randint(1, 12))
        case 13:
            return ProcessingTimeSessionWindows(size)
        case 14:
            return users.Uneven()
        case _:
            return users.SessionsUpTo(size, 2 * size)


def delta(rng: Random) -> Delta:
    """Draw what a trigger or evictor compares."""
    measures: list[DeltaKind] = ["old_minus_new", "new_minus_old", "abs_diff"]
    measure = rng.choice(measures)
    return Delta(rng.choice(["f", "i"]), measure)


def trigger(rng: Random, depth: int = 0) -> Trigger:
    """Draw any built-in trigger, one made of others, or one of users."""
    interval = rng.randint(1, 15)
    match rng.randrange(16 if depth < 2 else 9):
        case 0:
            return EventTimeTrigger()
        case 1:
            return ProcessingTimeTrigger()
        case 2:
            return rng.choice([EndOfStreamTrigger(), NeverTrigger()])
        case 3 | 4:
            return ContinuousEventTimeTrigger(interval)
        case 5:
            return ContinuousProcessingTimeTrigger(interval)
        case 6 | 7:
            return CountTrigger(rng.randint(1, 4))
        case 8:
            return DeltaTrigger(float(rng.randint(-3, 10)), delta(rng))
        case 9 | 10:
            return PurgingTrigger(trigger(rng, depth + 1))
        case 11:
            inner = trigger(rng, depth + 1)
            return ProcessingTimeoutTrigger(inner, interval, rng.random() < 0.5, rng.random() < 0.5)
        case 12 | 13:
            early = trigger(rng, depth + 1) if rng.random() < 0.7 else None
            late = trigger(rng, depth + 1) if early is None or rng.random() < 0.5 else None
            return EarlyAndLateTrigger(early, late)
        case 14:
            return users.FirstAndEveryHundred(4.0)
        case _:
            return rng.choice([users.EveryOther(), users.SomeTimeAfter(interval)])


def evictor(rng: Random) -> Evictor:
    """Draw an evictor, before or after the function."""
    after = rng.random() < 0.5
    match rng.randrange(7):
        case 0 | 1:
            return CountEvictor(after, rng.randint(0, 4))
        case 2 | 3:
            return TimeEvictor(after, rng.randint(0, 20))
        case 4 | 5:
            return DeltaEvictor(after, float(rng.randint(-3, 10)), delta(rng))
        case _:
            return users.WithoutOutliers()


def function(rng: Random, schema: pa.Schema) -> WindowFunction:
    """Draw what is made of a window."""
    match rng.randrange(13):
        case 0 | 1 | 2 | 3 | 4:
            return aggregates(rng, schema, AGGREGATES | MORE)
        case 5 | 6:
            return aggregates(rng, schema, AGGREGATES | MORE | LISTS)
        case 7:
            return aggregates(rng, schema, SKETCHES)
        case 8:
            return Collect(tuple(rng.sample(["i", "text", "f", "d", "b", "day", "small"], 3)))
        case 9:
            return Reduce(users.later, ("i", "text"))
        case 10:
            return _process(rng, schema)
        case 11:
            return top(rng, schema)
        case _:
            return _of_users(rng, schema)


def top(rng: Random, schema: pa.Schema) -> Top:
    """Draw the first rows of a window."""
    columns = tuple(rng.sample(["i", "text", "f", "d", "b", "day", "small"], 4))
    places = rng.sample(range(4), rng.choice([1, 1, 2]))
    output = [*map(schema.field, columns[:3]), pa.field("number", pa.int64())]
    by = tuple((place, rng.random() < 0.5) for place in places)
    return Top(rng.choice([1, 2, 5]), by, columns, pa.schema(output))


def _of_users(rng: Random, schema: pa.Schema) -> WindowFunction:
    match rng.randrange(4):
        case 0 | 1:
            mean = BoundUserAggregate("mean", users.GeometricMean(), ("value",))
            return Aggregates((mean, bind("n", Aggregate("count"), schema)))
        case 2:
            return Vectorised(users.Totals(), ("value",), users.Totals.output)
        case _:
            return Vectorised(users.Jumps(), ("value",), pa.schema([("jump", pa.float64())]))


def aggregates(rng: Random, schema: pa.Schema, among: dict[str, Aggregate]) -> Aggregates:
    """Draw some built-in aggregates."""
    names = sorted(among)
    chosen = rng.sample(names, min(len(names), rng.choice([1, 2, 3, 6])))
    return Aggregates(tuple(bind(name, among[name], schema) for name in chosen))


def _process(rng: Random, schema: pa.Schema) -> Process:
    if rng.random() < 0.5:
        return Process(users.Numbered(), ("i", "f"), users.Numbered.output)
    both = {"least": Aggregate("min", "value"), "most": Aggregate("max", "value")}
    bound = tuple(bind(name, each, schema) for name, each in both.items())
    return Process(users.Spread(), (), users.Spread.output, aggregates=Aggregates(bound))
