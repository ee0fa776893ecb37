"""Streams whose event times have no zone: the same ticks as those of instants, and their type."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

import gpu_windows as gw
from gpu_windows.errors import StateMismatchError
from gpu_windows.spark_glue.files.kafka_records import as_json
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
    times_of,
)
from tests.lanes import quick
from tests.spark_glue.stream_runs import files, run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Micro-batches; times are in no order, so that rows come late. A row is of the year 1, one has no
#: time; the year 9999 would end all windows.
_FIRST, _ROWS = clock_rows(120), clock_rows(360, odd=False)
PARTS = [_FIRST.filter(pa.compute.field("i") != 7), _ROWS.slice(120, 120), _ROWS.slice(240)]
_HOUR = 3_600_000_000
OUTPUTS = ("result", "late")


def stream_of(spark: SparkSession, folder: Path, time: str) -> Any:
    reader = spark.readStream.schema(f"k STRING, ts {time}, v BIGINT, i BIGINT")
    return reader.option("maxFilesPerTrigger", 1).parquet(str(folder))


def start(spark: SparkSession, root: Path, name: str, count: int, kind: str) -> None:
    """Run a query over the first ``count`` micro-batches of a kind of source."""
    parts = PARTS if kind != "TIMESTAMP" else [as_instants(part) for part in PARTS]
    root.mkdir(exist_ok=True)
    files(root / "in", parts[:count])
    if kind == "scan":
        source: Any = gw.scan_stream(root / "in", spark, max_files_per_trigger=1)
    else:
        reader = spark.readStream.schema(f"k STRING, ts {kind}, v BIGINT, i BIGINT")
        source = reader.option("maxFilesPerTrigger", 1).parquet(str(root / "in"))
    run_to_the_end(QUERIES[name](source), root)


def written(spark: SparkSession, root: Path) -> list[pa.Table]:
    return [gw.read_output(spark, root / "out", output).toArrow() for output in OUTPUTS]


def check_like_instants(spark: SparkSession, root: Path, name: str, found: list[pa.Table]) -> None:
    """Compare results and late rows with those of instants, without a restart."""
    start(spark, root, name, 3, "TIMESTAMP")
    for ours, theirs in zip(found, written(spark, root), strict=True):
        assert rows_in_ticks(ours) == rows_in_ticks(theirs)
        assert (times_of(ours), times_of(theirs)) in (({NTZ}, {UTC}), (set(), set()))
    assert len(found[0])


#: Kinds of queries whose times go the ways of others.
NIGHTLY = [
    *("sliding", "every row", "by the time", "trigger", "evictor", "continuous", "with windows"),
    *("window join", "co-group", "window function", "stage", "temporal join", "pattern"),
    *("union", "process", "sessions", "top", "over"),
]


@pytest.mark.parametrize("name", quick(QUERIES, nightly=NIGHTLY))
def test_a_stream(name: str, spark: SparkSession, time_zone: Any, tmp_path: Path) -> None:
    root = tmp_path / "ntz"
    with time_zone(ZONE):
        start(spark, root, name, 2, "TIMESTAMP_NTZ")
        start(spark, root, name, 3, "TIMESTAMP_NTZ")
        found = written(spark, root)
    check_like_instants(spark, tmp_path / "utc", name, found)
    if name == "tumbling":
        reasons = set(found[1]["rejection_reason"].to_pylist())
        assert reasons == {"late", "null_timestamp"}


@pytest.mark.parametrize("name", quick(["tumbling", "stage"], nightly=["tumbling"]))
def test_a_scan(name: str, spark: SparkSession, time_zone: Any, tmp_path: Path) -> None:
    with time_zone(ZONE):
        start(spark, tmp_path / "ntz", name, 3, "scan")
        found = written(spark, tmp_path / "ntz")
    check_like_instants(spark, tmp_path / "utc", name, found)


def test_watermarks_in_a_column(spark: SparkSession, time_zone: Any, tmp_path: Path) -> None:
    """A row is late behind the watermark that an earlier micro-batch carried."""
    begin = datetime(2024, 3, 31, 2, 30)
    minutes = [(0, None), (70, 60)], [(20, None), (80, 120)], [(100, 200)]
    tables = [
        pa.table(
            {
                "k": ["a"] * len(part),
                "ts": pa.array([begin + timedelta(minutes=at) for at, _ in part], NTZ),
                "w": pa.array(
                    [None if at is None else begin + timedelta(minutes=at) for _, at in part], NTZ
                ),
            }
        )
        for part in minutes
    ]
    files(tmp_path / "in", tables)
    reader = spark.readStream.schema("k STRING, ts TIMESTAMP_NTZ, w TIMESTAMP_NTZ")
    frame = reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    keyed = gw.stream(frame).event_time("ts", gw.WatermarkStrategy.for_punctuated("w")).key_by("k")
    outputs = keyed.window(HOUR).with_outputs().aggregate(n=gw.count())
    with time_zone(ZONE):
        run_to_the_end(outputs, tmp_path)
        found, late = written(spark, tmp_path)
    rows = {row["window_start"]: row["n"] for row in found.to_pylist()}
    assert rows == {
        datetime(2024, 3, 31, 2): 1,
        datetime(2024, 3, 31, 3): 2,
        datetime(2024, 3, 31, 4): 1,
    }
    assert late["ts"].to_pylist() == [begin + timedelta(minutes=20)]


def test_another_type_is_another_query(spark: SparkSession, tmp_path: Path) -> None:
    start(spark, tmp_path, "tumbling", 1, "TIMESTAMP")
    both = r"columns\.ts was timestamp\[us, tz=UTC\], is timestamp\[us\]"
    with pytest.raises(StateMismatchError, match=both):
        start(spark, tmp_path, "tumbling", 2, "TIMESTAMP_NTZ")


@pytest.mark.thorough
def test_results_that_are_read_back(spark: SparkSession, time_zone: Any, tmp_path: Path) -> None:
    """In a batch, and as a stream of its own: windows of windows."""
    with time_zone(ZONE):
        start(spark, tmp_path, "tumbling", 3, "TIMESTAMP_NTZ")
        out = tmp_path / "out"
        minutes = gw.read_output(spark, out)
        hours = gw.stream(minutes).window_time().key_by("k").window(HOUR)
        found = hours.aggregate(n=gw.sum("n")).toArrow()
        followed = gw.stream(gw.read_output_stream(spark, out)).window_time(WATERMARKS)
        later = followed.key_by("k").window(HOUR).with_outputs().aggregate(n=gw.sum("n"))
        run_to_the_end(later, tmp_path / "later")
        streamed = gw.read_output(spark, tmp_path / "later" / "out").toArrow()
    wanted: Counter[Any] = Counter()
    written_minutes = minutes.toArrow()
    ends = written_minutes["window_end"].cast(pa.int64()).to_pylist()
    for row, end in zip(written_minutes.select(["k", "n"]).to_pylist(), ends, strict=True):
        wanted[row["k"], (end - 1) // _HOUR * _HOUR] += row["n"]
    starts = found["window_start"].cast(pa.int64()).to_pylist()
    rows = dict(
        zip(zip(found["k"].to_pylist(), starts, strict=True), found["n"].to_pylist(), strict=True)
    )
    assert rows == dict(wanted)
    assert times_of(found) == times_of(streamed) == {NTZ}
    complete = {*rows_in_ticks(streamed)}
    assert complete < {*rows_in_ticks(found)}
    assert len(complete) > 3


def test_what_sinks_get(spark: SparkSession, time_zone: Any, tmp_path: Path) -> None:
    """DataFrames and records of Kafka have the times that clocks show."""
    files(tmp_path / "in", PARTS[1:])
    reader = spark.readStream.schema("k STRING, ts TIMESTAMP_NTZ, v BIGINT, i BIGINT")
    outputs = QUERIES["tumbling"](reader.parquet(str(tmp_path / "in")))
    seen: list[str] = []
    records: list[str] = []

    def sink(results: Any, late: Any, number: int) -> None:
        del number
        seen.extend((results.schema["window_start"].dataType.simpleString(),
                     late.schema["ts"].dataType.simpleString()))  # fmt: skip
        row = F.struct("k", "window_start")
        records.extend(each[0] for each in results.select(as_json(row)).collect())

    with time_zone(ZONE):
        trigger = {"availableNow": True}
        gw.write_stream(outputs, sink, tmp_path / "state", trigger=trigger).awaitTermination()
    assert {*seen} == {"timestamp_ntz"}
    starts = {json.loads(each)["window_start"] for each in records}
    in_gap = {each for each in starts if each.startswith("2024-03-31T02:")}
    assert len(in_gap) > 3
    assert all(datetime.fromisoformat(each).tzinfo is None for each in starts)
