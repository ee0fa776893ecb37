"""What a path holds is each row once, whatever dies, whoever writes and however it is read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.commits.path_log import NOTHING, PathLog
from gpu_windows.commits.records import Commit
from gpu_windows.spark_glue.files.parquet_writer import ParquetWriter
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import (
    WATERMARKS,
    batches,
    expected,
    files,
    outputs_of,
    results_in,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = {"availableNow": True}
TABLES = batches(3, 200)


@pytest.fixture
def outputs(spark: SparkSession, tmp_path: Path) -> gw.typing.Outputs:
    """Sliding windows over three files, a micro-batch each."""
    files(tmp_path / "in", TABLES)
    return outputs_of("sliding", streamed(spark, tmp_path / "in"))


def run(outputs: gw.typing.Outputs, sink: Any, checkpoint: str | Path) -> None:
    gw.write_stream(outputs, sink, checkpoint, trigger=NOW).awaitTermination()


def die_at(monkeypatch: pytest.MonkeyPatch, number: int, *, after: bool) -> None:
    """Have the writer die in a micro-batch, before or after it says that it is complete."""
    put = ParquetWriter._write_commit

    def dying(writer: ParquetWriter, session: SparkSession, commit: Commit) -> bool:
        if commit.number != number:
            return put(writer, session, commit)
        monkeypatch.setattr(ParquetWriter, "_write_commit", put)
        if after:
            put(writer, session, commit)
        raise KeyError("dies here")

    monkeypatch.setattr(ParquetWriter, "_write_commit", dying)


def fails(outputs: gw.typing.Outputs, sink: Any, checkpoint: Path, text: str) -> None:
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException, match=text):
        run(outputs, sink, checkpoint)


@pytest.mark.parametrize("after", quick([False, True], nightly=[False]))
def test_a_death_beside_the_commit_of_a_micro_batch(
    spark: SparkSession,
    tmp_path: Path,
    outputs: gw.typing.Outputs,
    monkeypatch: pytest.MonkeyPatch,
    after: bool,
) -> None:
    """It is written again, to new files: readers in batch and as streams have it once."""
    out = tmp_path / "out"
    die_at(monkeypatch, 0, after=after)
    fails(outputs, out, tmp_path / "state", "dies here")
    read = gw.read_output_stream(spark, out, micro_batch="nr")
    seen = _followed(read, tmp_path / "reader")
    assert bool(seen) is after
    run(outputs, out, tmp_path / "state")
    results, late = expected(outputs, TABLES)
    assert results_in(spark, tmp_path) == rows_of(results)
    assert gw.read_output(spark, out, "late").count() == len(late)
    seen += _followed(read, tmp_path / "reader")
    every = gw.read_output(spark, out, micro_batch="nr").collect()
    assert sorted(map(repr, seen)) == sorted(map(repr, every))
    attempts = [p for p in (out / "result").iterdir() if p.name.startswith("00000000-000000000000")]
    assert len(attempts) == (1 if after else 2)  # the first one's files lie there and do not count


def _followed(rows: DataFrame, checkpoint: Path) -> list[Any]:
    """Return what a query over results is given that it has not been given yet."""
    found: list[Any] = []
    writer = rows.writeStream.foreachBatch(lambda frame, _: found.extend(frame.collect()))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return found


@pytest.mark.thorough
def test_a_relative_checkpoint_is_in_the_folder_of_this_process(
    spark: SparkSession, tmp_path: Path, outputs: gw.typing.Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's JVM stays where it has begun."""
    rows = _of_one_micro_batch(tmp_path, outputs)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        run(outputs, tmp_path / "out", Path("state"))
        assert gw.read_output(spark, tmp_path / "out").count() == rows
    assert {"gpu_windows", "offsets"} <= {each.name for each in (tmp_path / "state").iterdir()}


