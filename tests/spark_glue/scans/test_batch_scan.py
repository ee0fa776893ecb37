"""Batch queries over scans on Spark have the results of DataFrames, and say who reads the rows."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

import gpu_windows as gw
from gpu_windows.errors import ScanError
from tests.lanes import quick
from tests.planning.queries import counters_of, rows_of
from tests.spark_glue.scans.trial import try_on_spark
from tests.spark_glue.stream_runs import WATERMARKS, batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

IN_TASKS, BY_SPARK = "files are read in the tasks, by Arrow", "files are read by Spark"
MINUTE = gw.TumblingEventTimeWindows.of("1 minute")
FINE = gw.SlidingEventTimeWindows.of("1 minute", "15 seconds")


class Sums(gw.functions.KeyedProcessFunction):
    """Each value, doubled; those above 24 aside too."""

    output = pa.schema([("twice", pa.float64())])
    side_outputs = {"large": pa.schema([("v", pa.float64())])}  # noqa: RUF012

    def process_element(self, row: Any, context: Any) -> list[dict[str, float]]:
        if row["v"] > 24:
            context.output("large", {"v": row["v"]})
        return [{"twice": row["v"] * 2}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files of small row groups in partitions."""
    path = tmp_path_factory.mktemp("scan") / "a b%20c"
    for number, table in enumerate(batches(4, 300)):
        inner = path / f"part={number % 2}" / "name=x%2Fy"
        inner.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, inner / f"{number} +#.parquet", row_group_size=70)
    return path


def keyed(source: Any) -> gw.typing.KeyedStream:
    return gw.stream(source).event_time("ts", WATERMARKS).key_by("k")


def windows(source: Any) -> gw.typing.Outputs:
    return keyed(source).window(FINE).with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))


def filtered(source: Any) -> gw.typing.Outputs:
    made = gw.stream(source).with_columns(w="seq * 2", k="part")
    timed = made.event_time("ts", WATERMARKS).where("w > 700 AND k = 1").where("text <> 'x'")
    return (
        timed.key_by("k", "name")
        .window(FINE)
        .with_outputs()
        .aggregate(n=gw.count(), most=gw.max("w"))
    )


def joined(source: Any) -> gw.typing.Outputs:
    left = gw.stream(source).event_time("ts", WATERMARKS).where("v > 10").key_by("k")
    right = gw.stream(source).event_time("ts", WATERMARKS).where("v < 5").key_by("k")
    between = left.interval_join(right).between("-5 seconds", "5 seconds")
    return between.with_outputs().select(["seq", "v"], ["seq", "v"])


def co_grouped(source: Any) -> gw.typing.Outputs:
    right = gw.stream(source).event_time("ts", WATERMARKS).where("text = 'x'").key_by("k")
    both = keyed(source).join(right).window(MINUTE)
    return both.with_outputs().select(["seq"], ["seq"])


def united(source: Any) -> gw.typing.Outputs:
    few = gw.stream(source).event_time("ts", WATERMARKS).where("v > 20")
    timed = gw.stream(source).event_time("ts", WATERMARKS).union(few)
    return (
        timed.key_by("k").window(MINUTE).with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    )


QUERIES: dict[str, tuple[Callable[[Any], gw.typing.Outputs], str]] = {
    "windows": (windows, IN_TASKS),
    "sessions": (
        lambda source: (
            keyed(source)
            .window(gw.EventTimeSessionWindows.with_gap("4 seconds"))
            .with_outputs()
            .aggregate(n=gw.count(), total=gw.sum("v"))
        ),
        IN_TASKS,
    ),
    "all": (
        lambda source: (
            gw.stream(source)
            .event_time("ts", WATERMARKS)
            .window_all(MINUTE)
            .with_outputs()
            .aggregate(n=gw.count())
        ),
        IN_TASKS,
    ),
    "partitions alone": (
        lambda source: (
            gw.stream(source)
            .with_columns(at="TIMESTAMP '2024-01-01 00:00:00'")
            .event_time("at", WATERMARKS)
            .key_by("part")
            .window(MINUTE)
            .with_outputs()
            .aggregate(n=gw.count())
        ),
        IN_TASKS,
    ),
    "filtered": (filtered, IN_TASKS),
    "joined": (joined, IN_TASKS),
    "window join": (co_grouped, ""),
    "united": (united, IN_TASKS),
    "over": (
        lambda source: (
            keyed(source).over(gw.Range("9 s")).with_outputs().aggregate(["seq"], n=gw.count())
        ),
        "",
    ),
    "top": (
        lambda source: keyed(source).with_outputs().top(2, ["v", "seq"], columns=["seq", "v"]),
        "",
    ),
    "ordered": (
        lambda source: (
            keyed(source)
            .window(MINUTE)
            .arrival_order("seq")
            .with_outputs()
            .aggregate(f=gw.first("text"))
        ),
        IN_TASKS,
    ),
    "ordered evictor": (
        lambda source: (
            keyed(source)
            .window(MINUTE)
            .arrival_order("seq")
            .evictor(gw.CountEvictor.of(3))
            .with_outputs()
            .aggregate(n=gw.sum("v"))
        ),
        BY_SPARK,
    ),
    "process": (
        lambda source: keyed(source).with_outputs().process(Sums(), ["v"], output=Sums.output),
        "",
    ),
    "spark's partials": (
        lambda source: (
            keyed(source)
            .window(MINUTE)
            .options(partials="spark")
            .with_outputs()
            .aggregate(n=gw.count(), total=gw.sum("v"))
        ),
        BY_SPARK,
    ),
    "an expression of Spark's": (
        lambda source: (
            keyed(source).window(MINUTE).with_outputs().aggregate(n=gw.count(_abs_of_v()))
        ),
        BY_SPARK,
    ),
}


