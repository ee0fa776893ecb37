"""What a shard does in a micro-batch: rows come in the order of a shuffle, not of arrival."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from gpu_windows.operators.keyed.timers import Pane, TimerQueue
from gpu_windows.operators.state.store import MemoryStore
from gpu_windows.planning.planner import plan
from gpu_windows.query.window import WindowQuery
from gpu_windows.spark_glue.micro_batch import Shard
from gpu_windows.spark_glue.times import SparkClock
from gpu_windows.triggers import ContinuousEventTimeTrigger, EventTimeTrigger
from gpu_windows.windows import (
    EventTimeSessionWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tests.query.queries import AGGREGATES, SCHEMA, query
from tests.simulation.user_parts import SessionsUpTo

CLOCK = SparkClock(1, 1 << 61)
SUM = {"sum_i": AGGREGATES["sum_i"]}

#: A watermark, and the rows of a micro-batch as a shuffle brings them: times, and which came when.
Call = tuple[int, list[tuple[int, int]]]


def run(made: WindowQuery, calls: list[Call]) -> tuple[list[Any], list[int]]:
    """Return the results, bounds and sums, and the times of late rows."""
    shard, store = Shard(plan(made, bounded=False, spark=True), CLOCK), MemoryStore()
    results: list[Any] = []
    late: list[int] = []
    for watermark, rows in calls:
        named = [{"key": "a", "part": 0, "ts": ts, "i": seq} for ts, seq in rows]
        table = pa.Table.from_pylist(named, SCHEMA).select(shard.plan.input_columns)
        batch = shard.begin(store, 1, CLOCK.first_watermark(watermark))
        for emission in batch.emissions([table]):
            names = ("window_start", "window_end", "sum_i")
            results += [tuple(row[n] for n in names) for row in emission.results.to_pylist()]
            late += [row["ts"] for row in emission.late.to_pylist()]
        batch.finish()
    return results, late


def made(assigner: Any, lateness: int = 0) -> WindowQuery:
    return query(assigner, aggregates=SUM, allowed_lateness=lateness, order_by=("i",))


def test_a_session_that_reaches_back_makes_rows_be_in_time() -> None:
    """The row at 86 joins the open session; only then that at 80 touches it."""
    calls: list[Call] = [(0, [(95, 1)]), (100, [(80, 3), (86, 2)]), (200, [])]
    assert run(made(EventTimeSessionWindows(10)), calls) == ([(80, 105, 6)], [])


def test_late_rows_fire_one_by_one_as_they_came() -> None:
    calls: list[Call] = [(0, [(5, 1)]), (10, [(7, 4), (6, 2)])]
    found, _ = run(made(TumblingEventTimeWindows(10), lateness=50), calls)
    assert [total for *_, total in found] == [1, 3, 7]


def test_what_a_user_merges_depends_on_the_order() -> None:
    """Of three rows two are a session, for all three would last too long."""
    calls: list[Call] = [(0, [(30, 4), (20, 2), (10, 1)]), (200, [])]
    found, _ = run(made(SessionsUpTo(12, 25)), calls)
    assert sorted(found) == [(10, 32, 3), (30, 42, 4)]


def test_a_continuous_trigger_begins_with_the_first_row() -> None:
    """That at 16 has it fire at 24; were it that at 5, the window would fire at 12 too."""
    calls: list[Call] = [(0, [(5, 2), (16, 1)]), (100, [])]
    continuous = replace(made(TumblingEventTimeWindows(30)), trigger=ContinuousEventTimeTrigger(12))
    found, _ = run(continuous, calls)
    assert [total for *_, total in found] == [3, 3]


def test_windows_of_processing_time_that_wait_for_a_watermark_that_was() -> None:
    """Every row fires its window, for the watermark is further than processing time."""
    waits = replace(made(TumblingProcessingTimeWindows(10)), trigger=EventTimeTrigger())
    found, _ = run(waits, [(50, []), (51, [(5, 4), (5, 2), (5, 1)])])
    assert [total for *_, total in found] == [1, 3, 7]


def test_timers_of_one_time_fire_in_the_order_in_which_they_were_set() -> None:
    """Also one that was taken back and set again, whether it was put away meanwhile or not."""
    timers: TimerQueue[Pane] = TimerQueue()
    first, second = (Pane((key,), TimeWindow(0, 5)) for key in "ab")
    timers.register(4, first)
    timers.register(4, second)
    timers.delete(4, first)
    timers.register(4, first)
    again: TimerQueue[Pane] = TimerQueue()
    for timer in timers:  # in whatever order
        again.load(timer)
    due = [(4, second, False), (4, first, False)]
    for each in (timers, again):
        assert [each.pop_due(4) for _ in range(3)] == [*due, None]


@pytest.mark.parametrize(
    ("assigner", "lateness", "words"),
    [
        (EventTimeSessionWindows(10), 0, "which rows are late for their session"),
        (TumblingEventTimeWindows(10), 5, "what late rows fire, one by one"),
    ],
)
def test_a_stream_without_an_order_warns(assigner: Any, lateness: int, words: str) -> None:
    unordered = query(assigner, aggregates=SUM, allowed_lateness=lateness)
    (warning,) = plan(unordered, bounded=False, spark=True).warnings
    assert warning.startswith(words)
    assert plan(unordered, bounded=True, spark=True).warnings == ()
