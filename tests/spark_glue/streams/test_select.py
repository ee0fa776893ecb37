"""Selected rows of streams are written where they are read, each once, without state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.errors import ColumnNameError, ColumnTypeError, QueryError, StateMismatchError
from gpu_windows.spark_glue.files.parquet_writer import ParquetWriter
from gpu_windows.spark_glue.streams.job import MicroBatchJob
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.deaths import dying_after
from tests.spark_glue.stream_runs import (
    WATERMARKS,
    batches,
    files,
    metrics_in,
    results_in,
    run_to_the_end,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEATHS = {
    "after the job": dying_after(MicroBatchJob, "run"),
    "after the commit": dying_after(CommitLog, "add"),
    "after the delivery": dying_after(ParquetWriter, "write"),
}


def selected(source: Any, *, timed: bool = True) -> gw.typing.Outputs:
    rows: Any = gw.stream(source)
    rows = rows.event_time("ts", WATERMARKS) if timed else rows
    outputs: gw.typing.Outputs = rows.select(
        "ts", "k", {"v": "v * 2"}, "seq", kind="CASE WHEN k < 5 THEN text END", where="v > 3"
    )
    return outputs


def wanted_of(tables: list[pa.Table]) -> list[Any]:
    return rows_of(selected(pa.concat_tables(tables)).result())


@pytest.mark.parametrize("timed", quick([True, False]))
def test_rows_are_those_of_a_table(spark: SparkSession, tmp_path: Path, timed: bool) -> None:
    tables = batches()
    files(tmp_path / "in", tables)
    outputs = selected(streamed(spark, tmp_path / "in"), timed=timed)
    run_to_the_end(outputs, tmp_path)
    assert results_in(spark, tmp_path) == wanted_of(tables)
    assert gw.read_output(spark, tmp_path / "out", "late").count() == 0
    text = outputs.explain()
    assert "no shuffle, no state" in text
    metrics = metrics_in(tmp_path)
    assert sum(each.counters.rows for each in metrics) == len(wanted_of(tables))
    assert all(each.state_rows == each.state_bytes == 0 for each in metrics)
    assert (metrics[-1].watermark is not None) == timed


@pytest.mark.parametrize("step", quick(DEATHS))
def test_a_driver_that_dies_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    tables = batches(3, 2_000)  # more than a task returns to the driver
    files(tmp_path / "in", tables[:1])
    outputs = selected(streamed(spark, tmp_path / "in"))
    run_to_the_end(outputs, tmp_path)
    files(tmp_path / "in", tables)
    with monkeypatch.context() as patched:
        DEATHS[step](patched)
        with pytest.raises(Exception, match="DeathError"):
            run_to_the_end(outputs, tmp_path)
    run_to_the_end(outputs, tmp_path)
    assert results_in(spark, tmp_path) == wanted_of(tables)
    log = CommitLog(LocalFiles(str(tmp_path / "state" / FOLDER)))
    last = log.last()
    assert last is not None
    assert last.results
    assert not any(shard.newest for stage in last.stages for shard in stage.shards)


@pytest.mark.thorough
def test_windows_over_selected_rows_are_a_stage(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches()
    files(tmp_path / "in", tables)
    minutes = gw.TumblingEventTimeWindows.of("1 minute")

    def counted(source: Any) -> gw.typing.Outputs:
        rows = gw.stream(source).event_time("ts", WATERMARKS)
        stage = gw.stream_results(rows.select("k", "seq", where="v > 3"), "some", keep=True)
        outputs: gw.typing.Outputs = (
            stage.key_by("k").window(minutes).with_outputs().aggregate(n=gw.count())
        )
        return outputs

    run_to_the_end(counted(streamed(spark, tmp_path / "in")), tmp_path)
    late = gw.read_output(spark, tmp_path / "out", "late").toArrow()
    reasons = set(late["rejection_reason"].to_pylist())
    assert reasons == {"late", "null_timestamp"}
    found = gw.read_output(spark, tmp_path / "out").toArrow()
    again = gw.stream(pa.concat_tables(tables)).event_time("ts", WATERMARKS).where("v > 3")
    plain = again.key_by("k").window(minutes).aggregate(n=gw.count())
    assert {*found["k"].to_pylist()} <= {*plain["k"].to_pylist()}
    kept = gw.read_output(spark, tmp_path / "out", "stages/some/result").toArrow()
    inside, outside = sum(found["n"].to_pylist()), len(late)
    assert len(kept) == len(pa.concat_tables(tables).filter(pa.compute.field("v") > 3))
    assert inside + outside <= len(kept)
    assert inside > 500


def test_another_selection_may_follow_with_the_same_results(
    spark: SparkSession, tmp_path: Path
) -> None:
    """There is no state: a condition may change; columns of results may not."""
    tables = batches(2, 50)
    files(tmp_path / "in", tables[:1])
    stream = gw.stream(streamed(spark, tmp_path / "in"))
    run_to_the_end(stream.select("k", "seq"), tmp_path)
    files(tmp_path / "in", tables)
    run_to_the_end(stream.select("k", "seq", where="k < 5"), tmp_path)
    found = gw.read_output(spark, tmp_path / "out").toArrow()
    second = tables[1].filter(pa.compute.field("k") < 5)
    assert sorted(found["seq"].to_pylist()) == [
        *tables[0]["seq"].to_pylist(), *second["seq"].to_pylist()
    ]  # fmt: skip
    with pytest.raises(StateMismatchError, match="results"):
        run_to_the_end(stream.select("k"), tmp_path)


def test_nested_values_and_types_of_spark_come_back(spark: SparkSession, tmp_path: Path) -> None:
    nested = pa.table({
        "m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        "s": [{"x": [1, None]}, None],
        "d": pa.array([None, 5], pa.duration("us")),
    })  # fmt: skip
    files(tmp_path / "in", [nested])
    frame = streamed(spark, tmp_path / "in", nested)
    outputs = gw.stream(frame).select("m", {"s": "d"}, D="s", t="cast(null AS string)")
    run_to_the_end(outputs, tmp_path)
    back = gw.read_output(spark, tmp_path / "out")
    types = {field.name: field.dataType for field in frame.schema}
    assert [f.dataType for f in back.schema][:3] == [types[name] for name in "mds"]
    wanted = [
        {"m": m, "s": d, "D": s, "t": None}
        for m, s, d in zip(*(nested[name].to_pylist() for name in "msd"), strict=True)
    ]
    assert sorted(back.toArrow().to_pylist(), key=str) == sorted(wanted, key=str)


def test_what_cannot_cross_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 5))
    stream = gw.stream(streamed(spark, tmp_path / "in"))
    with pytest.raises(ColumnTypeError, match="CAST it"):
        stream.select("k", nothing="NULL")
    with pytest.raises(ColumnNameError, match="dots"):
        stream.select({"a.b": "k"})
    with pytest.raises(QueryError, match="a value for each row"):
        stream.select(n="count(*)")
    with pytest.raises(QueryError, match="rows need a time"):
        gw.stream_results(stream.select("k"))


def test_rows_far_in_the_future_are_rejected_by_a_guard(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = pa.table({"ts": pa.array([0, 1 << 52, None], pa.timestamp("us", "UTC")), "v": [0, 1, 2]})
    files(tmp_path / "in", [rows])
    guarded = WATERMARKS.guard("1 day")
    timed = gw.stream(streamed(spark, tmp_path / "in", rows)).event_time("ts", guarded)
    run_to_the_end(timed.select("v"), tmp_path)
    found = gw.read_output(spark, tmp_path / "out").toArrow()
    assert sorted(found["v"].to_pylist()) == [0, 2]
    late = gw.read_output(spark, tmp_path / "out", "late").toArrow()
    assert late["rejection_reason"].to_pylist() == ["future_timestamp"]


def test_files_are_read_in_tasks(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches(2, 300)
    files(tmp_path / "in", tables)
    schema = streamed(spark, tmp_path / "in").schema
    scan = gw.stream(gw.scan_stream(str(tmp_path / "in"), spark, schema=schema))
    outputs = scan.select("k", "seq", double="v * 2", where="v > 3")
    run_to_the_end(outputs, tmp_path)
    found = gw.read_output(spark, tmp_path / "out").toArrow()
    wanted = pa.concat_tables(tables).filter(pa.compute.field("v") > 3)
    assert sorted(found["seq"].to_pylist()) == wanted["seq"].to_pylist()
    assert sum(found["double"].to_pylist()) == 2 * sum(wanted["v"].to_pylist())
