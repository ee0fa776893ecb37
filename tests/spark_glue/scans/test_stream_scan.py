"""Streams of files that tasks read: what DataFrames give, across restarts and changes of reader."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

import gpu_windows as gw
from gpu_windows.errors import QueryError
from gpu_windows.monitoring.progress import BatchMetrics
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import (
    BEGIN,
    SECOND,
    WATERMARKS,
    batches,
    check_written,
    expected,
    files,
    metrics_in,
    outputs_of,
    results_in,
    run_to_the_end,
    streamed,
)
from tests.spark_glue.streams.test_stages import in_time, two_stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

IN_TASKS, BY_SPARK = "files are read in the tasks, by Arrow", "files are read by Spark"
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")


def scanned(spark: SparkSession, folder: Path, most: int = 1) -> gw.typing.Scan:
    return gw.scan_stream(folder, spark, max_files_per_trigger=most)


def counted(source: Any, watermarks: gw.WatermarkStrategy = WATERMARKS) -> gw.typing.Outputs:
    keyed = gw.stream(source).event_time("ts", watermarks).key_by("k")
    return (
        keyed.window(MINUTE).options(device="cpu", shards=2).with_outputs().aggregate(n=gw.count())
    )


def rows_in(folder: Path) -> list[int]:
    return [each.counters.rows for each in metrics_in(folder) if each.counters.rows]


@pytest.mark.parametrize("name", quick(["sliding", "sessions", "lateness"]))
def test_a_scan_gives_what_a_dataframe_gives(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    tables = batches(4, 300)
    files(tmp_path / "in", tables)
    outputs = outputs_of(name, scanned(spark, tmp_path / "in"))
    assert IN_TASKS in outputs.explain()
    run_to_the_end(outputs, tmp_path)
    check_written(spark, tmp_path, outputs, tables)
    assert rows_in(tmp_path) == [len(table) for table in tables]


@pytest.mark.parametrize("first", quick(["scan", "frame"]))
def test_a_query_goes_on_with_either_reader(
    spark: SparkSession, tmp_path: Path, first: str
) -> None:
    """Each start takes two files, by the other reader."""
    tables = batches(6, 100)
    for count in (2, 4, 6):
        files(tmp_path / "in", tables[:count])
        is_scan = (first == "scan") == (count != 4)
        source: Any = scanned(spark, tmp_path / "in") if is_scan else None
        outputs = outputs_of("sliding", source or streamed(spark, tmp_path / "in"))
        assert (IN_TASKS in outputs.explain()) == is_scan
        run_to_the_end(outputs, tmp_path)
    check_written(spark, tmp_path, outputs, tables)
    assert rows_in(tmp_path) == [100] * 6


@pytest.mark.thorough
def test_partitions_and_names_are_those_of_a_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    names = ["part=1/name=a%2Fb/x y.parquet", "part=2/name=ü/50%25 +#.parquet"]
    names += ["part=__HIVE_DEFAULT_PARTITION__/name=+ /c%20d.parquet", "_h.parquet", ".h/x"]
    for number, (name, table) in enumerate(zip(names, batches(5, 50), strict=True)):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
        os.utime(path, (BEGIN // SECOND + number,) * 2)
    schema = spark.read.parquet(str(tmp_path / "in")).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2)
    framed = reader.parquet(str(tmp_path / "in"))
    found: list[list[Any]] = []
    for source in (scanned(spark, tmp_path / "in", 2), framed):
        folder = tmp_path / str(len(found))
        keyed = gw.stream(source).event_time("ts", WATERMARKS).key_by("part", "name")
        outputs = (
            keyed.window(MINUTE)
            .options(shards=2)
            .with_outputs()
            .aggregate(n=gw.count(), v=gw.sum("seq"))
        )
        assert (IN_TASKS in outputs.explain()) == isinstance(source, gw.typing.Scan)
        run_to_the_end(outputs, folder)
        found.append(results_in(spark, folder))
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.thorough
def test_conditions_and_columns(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches(3, 200)
    files(tmp_path / "in", tables)

    def made(source: Any) -> gw.typing.Outputs:
        timed = gw.stream(source).with_columns(w="seq * 2").event_time("ts", WATERMARKS)
        keyed = timed.where("w > 300 AND text <> 'x'").key_by("k")
        return (
            keyed.window(MINUTE)
            .options(shards=2)
            .with_outputs()
            .aggregate(n=gw.count(), most=gw.max("w"))
        )

    found = []
    for number, source in enumerate(
        (scanned(spark, tmp_path / "in"), streamed(spark, tmp_path / "in"))
    ):
        run_to_the_end(made(source), tmp_path / str(number))
        found.append(results_in(spark, tmp_path / str(number)))
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.thorough
def test_stages_begin_with_a_scan(spark: SparkSession, tmp_path: Path) -> None:
    tables = in_time()
    files(tmp_path / "in", tables)
    outputs = two_stages(scanned(spark, tmp_path / "in"))
    assert IN_TASKS in outputs.explain()
    run_to_the_end(outputs, tmp_path)
    framed = tmp_path / "framed"
    run_to_the_end(two_stages(streamed(spark, tmp_path / "in")), framed)
    assert results_in(spark, tmp_path) == results_in(spark, framed)
    assert results_in(spark, framed)


def _joined(left: Any, right: Any) -> gw.typing.Outputs:
    sides = [gw.stream(each).event_time("ts", WATERMARKS).key_by("k") for each in (left, right)]
    return (
        sides[0]
        .join(sides[1])
        .window(MINUTE)
        .options(shards=2)
        .with_outputs()
        .select(["seq"], ["seq"])
    )


def _united(left: Any, right: Any) -> gw.typing.Outputs:
    timed = [gw.stream(each).event_time("ts", WATERMARKS) for each in (left, right)]
    keyed = timed[0].union(timed[1]).key_by("k")
    return keyed.window(MINUTE).options(shards=2).with_outputs().aggregate(n=gw.count())


@pytest.mark.thorough
@pytest.mark.parametrize("make", quick([_joined, _united], _united))
@pytest.mark.parametrize("other", quick(["scan", "frame"], "scan"))
def test_several_streams_are_read_by_spark(
    spark: SparkSession, tmp_path: Path, make: Any, other: str
) -> None:
    for name in ("left", "right"):
        files(tmp_path / name, batches(2, 60))
    left = scanned(spark, tmp_path / "left")
    right: Any = streamed(spark, tmp_path / "right")
    outputs = make(left, scanned(spark, tmp_path / "right") if other == "scan" else right)
    assert BY_SPARK in outputs.explain()
    run_to_the_end(outputs, tmp_path)
    framed = tmp_path / "framed"
    run_to_the_end(make(streamed(spark, tmp_path / "left"), right), framed)
    assert results_in(spark, tmp_path) == results_in(spark, framed)
    assert results_in(spark, framed)


@pytest.mark.parametrize("kind", quick(["guard", "carried", "ingestion"], "guard"))
def test_what_needs_watermarks_in_rows_is_read_by_spark(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    files(tmp_path / "in", batches(2, 60))
    source = gw.stream(scanned(spark, tmp_path / "in"))
    if kind == "guard":
        timed = source.event_time("ts", WATERMARKS.guard("1 hour"))
    elif kind == "carried":
        timed = source.event_time("ts", gw.WatermarkStrategy.for_punctuated("ts"))
    else:
        timed = source.ingestion_time()
    outputs = (
        timed.key_by("k").window(MINUTE).options(shards=2).with_outputs().aggregate(n=gw.count())
    )
    assert BY_SPARK in outputs.explain()
    run_to_the_end(outputs, tmp_path)
    assert sum(rows_in(tmp_path)) == 120


@pytest.mark.thorough
def test_files_that_change_type_stop_a_query_and_are_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One that has lost a column gives nulls, as by Spark."""
    tables = batches(3, 40)
    tables[1] = tables[1].drop_columns(["v"])
    files(tmp_path / "in", tables[:1])
    outputs = outputs_of("tumbling", scanned(spark, tmp_path / "in"))
    run_to_the_end(outputs, tmp_path)
    files(tmp_path / "in", tables[:2])
    run_to_the_end(outputs, tmp_path)
    assert rows_in(tmp_path) == [40, 40]
    texts = tables[2].set_column(2, "v", tables[2]["v"].cast(pa.string()))
    files(tmp_path / "in", [*tables[:2], texts])
    with pytest.raises(Exception, match=r"declares.*2\.parquet.*column 'v'"):
        run_to_the_end(outputs, tmp_path)
    files(tmp_path / "in", tables)
    run_to_the_end(outputs, tmp_path)  # the same micro-batch again, of a file that was mended
    whole = [tables[0], tables[1].append_column("v", pa.nulls(40, pa.float64())), tables[2]]
    names = tables[0].column_names
    results, _ = expected(outputs, [table.select(names) for table in whole])
    assert results_in(spark, tmp_path) == rows_of(results)


