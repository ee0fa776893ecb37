"""Event times without a zone: every kind of query, on Arrow tables, files and batch DataFrames."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import datetime
from io import StringIO
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

import gpu_windows as gw
from gpu_windows.errors import ColumnTypeError
from gpu_windows.spark_glue.columns.ticks import ticks_of, time_in_sql
from gpu_windows.spark_glue.columns.ticks import times_of as spark_times_of
from tests.column_types.clocks import (
    HOUR,
    NTZ,
    QUERIES,
    UTC,
    WATERMARKS,
    ZONE,
    as_instants,
    clock_rows,
    rows_in_ticks,
    timed,
    times_of,
)
from tests.lanes import quick

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = clock_rows()


def written(folder: Path) -> str:
    """Write the rows to a folder of Parquet files, and return its path."""
    for part in (0, 1):
        pq.write_table(ROWS.slice(150 * part, 150), folder / f"{part}.parquet")
    return str(folder)


@pytest.mark.parametrize("name", QUERIES)
def test_here(name: str) -> None:
    found, wanted = (QUERIES[name](each).result() for each in (ROWS, as_instants(ROWS)))
    assert rows_in_ticks(found) == rows_in_ticks(wanted)
    assert len(found) > 3
    assert (times_of(found), times_of(wanted)) in (({NTZ}, {UTC}), (set(), set()))
    rejected = QUERIES[name](ROWS).rejected()
    if rejected.num_rows:
        assert times_of(rejected) == {NTZ}


@pytest.mark.parametrize("name", ["tumbling", "over", "interval join"])
def test_files_here(name: str, tmp_path: Path) -> None:
    found = QUERIES[name](gw.scan(written(tmp_path))).result()
    assert rows_in_ticks(found) == rows_in_ticks(QUERIES[name](ROWS).result())
    assert times_of(found) == {NTZ}


#: Kinds of queries whose times go the ways of others.
NIGHTLY = ["sliding", "every row", "trigger", "evictor", "continuous", "co-group", "top", "stage"]


@pytest.mark.parametrize("name", quick(QUERIES, nightly=NIGHTLY))
def test_on_spark(name: str, spark: SparkSession, time_zone: Any, tmp_path: Path) -> None:
    path = written(tmp_path)
    with time_zone(ZONE):
        found = QUERIES[name](spark.read.parquet(path)).result().toArrow()
    wanted = QUERIES[name](ROWS).result()
    assert rows_in_ticks(found) == rows_in_ticks(wanted)
    assert times_of(found) == times_of(wanted)


@pytest.mark.parametrize("partials", quick(["spark", "kernels"]))
@pytest.mark.parametrize("event_time", quick(["ts", "at"], "ts"))
def test_partials_of_times_on_spark(
    event_time: str, partials: str, spark: SparkSession, time_zone: Any, tmp_path: Path
) -> None:
    """Also of times without a zone that are in windows of instants, and the other way round."""
    rows = ROWS.append_column("at", ROWS["ts"].cast(UTC))
    pq.write_table(rows, tmp_path / "a.parquet")

    def result(source: Any) -> Any:
        keyed = gw.stream(source).event_time(event_time, WATERMARKS).key_by("k")
        windows = keyed.window(gw.SlidingEventTimeWindows.of("1 hour", "20 minutes"))
        ends = {"a": gw.min("ts"), "b": gw.max("ts"), "c": gw.min("at"), "d": gw.max("at")}
        return windows.options(partials=partials, device="cpu").aggregate(n=gw.count("ts"), **ends)

    with time_zone(ZONE):
        found = result(spark.read.parquet(str(tmp_path))).toArrow()
    wanted = result(rows)
    assert rows_in_ticks(found) == rows_in_ticks(wanted)
    assert [f.type.tz is None for f in found.schema if pa.types.is_timestamp(f.type)] == [
        *[event_time == "ts"] * 2, True, True, False, False
    ]  # fmt: skip


@pytest.mark.parametrize("name", quick(["tumbling", "over", "union", "process"]))
def test_scans_on_spark(name: str, spark: SparkSession, time_zone: Any, tmp_path: Path) -> None:
    path = written(tmp_path)
    with time_zone(ZONE):
        found = QUERIES[name](gw.scan(path, spark)).result().toArrow()
    assert rows_in_ticks(found) == rows_in_ticks(QUERIES[name](ROWS).result())


def test_plans_of_chains_stay_small(spark: SparkSession, tmp_path: Path) -> None:
    """Each stage has the expressions of the one before it once."""
    plans = []
    frame = spark.read.parquet(written(tmp_path))
    for source in (frame, frame.withColumn("ts", F.col("ts").cast("timestamp"))):
        text = StringIO()
        with redirect_stdout(text):
            QUERIES["stage"](source).result().explain(extended=True)
        plans.append(len(text.getvalue()))
    assert plans[0] < 4 * plans[1]


def test_rejected_rows_keep_their_type(spark: SparkSession, time_zone: Any, tmp_path: Path) -> None:
    outputs = [QUERIES["tumbling"](each) for each in (ROWS, spark.read.parquet(written(tmp_path)))]
    with time_zone(ZONE):
        here, there = outputs[0].rejected(), outputs[1].rejected().toArrow()
    for rejected in (here, there):
        assert rejected["i"].to_pylist() == [6]
        assert rejected.schema.field("ts").type == NTZ


def test_windows_are_those_of_spark(spark: SparkSession, time_zone: Any, tmp_path: Path) -> None:
    path = written(tmp_path)
    with time_zone(ZONE):
        frame = spark.read.parquet(path).where("ts > TIMESTAMP_NTZ '1970-01-01 00:00:00'")
        ours = timed(frame).key_by("k").window(HOUR).aggregate(n=gw.count()).toArrow()
        grouped: DataFrame = frame.groupBy("k", F.window("ts", "1 hour").alias("w")).count()
        theirs = grouped.select("k", "w.start", "w.end", "count").toArrow()
    assert rows_in_ticks(ours) == rows_in_ticks(theirs)
    starts = set(ours["window_start"].to_pylist())
    assert datetime(2024, 3, 31, 2) in starts  # which no clock in this zone shows


@pytest.mark.parametrize("dtype", [NTZ, UTC], ids=str)
def test_ticks_there_and_back(dtype: pa.DataType, spark: SparkSession, time_zone: Any) -> None:
    ticks = [0, -1, 1, 1_711_848_600_000_001, -62_135_596_800_000_000, 253_402_300_799_999_999,
             9_000_000_000_000_000_000, -9_000_000_000_000_000_000, None]  # fmt: skip
    with time_zone(ZONE):
        frame = spark.createDataFrame([(each,) for each in ticks], "t BIGINT")
        times = frame.select("t", spark_times_of(F.col("t"), dtype).alias("at"))
        back = times.select("t", ticks_of(F.col("at"), dtype).alias("back")).collect()
        texts = ", ".join(time_in_sql(each, dtype) for each in ticks if each is not None)
        array = spark.sql(f"SELECT array({texts}) AS at")
        constants = array.select(
            F.transform("at", lambda each: ticks_of(each, dtype)).alias("t")
        ).collect()
    assert [row["back"] for row in back] == [row["t"] for row in back] == ticks
    assert constants[0]["t"] == ticks[:-1]
    assert dict(times.dtypes)["at"] == ("timestamp_ntz" if dtype == NTZ else "timestamp")


def test_a_mixture_is_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame(as_instants(ROWS))
    naive = frame.withColumn("ts", F.col("ts").cast("timestamp_ntz"))
    steps: list[Callable[[Any, Any], Any]] = [
        lambda one, other: one.union(other),
        lambda one, other: one.key_by("k").interval_join(other.key_by("k")),
        lambda one, other: one.key_by("k").temporal_join(other.key_by("k")),
        lambda one, other: one.key_by("k").join(other.key_by("k")),
        lambda one, other: one.key_by("k").co_group(other.key_by("k")),
    ]
    both = r"timestamp\[us(, tz=UTC)?\] in the first one; cast one, got timestamp\[us"
    for one, other in ((ROWS, as_instants(ROWS)), (naive, frame)):
        for (left, right), step in product(((one, other), (other, one)), steps):
            with pytest.raises(ColumnTypeError, match=both):
                step(timed(left), timed(right))


def test_clocks_are_refused() -> None:
    closing = WATERMARKS.with_idleness("1 s").close_when_idle()
    for strategy in (WATERMARKS.guard("1 minute"), closing):
        with pytest.raises(ColumnTypeError, match="time_zone='Europe/Zurich'") as caught:
            gw.stream(ROWS).event_time("ts", strategy)
        assert (caught.value.value, caught.value.column) == ("TIMESTAMP_NTZ", "ts")
        assert gw.stream(ROWS).event_time("ts", strategy, time_zone=ZONE).time == "ts"


def test_watermarks_in_a_column_are_of_the_same_type() -> None:
    table = ROWS.append_column("w", ROWS["ts"].cast(UTC))
    for time, column in (("ts", "w"), ("w", "ts")):
        strategy = gw.WatermarkStrategy.for_punctuated(column)
        with pytest.raises(ColumnTypeError, match=r"TIMESTAMP.*, got TIMESTAMP") as caught:
            gw.stream(table).event_time(time, strategy)
        assert caught.value.column == column
    strategy = gw.WatermarkStrategy.for_punctuated("ts")
    found = gw.stream(ROWS).event_time("ts", strategy).window_all(HOUR).aggregate(n=gw.count())
    assert pa.compute.sum(found["n"]).as_py() == len(ROWS) - 1
