"""The same query through Spark Connect: no sparkContext, no JVM handle."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pytest
from rich.console import Console

import gpu_windows as gw
from gpu_windows.errors import UnsupportedQueryError
from tests.planning.queries import counters_of, rows_of
from tests.spark_glue.stream_runs import files, run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.connect

START = datetime(2024, 1, 1, tzinfo=UTC)


class Running(gw.functions.KeyedProcessFunction):
    """A sum that grows, and the values 12 aside."""

    output = pa.schema([("total", pa.float64())])
    state: ClassVar = {"total": gw.functions.ValueStateDescriptor(pa.float64())}
    side_outputs: ClassVar = {"twelve": pa.schema([("total", pa.float64())])}

    def process_element(self, row: Any, context: Any) -> list[dict[str, float]]:
        total = context.state("total").value(0.0) + row["value"]
        context.state("total").update(total)
        if row["value"] == 12:
            context.output("twelve", {"total": total})
        return [{"total": total}]


@pytest.fixture(scope="module")
def remote() -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote("local[2]").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.shuffle.partitions", "4")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table() -> pa.Table:
    times = [None if i % 17 == 0 else START + timedelta(seconds=7 * i) for i in range(500)]
    return pa.table(
        {
            "key": pa.array([f"k{i % 5}" for i in range(500)]),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "value": pa.array([float(i % 13) for i in range(500)]),
        }
    )


@pytest.mark.parametrize("partials", ["kernels", "spark"])
@pytest.mark.parametrize("slide", ["1 minute", "25 s"])
def test_sliding_windows(remote: SparkSession, table: pa.Table, slide: str, partials: str) -> None:
    aggregates = {"n": gw.count(), "total": gw.sum("value"), "top": gw.max("value")}

    def outputs(source: Any) -> gw.typing.Outputs:
        watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
        keyed = gw.stream(source).event_time("ts", watermarks).key_by("key")
        windowed = keyed.window(gw.SlidingEventTimeWindows.of("1 minute", slide))
        return windowed.options(partials=partials).with_outputs().aggregate(**aggregates)

    through_connect, local = outputs(remote.createDataFrame(table.to_pandas())), outputs(table)
    assert rows_of(through_connect.result().toArrow()) == rows_of(local.result())
    assert counters_of(through_connect.metrics()) == counters_of(local.metrics())
    assert through_connect.rejected().count() == 30


def test_results_that_tasks_write(remote: SparkSession, table: pa.Table, tmp_path: Path) -> None:
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    frame = remote.createDataFrame(table.to_pandas())
    keyed = gw.stream(frame).event_time("ts", watermarks).key_by("key")
    windowed = keyed.window(gw.SlidingEventTimeWindows.of("1 minute", "10 s"))
    outputs = windowed.with_outputs().aggregate(n=gw.count(), at=gw.max("ts"))
    written = outputs.write_parquet(tmp_path / "out")
    found = gw.read_output(remote, tmp_path / "out").toArrow()
    assert rows_of(found) == rows_of(outputs.result().toArrow())
    assert (written.written_by, written.rows) == ("tasks", len(found))


def test_expressions_and_collect(remote: SparkSession, table: pa.Table) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    frame = remote.createDataFrame(table.to_pandas())
    keyed = gw.stream(frame).event_time(F.col("ts"), watermarks)
    windowed = keyed.key_by(F.upper("key").alias("upper")).window(
        gw.TumblingEventTimeWindows.of("10 minutes")
    )
    result = windowed.arrival_order("ts").collect_lists("value").toArrow()
    lengths = [len(values) for values in result.column("value").to_pylist()]
    assert sum(lengths) == 470
    assert set(result.column("upper").to_pylist()) == {f"K{i}" for i in range(5)}


def test_a_process_function(remote: SparkSession, table: pa.Table) -> None:
    def outputs(source: Any) -> gw.typing.Outputs:
        watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
        keyed = gw.stream(source).event_time("ts", watermarks).key_by("key")
        function = Running()
        return keyed.with_outputs().process(
            function, ["value"], output=function.output, arrival_order=["ts"]
        )

    through_connect, local = outputs(remote.createDataFrame(table.to_pandas())), outputs(table)
    assert rows_of(through_connect.result().toArrow()) == rows_of(local.result())
    assert rows_of(through_connect.side("twelve").toArrow()) == rows_of(local.side("twelve"))


def test_what_stands_before_is_looked_at(remote: SparkSession, tmp_path: Path) -> None:
    """Spark's plan is read by its public text, of the server."""
    reader = remote.readStream.schema("key string, ts timestamp, value double")
    rows = reader.parquet(str(tmp_path)).withWatermark("ts", "5 seconds")
    watermarks = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")

    def made(rows: DataFrame) -> gw.typing.Outputs:
        keyed = gw.stream(rows).event_time("ts", watermarks).key_by("key")
        return (
            keyed.window(gw.TumblingEventTimeWindows.of("1 minute"))
            .with_outputs()
            .aggregate(n=gw.count())
        )

    assert "of withWatermark before gw.stream" in made(rows.dropDuplicates(["key"])).explain()
    for other, rule in ((rows.limit(3), "limit"), (rows.withWatermark("ts", "9 seconds"), "leave")):
        with pytest.raises(UnsupportedQueryError, match=rule):
            made(other)


