"""gpu_windows through its public API: on Spark, and on an Arrow table in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import gpu_windows as gw
from benchmarks.contest import Factory, Window, Work, stopwatch
from benchmarks.engines.memory import arrow_work
from benchmarks.stage import Stage
from gpu_windows.runners import local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gpu_windows.vocabulary.options import Partials


def query(source: Any, window: Window, partials: Partials = "auto") -> gw.typing.Outputs:
    """Write the query, over a DataFrame or a table."""
    size, slide = window.size_delta, window.slide_delta
    assigner = (
        gw.TumblingEventTimeWindows.of(size)
        if window.tumbles
        else gw.SlidingEventTimeWindows.of(size, slide)
    )
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    windowed = gw.stream(source).event_time("ts", strategy).key_by("key").window(assigner)
    return (
        windowed.options(partials=partials)
        .with_outputs()
        .aggregate(sum=gw.sum("value"), count=gw.count(), max=gw.max("value"))
    )


def sessions(source: Any, window: Window) -> gw.typing.Outputs:
    """Write the query of sessions, over a DataFrame or a table; the size is the gap."""
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    timed = gw.stream(source).event_time("ts", strategy).key_by("key")
    windowed = timed.window(gw.EventTimeSessionWindows.with_gap(window.size_delta))
    return windowed.with_outputs().aggregate(
        sum=gw.sum("value"), count=gw.count(), max=gw.max("value")
    )


def in_time(left: Any, right: Any, window: Window) -> gw.typing.Outputs:
    """Write the join of rows up to the window's size apart, over DataFrames or tables."""
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    ours, its = (gw.stream(side).event_time("ts", strategy).key_by("key") for side in (left, right))
    joined = ours.interval_join(its).between(-window.size_delta, window.size_delta)
    return joined.with_outputs().select(["value", "ts"], ["value", "ts"])


def joined(left: Any, right: Any, window: Window) -> Any:
    """Return the pairs: a DataFrame, or a table in the order in which pairs came about."""
    return in_time(left, right, window).result()


def last_rows(source: Any, window: Window) -> gw.typing.Outputs:
    """Write a query of the last 10 rows of a key and window; windows tumble, by their size."""
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    timed = gw.stream(source).event_time("ts", strategy).key_by("key")
    windowed = timed.window(gw.TumblingEventTimeWindows.of(window.size_delta))
    return (
        windowed.evictor(gw.CountEvictor.of(10))
        .with_outputs()
        .aggregate(sum=gw.sum("value"), count=gw.count(), max=gw.max("value"))
    )


def planned_sessions(frame: DataFrame, window: Window) -> DataFrame:
    """Leave the plan of sessions to the planner."""
    return sessions(frame, window).result()  # type: ignore[no-any-return]


def planned(frame: DataFrame, window: Window) -> DataFrame:
    """Leave the plan to the planner."""
    return query(frame, window).result()  # type: ignore[no-any-return]


def by_kernels(frame: DataFrame, window: Window) -> DataFrame:
    """Let every row cross to our kernels."""
    return query(frame, window, "kernels").result()  # type: ignore[no-any-return]


def counts_from_memory(size: int, slide: int, threads: int | None = None) -> Factory:
    """Run count windows of ``size`` rows every ``slide`` on the table in memory."""

    def factory(stage: Stage) -> Work:
        table = stage.resources.table
        strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
        keyed = gw.stream(table).event_time("ts", strategy).key_by("key")
        windowed = keyed.count_window(size, slide).options(threads=threads)
        outputs = windowed.with_outputs().aggregate(
            sum=gw.sum("value"), count=gw.count(), max=gw.max("value")
        )
        return Work(stopwatch(lambda: local.run(outputs.plan, table).results), stage.window)

    return factory


def windows_from_memory(
    *,
    trigger: gw.functions.Trigger | None = None,
    evictor: gw.functions.Evictor | None = None,
    threads: int | None = None,
    hot: float = 0.0,
) -> Factory:
    """Run windows with a trigger or an evictor on the table in memory.

    ``hot``: share of the rows that are given to one key.
    """

    def factory(stage: Stage) -> Work:
        table, window = stage.resources.table, stage.window
        if hot > 0.0:
            chosen = np.random.default_rng(1).random(len(table)) < hot
            keys = np.where(chosen, 0, table["key"].to_numpy())
            table = table.set_column(0, "key", pa.array(keys))
        assigner = gw.SlidingEventTimeWindows.of(window.size_delta, window.slide_delta)
        strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
        windowed = gw.stream(table).event_time("ts", strategy).key_by("key").window(assigner)
        windowed = windowed if trigger is None else windowed.trigger(trigger)
        windowed = windowed if evictor is None else windowed.evictor(evictor)
        outputs = (
            windowed.options(threads=threads)
            .with_outputs()
            .aggregate(sum=gw.sum("value"), count=gw.count(), max=gw.max("value"))
        )
        plan = outputs.plan

        def run() -> pa.Table:
            return local.run(plan, table, in_order=False).results

        return Work(stopwatch(run), window)

    return factory


def lengths_from_memory(slides: Sequence[int], *, changed: bool = False) -> Factory:
    """Run windows of several lengths on the table in memory.

    ``slides``: how many slides each is long; ``changed``: of keys with a row in the last one.
    """

    def factory(stage: Stage) -> Work:
        table, slide = stage.resources.table, stage.window.slide_delta
        assigner = gw.MultiLengthEventTimeWindows.of(*(n * slide for n in slides), slide=slide)
        strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
        windowed = gw.stream(table).event_time("ts", strategy).key_by("key").window(assigner)
        windowed = windowed.changed_keys() if changed else windowed
        plan = (
            windowed.with_outputs()
            .aggregate(sum=gw.sum("value"), count=gw.count(), max=gw.max("value"))
            .plan
        )

        def run() -> pa.Table:
            return local.run(plan, table, in_order=False).results

        return Work(stopwatch(run), stage.window)

    return factory


def from_memory() -> Factory:
    """Run the local operator on the table in memory; as in Polars, no order between keys."""

    def factory(stage: Stage) -> Work:
        table = stage.resources.table

        def run() -> pa.Table:
            planned = query(table, stage.window).plan
            return local.run(planned, table, in_order=False).results

        return arrow_work(stage, run)

    return factory
