"""What a shard does in a micro-batch: the order of rows and times, and of rows among rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from gpu_windows.operators.keyed.timers import Pane, TimerQueue
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.planner import plan
from gpu_windows.spark_glue.tasks.shard_run import ShardRun
from gpu_windows.vocabulary.triggers import (
    ContinuousEventTimeTrigger,
    EventTimeTrigger,
    ProcessingTimeTrigger,
)
from gpu_windows.vocabulary.windows import (
    EventTimeSessionWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tests.planning.queries import AGGREGATES, SCHEMA, query
from tests.simulation.user_parts import SessionsUpTo
from tests.spark_glue.shard import Shard

SUM = {"sum_i": AGGREGATES["sum_i"]}

#: The rows of a micro-batch as a shuffle brings them, times and which came when; the watermark
#: after them.
Call = tuple[list[tuple[int, int]], int | None]


def table_of(shard: Shard, rows: list[tuple[int, int]]) -> pa.Table:
    named = [{"key": "a", "part": 0, "ts": ts, "i": seq} for ts, seq in rows]
    return pa.Table.from_pylist(named, SCHEMA).select(shard.planned.input_columns)


def run(made: WindowQuery, calls: list[Call], *, now: int = 1) -> tuple[list[Any], list[int]]:
    """Return the results, bounds and sums, and the times of late rows."""
    shard = Shard(plan(made, bounded=False, spark=True))
    results: list[Any] = []
    late: list[int] = []
    for rows, watermark in calls:
        for emission in shard.emissions([table_of(shard, rows)], watermark, now=now):
            names = ("window_start", "window_end", "sum_i")
            results += [tuple(row[n] for n in names) for row in emission.results.to_pylist()]
            late += [row["ts"] for row in emission.late.to_pylist()]
    return results, late


def made(assigner: Any, lateness: int = 0) -> WindowQuery:
    return query(assigner, aggregates=SUM, allowed_lateness=lateness, arrival_order=("i",))


# ---- rows, then the watermark


def test_rows_are_taken_under_the_watermark_before_them() -> None:
    calls: list[Call] = [([(5, 1)], None), ([(6, 2)], 9), ([(7, 4), (12, 8)], 9), ([], 19)]
    assert run(made(TumblingEventTimeWindows(10)), calls) == ([(0, 10, 3), (10, 20, 8)], [7])


def test_rows_may_say_how_far_event_time_has_come() -> None:
    """So the watermark is asked for once, after the last table."""
    shard = Shard(plan(made(TumblingEventTimeWindows(10)), bounded=False, spark=True))
    seen: list[str] = []

    def tables() -> Iterator[pa.Table]:
        for rows in ([(5, 1)], [(25, 2)]):
            yield table_of(shard, rows)
            seen.append("table")

    def watermark_after() -> int:
        seen.append("watermark")
        return 24

    shard_run = ShardRun(shard.planned, shard.log, 1)
    emissions = [*shard_run.emissions(tables(), watermark_after)]
    finished = shard_run.finish("a file")
    assert sum(len(each.results) for each in emissions) == 1
    assert seen == ["table", "table", "watermark"]
    assert (finished.counters.rows, finished.counters.fired) == (2, 1)
    assert finished.next_times == (29, None)


def test_processing_time_comes_first() -> None:
    fires = replace(made(TumblingProcessingTimeWindows(10)), trigger=ProcessingTimeTrigger())
    shard = Shard(plan(fires, bounded=False, spark=True))
    found: list[list[int]] = []
    for now, rows in ((5, [(0, 1)]), (12, [(0, 2)]), (19, []), (30, [])):
        emissions = shard.emissions([table_of(shard, rows)], now=now)
        found.append([i for each in emissions for i in each.results["sum_i"].to_pylist()])
    assert found == [[], [1], [2], []]
    assert shard.finished is not None
    assert shard.finished.next_times == (None, None)


# ---- rows come in the order of a shuffle, not of arrival


def test_a_session_that_reaches_back_makes_rows_be_in_time() -> None:
    """The row at 86 joins the open session; only then that at 80 touches it."""
    calls: list[Call] = [([(95, 1)], 100), ([(80, 3), (86, 2)], 200)]
    assert run(made(EventTimeSessionWindows(10)), calls) == ([(80, 105, 6)], [])


def test_late_rows_fire_one_by_one_as_they_came() -> None:
    calls: list[Call] = [([(5, 1)], 10), ([(7, 4), (6, 2)], 10)]
    found, _ = run(made(TumblingEventTimeWindows(10), lateness=50), calls)
    assert [total for *_, total in found] == [1, 3, 7]


def test_what_a_user_merges_depends_on_the_order() -> None:
    """Of three rows two are a session, for all three would last too long."""
    calls: list[Call] = [([(30, 4), (20, 2), (10, 1)], 200)]
    found, _ = run(made(SessionsUpTo(12, 25)), calls)
    assert sorted(found) == [(10, 32, 3), (30, 42, 4)]


def test_a_continuous_trigger_begins_with_the_first_row() -> None:
    """That at 16 has it fire at 24; were it that at 5, the window would fire at 12 too."""
    calls: list[Call] = [([(5, 2), (16, 1)], 100)]
    continuous = replace(made(TumblingEventTimeWindows(30)), trigger=ContinuousEventTimeTrigger(12))
    found, _ = run(continuous, calls)
    assert [total for *_, total in found] == [3, 3]


def test_windows_of_processing_time_that_wait_for_a_watermark_that_was() -> None:
    """Every row fires its window, for the watermark is further than processing time."""
    waits = replace(made(TumblingProcessingTimeWindows(10)), trigger=EventTimeTrigger())
    found, _ = run(waits, [([], 50), ([(5, 4), (5, 2), (5, 1)], 51)])
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
        (TumblingEventTimeWindows(10), 5, "the firings of late rows"),
    ],
)
def test_a_stream_without_an_order_warns(assigner: Any, lateness: int, words: str) -> None:
    unordered = query(assigner, aggregates=SUM, allowed_lateness=lateness)
    (warning,) = plan(unordered, bounded=False, spark=True).warnings
    assert warning.startswith(words)
    assert plan(unordered, bounded=True, spark=True).warnings == ()