@pytest.mark.thorough
def test_a_checkpoint_by_its_uri(
    spark: SparkSession, tmp_path: Path, outputs: gw.typing.Outputs
) -> None:
    """Spark would take the text of a URI for a path, escapes and all."""
    rows = _of_one_micro_batch(tmp_path, outputs)
    state = tmp_path / "a state, 5 %"
    for checkpoint in (state.as_uri(), state):
        run(outputs, tmp_path / "out", checkpoint)
    assert gw.read_output(spark, tmp_path / "out").count() == rows
    assert {"gpu_windows", "offsets"} <= {each.name for each in state.iterdir()}


def test_a_path_belongs_to_its_query(
    spark: SparkSession, tmp_path: Path, outputs: gw.typing.Outputs
) -> None:
    rows = _of_one_micro_batch(tmp_path, outputs)
    out = tmp_path / "[o]*ut"  # which are no patterns
    run(outputs, out, tmp_path / "state")
    with pytest.raises(errors.OutputError, match="takes_over=True"):
        run(outputs, f"{out}/", tmp_path / "other")
    assert not (tmp_path / "other").exists()
    assert gw.read_output(spark, out).count() == rows


def test_a_path_with_data_of_others_is_refused(tmp_path: Path, outputs: gw.typing.Outputs) -> None:
    """As a folder that the query reads: it would read its own results."""
    read = tmp_path / "in"
    before = sorted(read.iterdir())
    with pytest.raises(errors.OutputError, match=r"no query of gpu_windows has written.*parquet"):
        run(outputs, read, tmp_path / "state")
    assert sorted(read.iterdir()) == before
    assert not (tmp_path / "state").exists()


@pytest.mark.thorough
def test_a_query_may_take_over(
    spark: SparkSession, tmp_path: Path, outputs: gw.typing.Outputs
) -> None:
    out, rows = tmp_path / "out", _of_one_micro_batch(tmp_path, outputs)
    run(outputs, out, tmp_path / "state")
    read = gw.read_output(spark, out)
    # Another may go on there on purpose, and says so every time that it is started ...
    for _ in range(2):
        run(outputs, gw.ParquetSink(out, takes_over=True), tmp_path / "other")
        assert gw.read_output(spark, out).count() == 2 * rows
    assert read.count() == rows  # a DataFrame is what there was when it was made
    # ... or does not: it is the owner now, and the first is not.
    run(outputs, out, tmp_path / "other")
    with pytest.raises(errors.OutputError, match="another checkpoint"):
        run(outputs, out, tmp_path / "state")
    assert len(_followed(gw.read_output_stream(spark, out), tmp_path / "reader")) == 2 * rows
    other = outputs_of("lateness", streamed(spark, tmp_path / "in"))
    with pytest.raises(errors.OutputError, match=r"same columns: its output result has struct"):
        run(other, gw.ParquetSink(out, takes_over=True), tmp_path / "third")
    assert not (tmp_path / "third").exists()


def _of_one_micro_batch(folder: Path, outputs: gw.typing.Outputs) -> int:
    """Leave one file for the query, and return how many rows it writes."""
    for number in (1, 2):
        (folder / "in" / f"{number}.parquet").unlink()
    rows = len(expected(outputs, TABLES[:1])[0])
    assert rows
    return rows


@pytest.mark.thorough
def test_a_query_ends_where_another_has_taken_over(
    tmp_path: Path, outputs: gw.typing.Outputs
) -> None:
    out = tmp_path / "out"
    shutil.move(tmp_path / "in" / "2.parquet", tmp_path)
    query = gw.write_stream(outputs, out, tmp_path / "state")
    query.processAllAvailable()
    run(outputs, gw.ParquetSink(out, takes_over=True), tmp_path / "other")
    shutil.move(tmp_path / "2.parquet", tmp_path / "in")
    with pytest.raises(Exception, match="has taken over the path"):
        query.processAllAvailable()
    commits = list(PathLog(out.as_uri()).between(NOTHING))
    assert [c.position for c in commits] == sorted(c.position for c in commits)
    assert {c.generation for c in commits} == {0, 1}


