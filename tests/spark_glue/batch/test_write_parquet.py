"""Results of batch queries on Spark, written by the tasks: the files of one write, or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from benchmarks.session_settings import change_settings
from gpu_windows import errors
from tests.lanes import quick
from tests.spark_glue.write_job import RESULTS, outputs_of, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IN_ORDER = gw.WatermarkStrategy.for_monotonous_timestamps()
SECOND = 1_000_000
NO_MARKER = "/nonexistent/marker"


def windowed(source: Any, *keys: Any) -> gw.typing.WindowedStream:
    keyed = gw.stream(source).event_time("ts", IN_ORDER).key_by(*(keys or ("key",)))
    return keyed.window(gw.SlidingEventTimeWindows.of("20 s", "5 s"))


def sliding(source: Any) -> gw.typing.Outputs:
    return (
        windowed(source)
        .with_outputs()
        .aggregate(n=gw.count(), total=gw.sum("v"), last=gw.max("ts"))
    )


def assert_same(found: DataFrame, expected: DataFrame) -> None:
    assert found.schema.simpleString() == expected.schema.simpleString()
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(rows())


def test_tasks_write_what_spark_would(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(rows(), tmp_path / "rows.parquet")
    outputs = sliding(gw.scan(tmp_path / "rows.parquet", spark))
    written = outputs.write_parquet(tmp_path / "out")
    result = outputs.result()
    assert_same(gw.read_output(spark, tmp_path / "out"), result)
    result.write.parquet(str(tmp_path / "theirs"))
    theirs = spark.read.parquet(str(tmp_path / "theirs"))
    assert spark.read.parquet(*written.files).schema == theirs.schema
    assert (written.written_by, written.path) == ("tasks", str(tmp_path / "out"))
    assert written.rows == sum(pq.read_metadata(file).num_rows for file in written.files)
    assert written.bytes == sum(Path(file).stat().st_size for file in written.files)
    assert written.counters is not None
    assert (written.counters["rows"], written.counters["fired"]) == (len(rows()), written.rows)
    assert "write_parquet" not in outputs.explain()


@pytest.mark.thorough
def test_a_reader_has_the_write_before_or_the_new_one(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    path, outputs = tmp_path / "out", sliding(frame)
    outputs.write_parquet(path)
    before = gw.read_output(spark, path)
    rows_before = before.count()
    with pytest.raises(errors.OutputError, match="holds results"):
        outputs.write_parquet(path)
    other = outputs.select("key", twice="n * 2", where="n > 9")
    written = other.write_parquet(path, mode="overwrite", compression="zstd")
    assert written.written_by == "tasks"
    assert_same(gw.read_output(spark, path), other.result())
    assert before.count() == rows_before  # whose files stay until the next write
    with pytest.raises(errors.OutputError, match="read them by read_output"):
        gw.read_output_stream(spark, path)


class Failing(gw.functions.ProcessWindowFunction):
    """Raises at the last windows of its keys."""

    def process(
        self, key: Mapping[str, Any], context: gw.typing.ProcessContext, rows: pa.Table
    ) -> Iterator[dict[str, Any]]:
        assert isinstance(context.window, gw.typing.TimeWindow)
        if context.window.end > 40 * SECOND:
            raise ValueError("no more")
        yield {"n": len(rows)}


def test_a_job_that_fails_leaves_the_write_before(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    failing = (
        windowed(frame)
        .with_outputs()
        .process(Failing(), ("v",), output=pa.schema([("n", pa.int64())]))
    )
    with pytest.raises(Exception, match="no more"):
        failing.write_parquet(path)
    assert list(path.rglob("*.parquet")) == []
    with pytest.raises(errors.OutputError, match="no write to the path is complete"):
        gw.read_output(spark, path)
    written = outputs_of(frame, NO_MARKER).write_parquet(path)
    assert written.rows == gw.read_output(spark, path).count() == RESULTS


def test_a_file_of_an_attempt_that_lives_on_does_not_count(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    written = outputs_of(frame, NO_MARKER).write_parquet(path)
    whole = Path(written.files[0])
    (whole.parent / "part-00009-late.parquet").write_bytes(whole.read_bytes())
    (whole.parent / "part-00010-cut.parquet").write_bytes(whole.read_bytes()[:100])
    assert gw.read_output(spark, path).count() == RESULTS
    whole.unlink()
    with pytest.raises(errors.OutputError, match="files were removed"):
        gw.read_output(spark, path)


#: Why Spark writes.
REASONS = {
    "ranked": "the first results of a window are found after another shuffle",
    "computed": "an expression of a selection is not one that Arrow computes, CONV(key, 10, 3)",
    "legacy": "the session's settings of Parquet files ask for what only Spark writes",
    "typed": "it notes more in a file of a column than Arrow does",
    "finished": "it computes the results",
}


def of_case(case: str, frame: DataFrame) -> gw.typing.Outputs:
    if case == "ranked":
        return windowed(frame).top_keys(1, "n").with_outputs().aggregate(n=gw.count())
    if case == "computed":
        return sliding(frame).select(h="conv(key, 10, 3)")
    if case == "typed":
        collated = frame.selectExpr("key", "ts", "string(v) COLLATE UTF8_LCASE AS v")
        return windowed(collated).with_outputs().aggregate(last=gw.last("v"))
    if case == "finished":
        keyed = gw.stream(frame).event_time("ts", IN_ORDER).key_by("key")
        return (
            keyed.window(gw.TumblingEventTimeWindows.of("10 s"))
            .with_outputs()
            .aggregate(n=gw.count())
        )
    return sliding(frame)


@pytest.mark.parametrize("case", quick(REASONS, "finished"))
def test_what_spark_writes(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, case: str
) -> None:
    settings = {"spark.sql.parquet.writeLegacyFormat": "true"} if case == "legacy" else {}
    with change_settings(spark, settings):
        outputs = of_case(case, frame)
        assert f"write_parquet lets Spark write: {REASONS[case]}" in outputs.explain()
        written = outputs.write_parquet(tmp_path / "out", compression="gzip")
        assert (written.written_by, written.counters) == ("spark", None)
        assert_same(gw.read_output(spark, tmp_path / "out"), outputs.result())
    assert written.rows == outputs.result().count()
    group = pq.read_metadata(written.files[0]).row_group(0)
    assert group.column(0).compression == "GZIP"


def test_no_results(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    outputs = sliding(frame.where("key < 0"))
    written = outputs.write_parquet(tmp_path / "out")
    assert (written.files, written.rows) == ((), 0)
    assert_same(gw.read_output(spark, tmp_path / "out"), outputs.result())


def test_refusals(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    outputs = sliding(frame)
    with pytest.raises(errors.OutputError, match=r"a path of results must be on a disk .*HDFS"):
        outputs.write_parquet("hdfs://somewhere/out")
    (tmp_path / "file").touch()
    with pytest.raises(errors.OutputError, match="cannot be used"):
        outputs.write_parquet(tmp_path / "file/out")
    (tmp_path / "in").mkdir()
    incoming = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))
    with pytest.raises(errors.UnsupportedQueryError, match="write_stream"):
        sliding(incoming).write_parquet(tmp_path / "out")
    outputs.write_parquet(tmp_path / "out")
    for takes_over in (False, True):
        sink = gw.ParquetSink(tmp_path / "out", takes_over=takes_over)
        with pytest.raises(errors.OutputError, match="a stream writes to another one"):
            gw.write_stream(sliding(incoming), sink, tmp_path / "checkpoint")


def test_spark_reads_what_the_local_runner_wrote(spark: SparkSession, tmp_path: Path) -> None:
    table = rows()
    names = pa.array([f"k{n % 8}" for n in range(len(table))])
    more = {
        "word": names.dictionary_encode(),
        "large": names.cast(pa.large_string()),
        "u": table["key"].cast(pa.uint32()),
        "d": table["v"].cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 0)),
        "at": table["ts"].cast(pa.timestamp("ms", "UTC")),
    }
    for name, column in more.items():
        table = table.append_column(name, column)
    outputs = (
        windowed(table, "large", "u", "at")
        .with_outputs()
        .aggregate(d=gw.max("d"), f=gw.mean("v"), words=gw.last("word"))
    )
    written = outputs.write_parquet(tmp_path / "out")
    assert written.written_by == "process"
    found = gw.read_output(spark, tmp_path / "out")
    assert found.schema == spark.read.parquet(*written.files).schema
    expected = outputs.result()
    by = [(name, "ascending") for name in ("u", "at", "window_start")]
    assert found.toArrow().sort_by(by).to_pylist() == expected.sort_by(by).to_pylist()


@pytest.mark.thorough
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_disk_that_is_full(frame: DataFrame, tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        texts = frame.selectExpr("key", "ts", "repeat(hex(xxhash64(v, 7)), 300) AS v")
        outputs = windowed(texts).with_outputs().aggregate(all=gw.collect_list("v"))
        with pytest.raises(errors.OutputError, match="No space left"):
            outputs.write_parquet(tmp_path / "out", compression="none")
        assert sliding(frame).select("key").write_parquet(tmp_path / "out").rows > 0
    finally:
        subprocess.run(["umount", tmp_path], check=True)


COLUMNS = (
    "yes boolean, b tinyint, s smallint, i int, text string, raw binary, day date, at timestamp, "
    "small decimal(9,2), large decimal(38,6), items array<int>, nested struct<at timestamp>"
)


@pytest.mark.thorough
@pytest.mark.parametrize("times", ["INT96", "TIMESTAMP_MICROS"])
def test_types_are_those_that_spark_writes(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, times: str
) -> None:
    values = (
        "v % 2 = 0 AS yes, cast(key AS tinyint) AS b, cast(key AS smallint) AS s, "
        "cast(key AS int) AS i, string(key) AS text, binary(string(key)) AS raw, "
        "date_add(DATE'1582-10-01', int(v)) AS day, timestamp_micros(v * -99999999999) AS at, "
        "cast(v / 4 AS decimal(9,2)) AS small, cast(v / 7 AS decimal(38,6)) AS large, "
        "array(int(v), NULL) AS items, struct(ts AS at) AS nested"
    )
    wide = frame.selectExpr("key", "ts", "v", *(each.strip() for each in _split(values)))
    names = [column.split()[0] for column in COLUMNS.split(", ")]
    aggregates = {name: gw.last(name) for name in names[:10]}
    keyed = gw.stream(wide).event_time("ts", IN_ORDER).key_by("text", "day", "small", "at")
    outputs = (
        keyed.window(gw.SlidingEventTimeWindows.of("20 s", "5 s"))
        .with_outputs()
        .aggregate(
            **{f"last_{name}": each for name, each in aggregates.items()}, all=gw.collect_list("i")
        )
    )
    with change_settings(spark, {"spark.sql.parquet.outputTimestampType": times}):
        written = outputs.write_parquet(tmp_path / "out")
        outputs.result().write.parquet(str(tmp_path / "theirs"))
    assert written.written_by == "tasks"
    found, theirs = spark.read.parquet(*written.files), spark.read.parquet(str(tmp_path / "theirs"))
    assert_same(found, theirs)
    at = [
        pq.read_metadata(file).schema.column(found.columns.index("at")).physical_type
        for file in (written.files[0], *map(str, (tmp_path / "theirs").glob("*.parquet")))
    ]
    assert {*at} == {"INT96" if times == "INT96" else "INT64"}


def _split(text: str) -> list[str]:
    """Split a list of expressions at the commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", quick(["worker", "driver"], nightly=["worker"]))
def test_a_process_that_dies(spark: SparkSession, tmp_path: Path, way: str) -> None:
    """A worker in the middle of its file: Spark tries again. The driver, once all is written."""
    path, marker = tmp_path / "out", tmp_path / "marker"
    if way == "worker":
        marker.touch()
    command = [sys.executable, "-m", "tests.spark_glue.write_job", way, str(path), str(marker)]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        status = process.wait(250)
    finally:
        if way == "driver" or process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # its JVM and its workers, too
            process.wait()
    assert status == (9 if way == "driver" else 0)
    if way == "worker":
        assert not marker.exists()
    else:
        assert len(list(path.rglob("*.parquet"))) > 0  # they are left, and count for nobody
        with pytest.raises(errors.OutputError, match="no write to the path is complete"):
            gw.read_output(spark, path)
        written = outputs_of(spark.createDataFrame(rows()), str(marker)).write_parquet(path)
        assert {*map(str, path.rglob("*.parquet"))} == {*written.files}
    found = gw.read_output(spark, path)
    assert found.count() == found.select("key", "window_end").distinct().count() == RESULTS