def test_a_file_that_is_gone_or_of_another_partition_stops_a_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = "ts TIMESTAMP, k BIGINT, part INT"
    (tmp_path / "in").mkdir()
    outputs = counted(gw.scan_stream(tmp_path / "in", spark, schema=schema))
    path = tmp_path / "in" / "part=abc" / "x.parquet"
    path.parent.mkdir()
    pq.write_table(batches(1, 20)[0].select(["ts", "k"]), path)
    with pytest.raises(Exception, match=r"(?i)partition|cast"):
        run_to_the_end(outputs, tmp_path)


def test_a_death_between_reading_and_the_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A micro-batch whose tasks have read, and nothing noted it, is read again: each row once."""
    tables = batches(4, 100)
    files(tmp_path / "in", tables)
    outputs = outputs_of("sliding", scanned(spark, tmp_path / "in"))
    from gpu_windows.spark_glue.streams.stage_job import StageJob

    finish, calls = StageJob._finish, []

    def dying(self: Any, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("dies here")
        return finish(self, *arguments)

    monkeypatch.setattr(StageJob, "_finish", dying)
    with pytest.raises(Exception, match="dies here"):
        run_to_the_end(outputs, tmp_path)
    monkeypatch.undo()
    run_to_the_end(outputs, tmp_path)
    check_written(spark, tmp_path, outputs, tables)
    assert rows_in(tmp_path) == [100] * 4


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "1"])
def test_numbers_of_files_are_checked(spark: SparkSession, tmp_path: Path, most: Any) -> None:
    with pytest.raises(QueryError, match="number of files"):
        gw.scan_stream(tmp_path, spark, max_files_per_trigger=most)


@pytest.mark.thorough
def test_files_that_a_sink_of_sparks_has_written(spark: SparkSession, tmp_path: Path) -> None:
    """Its log says which files count."""
    files(tmp_path / "first", batches(2, 50))
    writer = streamed(spark, tmp_path / "first").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    writer.start(str(tmp_path / "in")).awaitTermination()
    pq.write_table(batches(1, 70)[0], tmp_path / "in" / "not in the log.parquet")
    outputs = counted(scanned(spark, tmp_path / "in", 10))
    run_to_the_end(outputs, tmp_path)
    assert sum(rows_in(tmp_path)) == 100
    whole = counted(gw.scan(tmp_path / "in", spark))
    assert whole.metrics().collect()[0]["rows"] == 100


@pytest.mark.thorough
def test_metrics_tell_rows(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(3, 30))
    run_to_the_end(counted(scanned(spark, tmp_path / "in", 2)), tmp_path)
    every: list[BatchMetrics] = metrics_in(tmp_path)
    assert [each.counters.rows for each in every if each.counters.rows] == [60, 30]
