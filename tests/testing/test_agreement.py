"""A query on Arrow, as a Spark batch and as a stream."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import QueryError
from gpu_windows.testing import assert_runs_agree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)
BOUND = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 minute")


def clicks(minutes: list[int]) -> pa.Table:
    times = [BEGIN + timedelta(minutes=each) for each in minutes]
    return pa.table({"user": ["ann"] * len(times), "ts": times, "n": [*range(len(times))]})


def hours(rows: Any) -> Any:
    timed = rows.event_time("ts", BOUND).key_by("user")
    windowed = timed.window(gw.TumblingEventTimeWindows.of("10 minutes")).with_outputs()
    results = windowed.aggregate(n=gw.count(), mean=gw.mean("n"))
    return results.select(where="window_start < TIMESTAMP '2026-05-01 20:00:00'")


def test_batches_agree(spark: SparkSession) -> None:
    found = assert_runs_agree(hours, spark, clicks([1, 2, 15, 700]), compare_stream=False)
    assert found["n"].to_pylist() == [2, 1]
    with pytest.raises(QueryError, match="from 1 on"):
        assert_runs_agree(hours, spark, clicks([1]), micro_batches=0)


@pytest.mark.thorough
def test_a_stream_agrees_until_a_row_is_late(spark: SparkSession) -> None:
    assert_runs_agree(hours, spark, clicks([1, 2, 15, 700]), micro_batches=2)
    with pytest.raises(AssertionError, match=r"a stream \(\+\) and Arrow \(-\) do not agree"):
        assert_runs_agree(hours, spark, clicks([1, 15, 2, 700]), micro_batches=4)


def test_times_without_a_zone_agree_in_every_zone(spark: SparkSession) -> None:
    zone = "spark.sql.session.timeZone"
    before = str(spark.conf.get(zone))
    spark.conf.set(zone, "Europe/Berlin")
    try:  # clocks there skip the second time
        times = [datetime(2024, 3, 30, 2, 30), datetime(2024, 3, 31, 2, 30)]
        rows = pa.table({"user": ["ann"] * 2, "ts": times, "n": [1, 2]})
        found = assert_runs_agree(hours, spark, rows, compare_stream=False)
    finally:
        spark.conf.set(zone, before)
    assert found["window_start"].to_pylist() == times