def test_a_stream_tells_its_metrics(remote: SparkSession, table: pa.Table, tmp_path: Path) -> None:
    files(tmp_path / "in", [table.slice(250 * number, 250) for number in range(2)])
    schema = "key string, ts timestamp, value double"
    reader = remote.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    frame = reader.parquet(str(tmp_path / "in"))
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(frame).event_time("ts", watermarks).key_by("key")
    outputs = (
        keyed.window(gw.TumblingEventTimeWindows.of("10 minutes"))
        .with_outputs()
        .aggregate(n=gw.count())
    )
    listener = gw.MetricsListener()
    remote.streams.addListener(listener)
    out, state = str(tmp_path / "out"), str(tmp_path / "state")
    query = gw.write_stream(outputs, out, state, trigger={"availableNow": True})
    watched = gw.watch(query, console=Console(file=io.StringIO()))
    end = time.monotonic() + 60
    while (known := listener.queries.get(str(query.id))) is None or known.is_active:
        assert time.monotonic() < end
        time.sleep(0.1)
    remote.streams.removeListener(listener)
    assert known == watched
    assert (watched.counters.rows, watched.counters.null_timestamp) == (500, 30)
    assert watched.counters.locally_aggregated == 470 - watched.counters.late > 0
    assert watched.counters.fired == gw.read_output(remote, out).count() > 20
    rows = gw.read_output_stream(remote, out).writeStream.format("parquet")
    rows = rows.option("checkpointLocation", str(tmp_path / "reader")).trigger(availableNow=True)
    rows.start(str(tmp_path / "followed")).awaitTermination()
    followed = remote.read.parquet(str(tmp_path / "followed"))
    assert rows_of(followed.toArrow()) == rows_of(gw.read_output(remote, out).toArrow())


def test_a_sink_that_raised_is_given_the_same_again(
    remote: SparkSession, table: pa.Table, tmp_path: Path
) -> None:
    """It runs in a process of the server, to which the query goes pickled."""
    files(tmp_path / "in", [table.slice(250 * number, 250) for number in range(2)])
    schema = "key string, ts timestamp, value double"
    reader = remote.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(reader.parquet(str(tmp_path / "in"))).event_time("ts", watermarks)
    windows = keyed.key_by("key").window(gw.TumblingEventTimeWindows.of("10 minutes"))
    outputs, noted = windows.with_outputs().aggregate(n=gw.count()), str(tmp_path / "noted")

    def sink(results: Any, late: Any, number: int) -> None:
        del late
        rows = sorted(map(repr, results.collect()))
        with Path(noted).open("a") as file:
            file.write(json.dumps([number, rows]) + "\n")
        if len(Path(noted).read_text().splitlines()) == 2:
            raise KeyError("dies here")

    def run() -> None:
        state = tmp_path / "state"
        gw.write_stream(outputs, sink, state, trigger={"availableNow": True}).awaitTermination()

    with pytest.raises(Exception, match="dies here"):
        run()
    run()
    found = [json.loads(line) for line in Path(noted).read_text().splitlines()]
    assert [number for number, _ in found] == [0, 1, 1]
    assert found[1] == found[2]
    assert sum(len(rows) for _, rows in found[:2]) > 20


def test_windows_of_the_clock_end_without_new_rows(
    remote: SparkSession, table: pa.Table, tmp_path: Path
) -> None:
    files(tmp_path / "in", [table])
    rows = remote.readStream.schema("key string, ts timestamp, value double")
    keyed = gw.stream(rows.parquet(str(tmp_path / "in"))).processing_time().key_by("key")
    windows = keyed.window(gw.TumblingProcessingTimeWindows.of("1 second"))
    query = gw.write_stream(
        windows.with_outputs().aggregate(n=gw.count()), tmp_path / "out", tmp_path / "state"
    )
    found: list[Any] = []
    while not found and query.isActive:
        found = gw.read_output(remote, tmp_path / "out").collect()
    query.stop()
    assert query.exception() is None
    assert sum(row.n for row in found) == 500


def test_stages(remote: SparkSession, table: pa.Table, tmp_path: Path) -> None:
    """Rows are in order, so a stream gives what a table does, but for what is not complete."""
    files(tmp_path / "in", [table.slice(250 * number, 250) for number in range(2)])
    reader = remote.readStream.schema("key string, ts timestamp, value double")
    frame = reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    run_to_the_end(_stages(frame), tmp_path)
    found = gw.read_output(remote, tmp_path / "out").toArrow()
    wanted = _stages(table).result()
    last = max(filter(None, table["ts"].to_pylist()))
    complete = [row for row in wanted.to_pylist() if row["window_end"] <= last]
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, complete))
    assert len(complete) == 5
    late = gw.read_output(remote, tmp_path / "out", "stages/minutes/late")
    assert late.count() == table["ts"].null_count


def _stages(rows: Any) -> gw.typing.Outputs:
    """Windows of all keys over windows of each."""
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(rows).event_time("ts", watermarks).key_by("key")
    minutes = (
        keyed.window(gw.TumblingEventTimeWindows.of("1 minute"))
        .with_outputs()
        .aggregate(n=gw.count())
    )
    again = gw.stream_results(minutes, "minutes")
    windows = again.window_all(gw.TumblingEventTimeWindows.of("10 minutes"))
    return windows.with_outputs().aggregate(windows=gw.count(), rows=gw.sum("n"))