@pytest.mark.thorough
def test_an_older_copy_of_a_checkpoint_is_told(
    spark: SparkSession, tmp_path: Path, outputs: gw.typing.Outputs
) -> None:
    """What it would write under numbers that are there need not be what is there."""
    for number in (1, 2):
        shutil.move(tmp_path / "in" / f"{number}.parquet", tmp_path)
    run(outputs, tmp_path / "out", tmp_path / "state")
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    for number in (1, 2):
        shutil.move(tmp_path / f"{number}.parquet", tmp_path / "in")
    run(outputs, tmp_path / "out", tmp_path / "state")
    before = results_in(spark, tmp_path)
    fails(outputs, tmp_path / "out", tmp_path / "copy", "the checkpoint is an older copy")
    assert results_in(spark, tmp_path) == before


@pytest.mark.thorough
def test_columns_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    """A key called batch was replaced by the number of the micro-batch on reading."""
    tables = [table.rename_columns(["ts", "batch", "v", "text", "_metadata"]) for table in TABLES]
    files(tmp_path / "in", tables)
    schema = spark.createDataFrame(tables[0]).schema
    source = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(source).event_time("ts", watermarks).key_by("batch")
    made = keyed.window(gw.TumblingEventTimeWindows.of("1 minute"))
    run(
        made.with_outputs().aggregate(_metadata=gw.sum("_metadata")),
        tmp_path / "out",
        tmp_path / "state",
    )
    found = gw.read_output(spark, tmp_path / "out", micro_batch="nr")
    assert found.columns == ["batch", "window_start", "window_end", "_metadata", "nr"]
    assert {row.batch for row in found.collect()} == set(range(20))
    with pytest.raises(errors.NameClashError, match="a name that is free, got BATCH"):
        gw.read_output(spark, tmp_path / "out", micro_batch="BATCH")


@pytest.mark.thorough
def test_a_renamed_key_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """Files under one schema with another name would be read as nulls."""
    from pyspark.sql import functions as F  # noqa: N812

    files(tmp_path / "in", TABLES[:1])
    timed = gw.stream(streamed(spark, tmp_path / "in")).event_time("ts", WATERMARKS)

    def named(name: str) -> gw.typing.Outputs:
        keyed = timed.key_by((F.col("k") % 3).alias(name))
        return (
            keyed.window(gw.TumblingEventTimeWindows.of("1 minute"))
            .with_outputs()
            .aggregate(n=gw.count())
        )

    run(named("x"), tmp_path / "out", tmp_path / "state")
    with pytest.raises(errors.OutputError, match=r"has struct<x:.*got struct<y:"):
        run(named("y"), tmp_path / "out", tmp_path / "state")


@pytest.mark.slow
def test_nested_columns_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", TABLES)
    source = streamed(spark, tmp_path / "in").selectExpr(
        "ts",
        "named_struct('k', k, 'at', ts) as key",
        "map(text, array(v)) as m",
        "cast(v as decimal(9,2)) d",
    )
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(source).event_time("ts", watermarks).key_by("key")
    made = (
        keyed.window(gw.TumblingEventTimeWindows.of("1 minute"))
        .with_outputs()
        .collect_lists("m", "ts", "d")
    )
    run(made, tmp_path / "out", tmp_path / "state")
    whole = gw.read_output(spark, tmp_path / "out")
    stream = gw.read_output_stream(spark, tmp_path / "out")
    assert stream.schema == whole.schema
    seen = _followed(stream, tmp_path / "reader")
    assert sorted(map(repr, seen)) == sorted(map(repr, whole.collect()))
    assert len(seen) > 100