def _abs_of_v() -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return F.abs("v")


@pytest.mark.parametrize("name", quick(QUERIES, "filtered", "joined", "partitions alone"))
def test_a_scan_has_the_results_of_a_dataframe(
    spark: SparkSession, folder: Path, name: str
) -> None:
    make, reads = QUERIES[name]
    scanned, framed = make(gw.scan(folder, spark)), make(spark.read.parquet(str(folder)))
    assert reads in scanned.explain()
    assert "files are read" in scanned.explain()
    assert "files are read" not in framed.explain()
    found, expected = (outputs.result().toArrow() for outputs in (scanned, framed))
    assert len(expected) > 0
    assert rows_of(found) == rows_of(expected)
    for tag in scanned.plan.query.side_outputs:
        assert rows_of(scanned.side(tag).toArrow()) == rows_of(framed.side(tag).toArrow())
    counted = [counters_of(outputs.metrics()) for outputs in (scanned, framed)]
    assert counted[0] == counted[1]
    rejected = [rows_of(outputs.rejected().toArrow()) for outputs in (scanned, framed)]
    assert rejected[0] == rejected[1]


@pytest.mark.thorough
def test_the_local_runner_gives_the_same(spark: SparkSession, folder: Path) -> None:
    local, framed = filtered(gw.scan(folder)), filtered(spark.read.parquet(str(folder)))
    assert rows_of(local.result()) == rows_of(framed.result().toArrow())


@pytest.mark.parametrize("seed", quick(range(24), 3))
def test_drawn_folders_are_read_as_by_spark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    assert len(try_on_spark(seed, tmp_path / "in", spark)) < 20


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.files.ignoreCorruptFiles", "true"),
        ("spark.sql.files.ignoreMissingFiles", "TRUE"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
        ("spark.sql.parquet.int96RebaseModeInRead", "LEGACY"),
    ],
)
def test_settings_by_which_spark_reads_otherwise(
    spark: SparkSession, folder: Path, setting: str, value: str
) -> None:
    spark.conf.set(setting, value)
    try:
        text = windows(gw.scan(folder, spark)).explain()
    finally:
        spark.conf.unset(setting)
    assert f"{BY_SPARK}: files are read as Spark does by default, got {setting}" in text


def test_expressions_are_sparks_where_they_would_differ(
    spark: SparkSession, folder: Path, time_zone: Any
) -> None:
    def text(condition: str) -> str:
        made = gw.stream(gw.scan(folder, spark)).event_time("ts", WATERMARKS).where(condition)
        return made.key_by("k").window(MINUTE).with_outputs().aggregate(n=gw.count()).explain()

    assert IN_TASKS in text("v > 1")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert "spark.sql.ansi.enabled is false" in text("v > 1")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    with time_zone("Asia/Kathmandu"):
        assert IN_TASKS in text("v > 1")
        assert "timeZone is Asia/Kathmandu" in text("ts > '2024-01-01'")
        assert "timeZone is Asia/Kathmandu" in text("CAST(text AS TIMESTAMP) IS NULL")


def test_a_column_of_another_type_in_a_task_is_sparks(spark: SparkSession, folder: Path) -> None:
    """Whatever setting makes Spark's expressions other ones."""
    source: Any = gw.scan(folder, spark).source
    assert source.scan.check_columns(source.frame) is source.scan
    other = source.scan.check_columns(source.frame.selectExpr("* EXCEPT (v)", "INT(v) AS v"))
    assert (other.rows, other.reason) == (None, "column v is int32 to Spark, and double in a task")
    fewer = source.scan.check_columns(source.frame.drop("v"))
    assert (fewer.rows, fewer.reason) == (None, "column v is None to Spark, and double in a task")


