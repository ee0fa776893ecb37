"""However a stream is cut into micro-batches and shards, it gives what batch gives."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.planning.own_columns import REASON
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("datasketches", reason="no wheels for Python 3.14; of the extra `sketches`")

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
ROWS, KEYS = 3_000, 25
ASSIGNERS = {
    "tumbling": gw.TumblingEventTimeWindows.of("20 seconds"),
    "sliding": gw.SlidingEventTimeWindows.of("1 minute", "7 seconds"),
    "cumulative": gw.CumulativeEventTimeWindows.of("1 minute", "20 seconds"),
    "sessions": gw.EventTimeSessionWindows.with_gap("5 seconds"),
    "evictor": gw.SlidingEventTimeWindows.of("40 seconds", "20 seconds"),
    "count window": gw.GlobalWindows.create(),
}
#: Joins of the rows with even numbers and those with odd ones.
JOINS = ("interval join", "window join")
QUERIES = (*ASSIGNERS, *JOINS)
AGGREGATES = {
    "n": gw.count(),
    "values": gw.count("v"),
    "total": gw.sum("v"),
    "least": gw.min("v"),
    "most": gw.max("v"),
    "mean": gw.mean("v"),
    "spread": gw.stddev("v"),
    "any": gw.bool_or("flag"),
    "distinct": gw.approx_count_distinct("v"),
}
#: Not for sessions: Flink leaves open in which order those that a row joins are put together.
ORDERED = {
    "first": gw.first("text"),
    "last": gw.last("text"),
    "at_most": gw.arg_max("text", "v"),
}


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Ten minutes of rows up to 5 s out of order, some without a time, then two an hour later."""
    rng = np.random.default_rng(7)
    arrival = np.sort(rng.integers(0, 600 * SECOND, ROWS))
    at = BEGIN + arrival - rng.integers(0, 5 * SECOND, ROWS)
    at[-2:] = BEGIN + 3_600 * SECOND
    keys = rng.integers(0, KEYS, ROWS)
    keys[-2:] = -1
    without_time, without_value = rng.random((2, ROWS)) < 0.02
    without_time[-2:] = False
    return pa.table(
        {
            "ts": pa.array(at, mask=without_time).cast(pa.timestamp("us", "UTC")),
            "k": keys,
            "v": pa.array(rng.integers(-200, 200, ROWS) / 4, mask=without_value),
            "flag": rng.random(ROWS) < 0.1,
            "text": rng.choice(["x", "y", "z", "w"], ROWS),
            "seq": np.arange(ROWS),
        }
    )


def keyed(source: Any) -> gw.typing.KeyedStream:
    watermarks = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    return gw.stream(source).event_time("ts", watermarks).key_by("k")


def outputs_of(source: Any, name: str, shards: int) -> gw.typing.Outputs:
    if name in JOINS:
        return joined(source, name, shards)
    windowed = keyed(source).window(ASSIGNERS[name]).arrival_order("seq")
    if name == "evictor":
        windowed = windowed.evictor(gw.CountEvictor.of(2))
    if name == "count window":
        windowed = windowed.trigger(gw.PurgingTrigger.of(gw.CountTrigger.of(3)))
    aggregates = AGGREGATES if name == "sessions" else {**AGGREGATES, **ORDERED}
    return windowed.options(device="cpu", shards=shards).with_outputs().aggregate(**aggregates)


def joined(source: Any, name: str, shards: int) -> gw.typing.Outputs:
    if isinstance(source, pa.Table):
        odd = pa.compute.bit_wise_and(source["seq"], 1)
        left, right = (keyed(source.filter(pa.compute.equal(odd, side))) for side in (0, 1))
    else:
        left, right = (keyed(source.where(f"seq % 2 = {side}")) for side in (0, 1))
    if name == "interval join":
        pairs = left.interval_join(right).between("-3 seconds", "4 seconds")
        return (
            pairs.options(device="cpu", shards=shards)
            .with_outputs()
            .select(["seq", "v"], ["seq"], how="full")
        )
    windows = left.join(right).window(ASSIGNERS["tumbling"]).options(device="cpu", shards=shards)
    return windows.with_outputs().select(["seq", "v"], ["seq"], how="left")


def cut(rows: pa.Table, count: int) -> list[pa.Table]:
    """Cut rows into micro-batches of very different sizes."""
    edges = (
        np.sort(np.random.default_rng(count).choice(len(rows) - 1, count - 1, replace=False)) + 1
    )
    begins, ends = [0, *edges.tolist()], [*edges.tolist(), len(rows)]
    return [rows.slice(begin, end - begin) for begin, end in zip(begins, ends, strict=True)]


def check(spark: SparkSession, folder: Path, rows: pa.Table, name: str, way: Any) -> None:
    batches, partitions = way
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", partitions)
    files(folder / "in", cut(rows, batches))
    schema = spark.createDataFrame(rows.slice(0, 1)).schema
    source = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    outputs = outputs_of(source.parquet(str(folder / "in")), name, partitions)
    out, state = str(folder / "out"), str(folder / "state")
    query = gw.write_stream(outputs, out, state, trigger={"availableNow": True})
    query.awaitTermination()
    written = gw.read_output(session, out, micro_batch="batch")
    assert written.select("batch").distinct().count() > min(batches, 5) // 2
    wanted = outputs_of(rows, name, 1)
    results = wanted.result().filter(pa.compute.field("k") >= 0)  # the last rows' wait for ever
    assert len(results) > 500
    found = written.drop("batch").where("k >= 0")
    assert rows_of(found.toArrow().select(results.column_names)) == rows_of(results)
    back, rejected = gw.read_output(session, out, "late").toArrow(), wanted.rejected()
    assert set(back[REASON].to_pylist()) == set(rejected[REASON].to_pylist()) <= {"null_timestamp"}
    assert numbers(back) == numbers(rejected)


def numbers(given_back: pa.Table) -> list[int]:
    """Return the numbers of rows, of whichever side they are."""
    columns = [given_back[name] for name in given_back.column_names if name.endswith("seq")]
    return sorted(pa.compute.coalesce(*columns).to_pylist())


#: What is tried in CI; the rest in the nightly run.
SOME = {"sliding": (1, 4), "sessions": (7, 2), "evictor": (7, 1), "interval join": (7, 3)}


@pytest.mark.parametrize("name", quick(SOME, nightly=["sliding", "evictor", "interval join"]))
def test_batching_does_not_matter(
    spark: SparkSession, tmp_path: Path, rows: pa.Table, name: str
) -> None:
    check(spark, tmp_path, rows, name, SOME[name])


@pytest.mark.slow
@pytest.mark.parametrize("way", [*product((1, 7, 50), (1, 3, 8))])
@pytest.mark.parametrize("name", QUERIES)
def test_batching_and_shards_do_not_matter(
    spark: SparkSession, tmp_path: Path, rows: pa.Table, name: str, way: tuple[int, int]
) -> None:
    check(spark, tmp_path, rows, name, way)