@pytest.mark.thorough
def test_what_cannot_be_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    for read in (gw.read_output, gw.read_output_stream):
        with pytest.raises(errors.OutputError, match="what write_stream wrote"):
            read(spark, tmp_path)
    files(tmp_path / "in", batches(1, 1))
    run(outputs_of("sliding", streamed(spark, tmp_path / "in")), tmp_path / "out", tmp_path / "s")
    assert gw.read_output(spark, tmp_path / "out").count() == 0
    for read in (gw.read_output, gw.read_output_stream):
        with pytest.raises(errors.OutputError, match="result, late, got 'results'"):
            read(spark, tmp_path / "out", "results")
    with pytest.raises(errors.QueryError, match="whole number above 0, got 0"):
        gw.read_output_stream(spark, tmp_path / "out", max_micro_batches=0)
    (owner,) = (tmp_path / "out" / "owners").glob("*/part-*")
    text = owner.read_text()
    owner.with_name(f".{owner.name}.crc").unlink()
    later = text.replace('"format": 1', '"format": 9')
    for broken, told in ((later, "got 9"), ("{", "must be those")):
        owner.write_text(broken)
        with pytest.raises(errors.OutputError, match=told):
            gw.read_output(spark, tmp_path / "out")


@pytest.mark.thorough
def test_few_files_and_none_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    """A micro-batch writes a file, not one a shard; one without rows leaves nothing."""
    nothing = TABLES[0].slice(0, 0)  # the first one moves the watermark
    files(tmp_path / "in", [TABLES[0], nothing, nothing, TABLES[1]])
    outputs = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    run(outputs, tmp_path / "out", tmp_path / "state")
    commits = list(PathLog((tmp_path / "out").as_uri()).between(NOTHING))
    written = [part for commit in commits for part in commit.outputs.values()]
    assert all(part.rows for part in written)
    assert len(written) == sum(1 for _ in (tmp_path / "out").glob("*/*/*.parquet"))
    assert len(list((tmp_path / "state" / "commits").glob("[0-9]*"))) > len(commits) > 1


@pytest.mark.thorough
def test_processing_time_goes_on_where_spark_runs_no_micro_batch_without_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    files(tmp_path / "in", batches(1, 5))
    keyed = gw.stream(streamed(spark, tmp_path / "in")).processing_time().key_by("k")
    windows = keyed.window(gw.TumblingProcessingTimeWindows.of("1 second"))
    name = "spark.sql.streaming.noDataMicroBatches.enabled"
    spark.conf.set(name, "false")
    try:
        query = gw.write_stream(
            windows.with_outputs().aggregate(n=gw.count()), tmp_path / "out", tmp_path / "state"
        )
        found: list[Any] = []
        while not found and query.isActive:
            found = gw.read_output(spark, tmp_path / "out").collect()
        query.stop()
    finally:
        spark.conf.unset(name)
    assert query.exception() is None
    assert sum(row.n for row in found) == 5


@pytest.mark.parametrize("path", [None, 5, "", b"out"])
def test_a_sink_has_a_path(path: Any) -> None:
    with pytest.raises(errors.QueryError, match="the path of a sink must be a str"):
        gw.ParquetSink(path)
    with pytest.raises(errors.QueryError, match="takes_over is True or False"):
        gw.ParquetSink("out", takes_over="yes")  # type: ignore[arg-type]


@pytest.mark.thorough
def test_a_copy_of_a_checkpoint_that_went_another_way_is_refused(
    spark: SparkSession, tmp_path: Path, outputs: gw.typing.Outputs
) -> None:
    """Its micro-batches have the numbers of others, that took other rows or came at other times."""
    out, state, copies = tmp_path / "out", tmp_path / "state", (tmp_path / "1", tmp_path / "2")
    run(outputs, out, state)
    for each in copies:
        shutil.copytree(state, each)
    files(tmp_path / "in", [*TABLES, *batches(4, 50)[3:]])
    run(outputs, out, state)
    rows = results_in(spark, tmp_path)
    said = ("took 50 rows, not these 60", "was planned at another time")
    for copy, more, text in zip(copies, (60, 50), said, strict=True):
        files(tmp_path / "in", [*TABLES, *batches(4, more)[3:]])
        fails(outputs, out, copy, f"micro-batch 3 is there already and {text}")
        assert results_in(spark, tmp_path) == rows
