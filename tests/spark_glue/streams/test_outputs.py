"""A streaming query gives what the local operator gives, batch by batch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gpu_windows as gw
from gpu_windows import errors
from tests.datastream import custom_parts as custom
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import (
    ASSIGNERS,
    WATERMARKS,
    batches,
    check_written,
    expected,
    files,
    outputs_of,
    results_in,
    run_to_the_end,
    streamed,
    windowed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NIGHTLY = ["fine", "cumulative", "count window", "continuous"]


@pytest.mark.parametrize("name", quick(ASSIGNERS, "sliding", nightly=NIGHTLY))
def test_queries(spark: SparkSession, tmp_path: Path, name: str) -> None:
    tables = batches()
    files(tmp_path / "in", tables)
    outputs = outputs_of(name, streamed(spark, tmp_path / "in"))
    run_to_the_end(outputs, tmp_path)
    found = check_written(spark, tmp_path, outputs, tables)
    assert found == (set() if name == "count window" else {"late", "null_timestamp"})  # no time


def test_a_checkpoint_belongs_to_its_query(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 50))
    source, state = streamed(spark, tmp_path / "in"), str(tmp_path / "state")

    def start(
        assigner: gw.functions.WindowAssigner, shards: int, **aggregates: gw.typing.Aggregate
    ) -> None:
        outputs = (
            windowed(source, assigner).options(shards=shards).with_outputs().aggregate(**aggregates)
        )
        folder = str(tmp_path / "out")
        gw.write_stream(outputs, folder, state, trigger={"availableNow": True}).awaitTermination()

    start(ASSIGNERS["tumbling"], 2, n=gw.count())
    start(ASSIGNERS["tumbling"], 2, n=gw.count())
    changes: dict[str, tuple[Any, ...]] = {
        "function.of.n.aggregate.function was count, is sum": (
            ASSIGNERS["tumbling"],
            2,
            gw.sum("v"),
        ),
        "window was TumblingEventTimeWindows.*, is SlidingEventTimeWindows": (
            ASSIGNERS["sliding"],
            2,
            gw.count(),
        ),
    }
    for text, (assigner, shards, aggregate) in changes.items():
        with pytest.raises(errors.StateMismatchError, match=text):
            start(assigner, shards, n=aggregate)


def test_what_streams_refuse(spark: SparkSession, tmp_path: Path) -> None:
    source = streamed(spark, tmp_path)
    tumbling = windowed(source, ASSIGNERS["tumbling"])
    with pytest.raises(errors.UnsupportedQueryError, match="partials='spark'"):
        tumbling.options(partials="spark").with_outputs().aggregate(n=gw.count())
    with pytest.raises(errors.QueryError, match="must be in two folders, got out"):
        gw.write_stream(tumbling.with_outputs().aggregate(n=gw.count()), "out/", "out")
    still = gw.stream(source).event_time("ts", gw.WatermarkStrategy.no_watermarks())
    with pytest.raises(errors.UnsupportedQueryError, match="without watermarks"):
        still.key_by("k").window(ASSIGNERS["tumbling"]).with_outputs().aggregate(n=gw.count())
    with pytest.raises(errors.QueryError, match="rows need a time"):
        gw.stream(source).processing_time().key_by("k").window(
            ASSIGNERS["tumbling"]
        ).with_outputs().aggregate(n=gw.count())


def test_outputs_of_a_stream_are_written_and_not_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    outputs = (
        windowed(streamed(spark, tmp_path), ASSIGNERS["tumbling"])
        .with_outputs()
        .aggregate(n=gw.count())
    )
    for name in ("result", "late", "rejected"):
        rule = rf"with_outputs.*write_stream.*stream_results.*, got {name} of a stream"
        with pytest.raises(errors.UnsupportedQueryError, match=rule):
            getattr(outputs, name)()
    with pytest.raises(errors.UnsupportedQueryError, match=r"watch\(query\).*MetricsListener, got"):
        outputs.metrics()


#: Settings of Spark that no query depends on: a session has some of them at a start, or others.
ONCE = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.multipleWatermarkPolicy": "max",
}
AGAIN = {
    "spark.sql.shuffle.partitions": "7",
    "spark.sql.streaming.stateStore.providerClass": "none",
}


@pytest.mark.thorough
def test_settings_of_a_session_may_change(spark: SparkSession, tmp_path: Path) -> None:
    """A shard is found again, though other shards are in its partition."""
    tables = batches(4, 200)
    for settings, count in ((ONCE, 2), (AGAIN, 4)):
        session = spark.newSession()
        for name, value in settings.items():
            session.conf.set(name, value)
        files(tmp_path / "in", tables[:count])
        outputs = outputs_of("sliding", streamed(session, tmp_path / "in"))
        run_to_the_end(outputs, tmp_path)
    results, _ = expected(outputs, tables)
    assert results_in(spark, tmp_path) == rows_of(results)


@pytest.mark.parametrize("stamped", ["ingestion_time", "processing_time"])
def test_a_table_has_no_time_of_arrival(stamped: str) -> None:
    with pytest.raises(errors.UnsupportedQueryError, match="time of arrival"):
        getattr(gw.stream(batches(1, 5)[0]), stamped)()


@pytest.mark.parametrize("name", quick(["trigger", "evictor", "merging assigner", "aggregate"]))
def test_user_code(spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = custom.table()
    tables = [table.slice(begin, 7) for begin in range(0, len(table), 7)]
    files(tmp_path / "in", tables)
    schema = spark.createDataFrame(table).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    outputs = custom.outputs(stream.parquet(str(tmp_path / "in")), name)
    assert "row at a time" in outputs.explain()
    run_to_the_end(outputs, tmp_path)
    results, _ = expected(outputs, tables, bound_ms=0)
    assert results_in(spark, tmp_path) == rows_of(results)
    assert len(results) > 2


#: Windows and triggers that end in processing time, without any new row.
IN_PROCESSING_TIME: dict[str, Any] = {
    "windows": lambda s: (
        s.processing_time().key_by("k").window(gw.TumblingProcessingTimeWindows.of("2 seconds"))
    ),
    "sessions": lambda s: (
        s.processing_time()
        .key_by("k")
        .window(gw.ProcessingTimeSessionWindows.with_gap("2 seconds"))
    ),
    "ingestion": lambda s: (
        s.ingestion_time().key_by("k").window(gw.TumblingEventTimeWindows.of("2 seconds"))
    ),
    "both times": lambda s: (
        s.event_time("ts", WATERMARKS)
        .key_by("k")
        .window(gw.TumblingEventTimeWindows.of("1 minute"))
        .trigger(
            gw.PurgingTrigger.of(
                gw.ProcessingTimeoutTrigger.of(gw.EventTimeTrigger.create(), "2 seconds")
            )
        )
    ),
}


@pytest.mark.parametrize(
    "name", quick(IN_PROCESSING_TIME, nightly=["sessions", "windows", "ingestion"])
)
def test_processing_time(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Every row is in one window, which fires without another row."""
    files(tmp_path / "in", batches(2, 100))
    source = streamed(spark, tmp_path / "in")
    made = (
        IN_PROCESSING_TIME[name](gw.stream(source))
        .options(device="cpu", shards=3)
        .with_outputs()
        .aggregate(n=gw.count())
    )
    query = gw.write_stream(made, tmp_path / "out", tmp_path / "state")
    try:
        deadline = time.monotonic() + 120
        while (found := rows_in(spark, tmp_path)) < 200:
            assert time.monotonic() < deadline, f"{found} rows written, {query.exception()}"
            time.sleep(0.3)
    finally:
        query.stop()
    assert rows_in(spark, tmp_path) == 200
    given_back = gw.read_output(spark, tmp_path / "out", "late").count()
    assert (given_back > 0) is (name == "both times")


def rows_in(spark: SparkSession, folder: Path) -> int:
    """Count the rows in windows, and those that were given back."""
    out = folder / "out"
    total = gw.read_output(spark, out).groupBy().sum("n").first()
    assert total is not None
    return (total[0] or 0) + gw.read_output(spark, out, "late").count()


@pytest.mark.thorough
def test_micro_batches_without_rows_end(spark: SparkSession, tmp_path: Path) -> None:
    full, empty = batches(1, 50)[0], batches(1, 50)[0].slice(0, 0)
    files(tmp_path / "in", [empty, empty, full, empty, empty])
    outputs = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    state, out = str(tmp_path / "state"), str(tmp_path / "out")
    query = gw.write_stream(outputs, out, state, trigger={"availableNow": True})
    assert query.awaitTermination(240)
    assert results_in(spark, tmp_path)
