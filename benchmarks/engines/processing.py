"""A running count of each key, with a timer at the end of each period: in several ways.

A result has the count so far (of a row, or of a key in a micro-batch), or says that a timer fired.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import gpu_windows as gw
from benchmarks.contest import Factory, Window, Work
from benchmarks.engines.streams import BEHIND
from benchmarks.stage import Stage
from benchmarks.streams import data_of
from gpu_windows.operators.build import build_operator, restore_operator
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.planner import plan
from gpu_windows.vocabulary.options import ticks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

LONG = pa.int64()
#: Columns of results after the key.
OUTPUT = pa.schema([("count", LONG), ("fired", LONG)])
_SPARK = "key long, count long, fired long"
#: Takes a micro-batch: keys, ticks, and the watermark before it; returns results.
Take = Callable[[pa.ChunkedArray, pa.ChunkedArray, int], pa.Table]


class RowByRow(gw.functions.KeyedProcessFunction):
    """Takes a row at a time."""

    state: ClassVar = {"count": gw.functions.ValueStateDescriptor(LONG)}

    def __init__(self, period: int) -> None:
        self.period = period

    def open(self, context: gw.typing.OpenContext) -> None:
        """Take the state."""
        self._count = context.state("count")

    def process_element(
        self, row: Mapping[str, Any], context: gw.typing.KeyedContext
    ) -> Iterator[Mapping[str, object]]:
        """Count a row."""
        del row
        count = self._count.value(0) + 1
        self._count.update(count)
        assert context.timestamp is not None
        context.register_event_time_timer((context.timestamp // self.period + 1) * self.period)
        yield {"count": count, "fired": 0}

    def on_timer(
        self, time: int, context: gw.typing.TimerContext
    ) -> Iterator[Mapping[str, object]]:
        """Say that a period is over."""
        del time, context
        yield {"count": 0, "fired": 1}


class Vectorised(gw.functions.VectorProcessFunction):
    """Takes the rows of all keys at once."""

    state: ClassVar = {"count": LONG}
    order_free = True

    def __init__(self, period: int) -> None:
        self.period = period

    def process_batch(self, batch: gw.typing.RowsBatch) -> gw.functions.VectorResult:
        """Count rows."""
        assert batch.timestamps is not None
        counts = pc.fill_null(batch.state["count"], 0).to_numpy() + batch.counts
        ends = (batch.timestamps // self.period + 1) * self.period
        return gw.functions.VectorResult(
            rows=pa.table({"count": counts, "fired": np.zeros(len(batch), np.int64)}),
            state=pa.table({"count": counts}),
            event_timers=(batch.places, ends),
        )

    def on_timers(self, batch: gw.typing.TimersBatch) -> gw.functions.VectorResult:
        """Say which periods are over."""
        fired = np.ones(len(batch.times), np.int64)
        return gw.functions.VectorResult(
            rows=(pa.table({"count": fired - 1, "fired": fired}), batch.places)
        )


class OfSpark(StatefulProcessor):
    """Takes the rows of a key at a time, as the documentation of transformWithState does."""

    def __init__(self, period_ms: int) -> None:
        self._period = period_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take the state."""
        self._handle = handle
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(  # noqa: N802 - as Spark calls it
        self,
        key: Any,
        rows: Any,
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Count the rows of a key."""
        del timerValues
        count = (self._count.get() or (0,))[0]
        ends: set[int] = set()
        for frame in rows:
            count += len(frame)
            at = frame["ts"].to_numpy().astype("datetime64[ms]").astype(np.int64)
            ends.update(np.unique(at // self._period).tolist())
        self._count.update((count,))
        for end in ends:
            self._handle.registerTimer((end + 1) * self._period)
        yield pd.DataFrame({"key": key[:1], "count": [count], "fired": [0]})

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Say that a period is over."""
        del timerValues, expiredTimerInfo
        yield pd.DataFrame({"key": key[:1], "count": [0], "fired": [1]})

    def close(self) -> None:
        """Do nothing."""


def spark(frame: DataFrame, window: Window) -> DataFrame:
    """Write the query of Spark; the size of the window is the period."""
    return frame.groupBy("key").transformWithStateInPandas(
        statefulProcessor=OfSpark(window.size // 1_000),
        outputStructType=_SPARK,
        outputMode="append",
        timeMode="EventTime",
    )


def ours(kind: Callable[[int], Any]) -> Callable[[Any, Window], gw.typing.Outputs]:
    """Write the query of ours, over a DataFrame or a table."""

    def query(source: Any, window: Window) -> gw.typing.Outputs:
        strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness(BEHIND)
        keyed = gw.stream(source).event_time("ts", strategy).key_by("key")
        return keyed.with_outputs().process(kind(window.size), output=OUTPUT)

    return query


def summed(written: DataFrame) -> pa.Table:
    """Reduce results to the last count of each key, and how often its timers fired."""
    return totals(written.select("key", *OUTPUT.names).toArrow())


def totals(results: pa.Table) -> pa.Table:
    """Do the same with a table."""
    found = results.group_by("key").aggregate([("count", "max"), ("fired", "sum")])
    return found.select(["key", "count_max", "fired_sum"])


# ---- in memory


def in_memory(kind: Callable[[int], Any], *, stored: bool = False) -> Factory:
    """Run an operator of ours; ``stored``: put away in a store after each micro-batch."""

    def factory(stage: Stage) -> Work:
        run = _Run(stage, kind, stored=stored)
        return Work(run.next, stage.window, run.result)

    return factory


class _Run:
    """An operator that is given a micro-batch at a time: the watermark, then rows."""

    def __init__(self, stage: Stage, kind: Callable[[int], Any], *, stored: bool) -> None:
        (self._make,) = data_of(stage).inputs
        query = ours(kind)(self._make(0).slice(0, 0), stage.window).plan.query
        self._plan: Plan = plan(query, bounded=False)
        self._store = MemoryLog() if stored else None
        self._operator = build_operator(self._plan)
        self._watermark = -1
        self._next = 0
        self._found: list[pa.Table] = []

    def next(self) -> float:
        """Take the next micro-batch; return the seconds that it took."""
        rows = self._make(self._next)
        rows = rows.set_column(1, "ts", rows["ts"].cast(LONG))
        self._next += 1
        start = time.perf_counter()
        emissions = [*self._take(rows)]
        seconds = time.perf_counter() - start
        self._found += [e.results for e in emissions if len(e.results)]
        self._watermark = _watermark_of(rows)
        return seconds

    def _take(self, rows: pa.Table) -> Iterator[Any]:
        if self._store is None:
            yield from self._operator.advance_watermark(self._watermark)
            yield from self._operator.process(rows)
            return
        operator = restore_operator(self._plan, self._store)
        yield from operator.advance_watermark(self._watermark)
        yield from operator.process(rows)
        operator.save()

    def result(self) -> pa.Table:
        """Return what all gave."""
        return totals(pa.concat_tables(self._found))


def by_hand(make: Callable[[int], Take]) -> Factory:
    """Run a function over micro-batches, with the watermarks that ours is given."""

    def factory(stage: Stage) -> Work:
        (batches,) = data_of(stage).inputs
        take, numbers = make(stage.window.size), iter(range(1 << 30))
        watermark, found = -1, []

        def run() -> float:
            nonlocal watermark
            rows = batches(next(numbers))
            start = time.perf_counter()
            result = take(rows["key"], rows["ts"].cast(LONG), watermark)
            seconds = time.perf_counter() - start
            watermark = _watermark_of(rows)
            found.append(result)
            return seconds

        def result() -> pa.Table:
            return totals(pa.concat_tables(found))

        return Work(run, stage.window, result)

    return factory


def group_by(period: int) -> Take:
    """Group rows by NumPy: sorted by key, counts of keys, and ends of periods by key."""
    counts, waiting = np.zeros(0, np.int64), np.zeros(0, np.int64)  # number of a period, key

    def take(keys: pa.ChunkedArray, times: pa.ChunkedArray, watermark: int) -> pa.Table:
        nonlocal counts, waiting
        is_due = (waiting >> 32) * period <= watermark
        due, waiting = waiting[is_due] & 0xFFFF_FFFF, waiting[~is_due]
        given = keys.to_numpy()
        order = np.argsort(given, kind="stable")
        in_order = given[order]
        begins = np.flatnonzero(np.diff(in_order, prepend=in_order[:1] - 1))
        distinct = in_order[begins]
        missing = max(int(distinct[-1]) + 1 - len(counts), 0)
        counts = np.concatenate([counts, np.zeros(missing, np.int64)])
        counts[distinct] += np.diff(begins, append=len(given))
        timers = (times.to_numpy()[order] // period + 1) << 32 | in_order
        is_new = np.diff(timers, prepend=timers[:1] - 1) != 0
        waiting = np.unique(np.concatenate([waiting, timers[is_new]]))
        return _results([due, distinct], [np.zeros(len(due), np.int64), counts[distinct]], len(due))

    return take


def loop(period: int) -> Take:
    """Count in a dict, row by row; timers are in a heap and, each once, in a set."""
    counts: dict[int, int] = {}
    timers: set[tuple[int, int]] = set()
    queue: list[tuple[int, int]] = []

    def take(keys: pa.ChunkedArray, times: pa.ChunkedArray, watermark: int) -> pa.Table:
        found_keys, found = [], []
        while queue and queue[0][0] <= watermark:
            timer = heappop(queue)
            timers.discard(timer)
            found_keys.append(timer[1])
            found.append(0)
        fired = len(found)
        for key, at in zip(keys.to_pylist(), times.to_pylist(), strict=True):
            count = counts[key] = counts.get(key, 0) + 1
            timer = ((at // period + 1) * period, key)
            if timer not in timers:
                timers.add(timer)
                heappush(queue, timer)
            found_keys.append(key)
            found.append(count)
        return _results([found_keys], [found], fired)

    return take


def _results(keys: Sequence[Any], counts: Sequence[Any], fired: int) -> pa.Table:
    """Return results, the first of which say that timers fired."""
    columns = [pa.chunked_array([pa.array(part, LONG) for part in of]) for of in (keys, counts)]
    said = np.zeros(len(columns[0]), np.int64)
    said[:fired] = 1
    return pa.table({"key": columns[0], "count": columns[1], "fired": said})


def _watermark_of(rows: pa.Table) -> int:
    """Return the watermark after some rows, in microseconds."""
    latest: int = pc.max(rows["ts"].cast(LONG)).as_py()
    return latest - ticks(BEHIND) - 1
