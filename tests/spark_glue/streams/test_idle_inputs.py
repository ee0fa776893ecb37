"""Streams of which some are silent: the others go on, and windows close."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.monitoring.progress import BatchMetrics
from gpu_windows.planning.own_columns import REASON
from tests.spark_glue.stream_runs import BEGIN, SECOND, files, run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IDLE = gw.WatermarkStrategy.for_monotonous_timestamps().with_idleness("1 second")
OFTEN = {"processingTime": "200 milliseconds"}
WINDOWS = gw.TumblingEventTimeWindows.of("10 seconds")


def rows(*seconds: float, key: str = "k") -> pa.Table:
    ticks = [BEGIN + int(each * SECOND) for each in seconds]
    return pa.table(
        {
            "ts": pa.array(ticks, pa.timestamp("us", "UTC")),
            "k": [key] * len(ticks),
            "v": [float(each) for each in seconds],
        }
    )


def source(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.createDataFrame(rows(1)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def add(folder: Path, *tables: pa.Table) -> None:
    """Let files appear at once, in a folder that is watched."""
    files(folder.with_name("new"), [*tables])
    for number, path in enumerate(sorted(folder.with_name("new").iterdir())):
        path.rename(folder / f"later-{time.time_ns()}-{number}.parquet")
    folder.with_name("new").rmdir()


def until(is_so: Callable[[], Any], query: Any) -> None:
    deadline = time.monotonic() + 90
    while not is_so():
        assert time.monotonic() < deadline, (query.exception(), query.lastProgress)
        time.sleep(0.2)


def latest(listener: gw.MetricsListener, query: Any) -> BatchMetrics:
    last = listener.of(query).last
    assert last is not None
    return last


def windows_in(spark: SparkSession, folder: Path) -> list[tuple[int, int]]:
    try:
        found = gw.read_output(spark, folder / "out").collect()
    except errors.OutputError:  # nothing yet
        return []
    begin = BEGIN // SECOND
    return sorted((int(row.window_start.timestamp()) - begin, row.n) for row in found)


def late_in(spark: SparkSession, folder: Path) -> list[tuple[float, str]]:
    found = gw.read_output(spark, folder / "out", "late").collect()
    return sorted((row.v, row[REASON]) for row in found)


@pytest.mark.thorough
def test_a_silent_input_does_not_hold_a_union(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "a", [rows(1, 12), rows(58)])
    files(tmp_path / "b", [rows(3)])
    left, right = (
        gw.stream(source(spark, tmp_path / name)).event_time("ts", IDLE) for name in "ab"
    )
    both = left.union(right).key_by("k").window(WINDOWS).options(device="cpu", shards=3)
    outputs = both.with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    assert "idle after 1 s without rows" in outputs.explain()
    places = outputs, tmp_path / "out", tmp_path / "state"
    query = gw.write_stream(*places, trigger=OFTEN)
    listener = gw.MetricsListener()
    spark.streams.addListener(listener)
    try:
        until(lambda: len(windows_in(spark, tmp_path)) == 2, query)
        assert windows_in(spark, tmp_path) == [(0, 2), (10, 1)]
        add(tmp_path / "b", rows(4))  # it wakes up behind
        until(lambda: late_in(spark, tmp_path), query)
        until(lambda: "all inputs idle" in str(latest(listener, query).held), query)
        watermark = latest(listener, query).watermark
        assert watermark is not None
        assert watermark.timestamp() == pytest.approx(BEGIN / SECOND + 58, abs=1)
        add(tmp_path / "a", rows(71))
        until(lambda: len(windows_in(spark, tmp_path)) == 3, query)
    finally:
        spark.streams.removeListener(listener)
        query.stop()
    assert windows_in(spark, tmp_path) == [(0, 2), (10, 1), (50, 1)]
    assert late_in(spark, tmp_path) == [(4.0, "late")]
    again = gw.write_stream(*places, trigger=OFTEN)
    try:
        add(tmp_path / "b", rows(72))
        add(tmp_path / "a", rows(83))
        until(lambda: len(windows_in(spark, tmp_path)) == 4, again)
    finally:
        again.stop()
    assert windows_in(spark, tmp_path)[-1] == (70, 2)


@pytest.mark.slow
def test_windows_close_by_the_clock(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", [rows(1, 5), rows(6, 8)])
    timed = gw.stream(source(spark, tmp_path / "in")).event_time("ts", IDLE.close_when_idle())
    outputs = (
        timed.key_by("k")
        .window(WINDOWS)
        .options(shards=3)
        .with_outputs()
        .aggregate(n=gw.count(), v=gw.max("v"))
    )
    query = gw.write_stream(outputs, tmp_path / "out", tmp_path / "state", trigger=OFTEN)
    try:
        until(lambda: windows_in(spark, tmp_path), query)
        add(tmp_path / "in", rows(7, 12))
        until(lambda: len(windows_in(spark, tmp_path)) == 2, query)
    finally:
        query.stop()
    assert windows_in(spark, tmp_path) == [(0, 4), (10, 1)]
    assert late_in(spark, tmp_path) == [(7.0, "late")]


@pytest.mark.slow
def test_a_join_whose_one_side_is_silent(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "a", [rows(1), rows(31)])
    files(tmp_path / "b", [rows(2)])
    left, right = (
        gw.stream(source(spark, tmp_path / name)).event_time("ts", IDLE).key_by("k")
        for name in "ab"
    )
    joined = left.interval_join(right).between("-5 seconds", "5 seconds").options(shards=3)
    outputs = joined.with_outputs().select(["v"], ["v"], how="left")
    query = gw.write_stream(outputs, tmp_path / "out", tmp_path / "state", trigger=OFTEN)

    def found() -> list[tuple[float, float | None]]:
        try:
            pairs = gw.read_output(spark, tmp_path / "out").collect()
        except errors.OutputError:
            return []
        return sorted((row.left_v, row.right_v) for row in pairs)

    try:
        until(found, query)
        add(tmp_path / "a", rows(50))
        until(lambda: len(found()) == 2, query)
    finally:
        query.stop()
    assert found() == [(1.0, 2.0), (31.0, None)]


def median(timestamps: np.ndarray) -> int:
    return int(np.median(timestamps))


@pytest.mark.thorough
def test_a_generator_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", [rows(1, 2, 500), rows(9, 21, 22), rows(3, 41, 42)])
    strategy = gw.WatermarkStrategy.for_generator(median)
    timed = gw.stream(source(spark, tmp_path / "in")).event_time("ts", strategy)
    outputs = (
        timed.key_by("k")
        .window(WINDOWS)
        .options(shards=3)
        .with_outputs()
        .aggregate(n=gw.count(), v=gw.max("v"))
    )
    assert "by median of the timestamps" in outputs.explain()
    run_to_the_end(outputs, tmp_path)
    assert windows_in(spark, tmp_path) == [(0, 3), (20, 2)]
    assert late_in(spark, tmp_path) == [(3.0, "late")]


@pytest.mark.slow
def test_a_guarded_input_that_sends_nothing_else_is_idle(
    spark: SparkSession, tmp_path: Path
) -> None:
    ahead = (time.time_ns() // 1_000 - BEGIN) / SECOND + 7_200
    files(tmp_path / "a", [rows(1), rows(31)])
    files(tmp_path / "b", [rows(ahead), rows(ahead, ahead)])
    strategy = IDLE.guard("1 hour")
    left, right = (
        gw.stream(source(spark, tmp_path / name)).event_time("ts", strategy) for name in "ab"
    )
    both = left.union(right).key_by("k").window(WINDOWS).options(shards=3)
    outputs = both.with_outputs().aggregate(n=gw.count(), v=gw.max("v"))
    query = gw.write_stream(outputs, tmp_path / "out", tmp_path / "state", trigger=OFTEN)
    try:
        until(lambda: windows_in(spark, tmp_path), query)
    finally:
        query.stop()
    assert windows_in(spark, tmp_path) == [(0, 1)]
    assert [reason for _, reason in late_in(spark, tmp_path)] == ["future_timestamp"] * 3
