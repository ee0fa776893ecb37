"""In Spark a row with a bad value is given back with its reason, and the query continues."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.planning.own_columns import REASON
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.lanes import quick
from tests.spark_glue.stream_runs import BEGIN, SECOND, WATERMARKS, files, run_to_the_end, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REJECTED = "invalid_session_gap"


def rows(*of: tuple[str, int, int | None]) -> pa.Table:
    """Rows of a key, a second, and a gap in microseconds."""
    keys, at, gaps = zip(*of, strict=True)
    ticks = pa.array([BEGIN + each * SECOND for each in at])
    times = ticks.cast(pa.timestamp("us", "UTC"))
    return pa.table({"k": keys, "ts": times, "gap": pa.array(gaps, pa.int64())})


def outputs_of(source: Any) -> gw.typing.Outputs:
    timed = gw.stream(source).event_time("ts", WATERMARKS)
    windows = gw.EventTimeSessionWindows.with_dynamic_gap("gap")
    return (
        timed.key_by("k")
        .window(windows)
        .options(device="cpu", shards=2)
        .with_outputs()
        .aggregate(n=gw.count())
    )


@pytest.mark.parametrize("as_interval", quick([False, True], True))
def test_a_batch_gives_rows_with_a_bad_gap_back(spark: SparkSession, as_interval: bool) -> None:
    day = 86_400 * SECOND + 3_661_000_001  # every part of an interval counts
    bad = [None, 0, -1, -day, LONG_MIN, LONG_MAX]
    table = rows(("a", 0, 5 * SECOND), *(("b", i, gap) for i, gap in enumerate(bad)), ("c", 9, day))
    frame = spark.createDataFrame(table)
    if as_interval:
        kept = [gap for gap in bad if gap is None or abs(gap) <= day]
        of = [("a", 5 * SECOND), *(("b", gap) for gap in kept), ("c", day)]
        whole = [(k, None if g is None else timedelta(microseconds=g)) for k, g in of]
        gaps = spark.createDataFrame(whole, "k string, gap interval day to second")
        frame, bad = gaps.selectExpr("k", f"timestamp_micros({BEGIN}) ts", "gap"), kept
    outputs = outputs_of(frame)
    back = outputs.rejected().collect()
    assert [(row.k, row[REASON]) for row in back] == [("b", REJECTED)] * len(bad)
    assert {row.k: row.n for row in outputs.result().collect()} == {"a": 1, "c": 1}
    counters = outputs.metrics().collect()[0]
    assert (counters.rows, counters.invalid_session_gap) == (len(bad) + 2, len(bad))


@pytest.mark.thorough
def test_a_stream_continues_after_a_bad_gap(spark: SparkSession, tmp_path: Path) -> None:
    """At every start, too; and the time of such a row moves the watermark as that of any does."""
    gap = 5 * SECOND
    first = [rows(("a", 0, gap)), rows(("a", 1, None), ("a", 2, gap), ("b", 3, 0))]
    files(tmp_path / "in", first)
    run_to_the_end(outputs_of(streamed(spark, tmp_path / "in", rows(("a", 0, 1)))), tmp_path)
    files(tmp_path / "in", [*first, rows(("b", 60, -1)), rows(("b", 61, gap))])
    run_to_the_end(outputs_of(streamed(spark, tmp_path / "in", rows(("a", 0, 1)))), tmp_path)
    found = gw.read_output(spark, tmp_path / "out").collect()
    assert [(row.k, row.n) for row in found] == [("a", 2)]
    back = gw.read_output(spark, tmp_path / "out", "late").collect()
    assert [row[REASON] for row in back] == [REJECTED] * 3
    assert sorted((row.k, row.gap is None) for row in back) == [("a", True), *[("b", False)] * 2]