def test_a_scan_with_a_dataframe_is_read_by_spark(spark: SparkSession, folder: Path) -> None:
    few = keyed(spark.read.parquet(str(folder)).where("v > 20"))
    outputs = (
        keyed(gw.scan(folder, spark))
        .join(few)
        .window(MINUTE)
        .with_outputs()
        .select(["seq"], ["seq"])
    )
    assert f"{BY_SPARK}: another input is a DataFrame" in outputs.explain()
    both = keyed(spark.read.parquet(str(folder))).join(few).window(MINUTE)
    expected = both.with_outputs().select(["seq"], ["seq"]).result().toArrow()
    assert rows_of(outputs.result().toArrow()) == rows_of(expected)


@pytest.mark.parametrize(
    "paths", [["part=1", "part=1"], ["part=1", "part=1/name=*"], ["{part=0,part=0}"]]
)
def test_paths_within_each_other_are_read_by_spark(
    spark: SparkSession, folder: Path, paths: list[str]
) -> None:
    every = [f"{folder}/{path}".rstrip("/") for path in paths]
    assert BY_SPARK in windows(gw.scan(every, spark)).explain()


@pytest.mark.thorough
def test_the_folder_of_a_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Spark alone would read files that the table no longer has."""
    pq.write_table(pa.table({"v": [1]}), tmp_path / "x.parquet")
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "00000000000000000000.json").touch()
    assert spark.read.parquet(str(tmp_path)).count() == 1
    for scan in (gw.scan, gw.scan_stream):
        with pytest.raises(ScanError, match=r"a folder of a table \(delta\)"):
            scan(tmp_path, spark)


def test_a_changed_file_is_an_error_in_a_task(spark: SparkSession, tmp_path: Path) -> None:
    for number, table in enumerate(batches(2, 20)):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    outputs = windows(gw.scan(tmp_path, spark))
    pq.write_table(batches(1, 30)[0], tmp_path / "1.parquet")
    with pytest.raises(Exception, match=r"a file has changed since it was listed.*1\.parquet"):
        outputs.result().toArrow()
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(Exception, match=r"a file of a scan is there.*1\.parquet"):
        outputs.result().toArrow()


def test_a_column_of_another_type_is_an_error_with_the_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = batches(1, 20)[0]
    pq.write_table(table, tmp_path / "0.parquet")
    texts = table.set_column(2, "v", table["v"].cast(pa.string()))
    pq.write_table(texts, tmp_path / "1.parquet")
    outputs = windows(gw.scan(tmp_path, spark))
    if BY_SPARK in outputs.explain():  # it was the first that was looked at
        assert "column 'v'" in outputs.explain()
        return
    with pytest.raises(Exception, match=r"the scan declares.*1\.parquet.*column 'v'"):
        outputs.result().toArrow()


def test_a_worker_that_dies_while_it_reads(spark: SparkSession, tmp_path: Path) -> None:
    """Another one reads the same splits: each row counts once."""
    table = batches(1, 2_000)[0]
    for number in range(4):
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=100)
    mark = tmp_path / "_died"
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", "4")
    try:
        scan: Any = gw.scan(tmp_path, spark)
        rows = scan.source.scan.rows
        from gpu_windows.spark_glue.tasks.scanning import assign_splits

        bins = assign_splits(spark, rows)
    finally:
        spark.conf.unset("spark.sql.leafNodeDefaultParallelism")
    schema = "k BIGINT"

    def read(tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for number in batch.column(0).to_pylist():
                for part, split in bins[number]:
                    for found in rows.parts[part].read(split, ["k"]):
                        yield found.select(["k"])
                        if not mark.exists():
                            mark.touch()
                            os.kill(os.getpid(), signal.SIGKILL)

    frame = spark.range(0, len(bins), 1, len(bins)).mapInArrow(read, schema)
    with pytest.raises(Exception, match="crashed"):  # local mode tries a task once
        frame.count()
    assert mark.exists()
    assert frame.count() == 8_000


def test_nothing_is_left_of_a_scan_of_empty_files(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(batches(1, 1)[0].slice(0, 0), tmp_path / "a.parquet")
    outputs = windows(gw.scan(tmp_path, spark))
    assert IN_TASKS in outputs.explain()
    assert outputs.result().count() == 0
    assert outputs.metrics().collect()[0]["rows"] == 0


def test_scan_errors_survive_pickling() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(ScanError("a rule", value="a file", column="v")))  # noqa: S301
    assert (error.rule, error.value, error.column) == ("a rule", "a file", "v")
