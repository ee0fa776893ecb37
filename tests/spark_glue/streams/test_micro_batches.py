"""Micro-batches: the same results, whatever dies between two steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.errors import ConcurrentQueryError, StateMismatchError
from gpu_windows.planning.own_columns import REASON
from gpu_windows.spark_glue.files.parquet_writer import ParquetWriter
from gpu_windows.spark_glue.streams.engine import Engine
from gpu_windows.spark_glue.streams.job import MicroBatchJob
from gpu_windows.spark_glue.streams.start import start
from tests.lanes import quick
from tests.operators.joins.rows import STRICT
from tests.planning.queries import rows_of
from tests.spark_glue.deaths import dying_after, dying_before
from tests.spark_glue.stream_runs import (
    BEGIN,
    SECOND,
    batches,
    expected,
    files,
    outputs_of,
    results_in,
    run_to_the_end,
    seconds,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Steps of a micro-batch; a driver dies before or after one.
DEATHS = {
    "before the job": dying_before(MicroBatchJob, "run"),
    "after the state files": dying_after(MicroBatchJob, "run"),
    "after the commit": dying_after(CommitLog, "add"),
    "after the delivery": dying_after(ParquetWriter, "write"),
    "after the mark": dying_after(CommitLog, "mark_delivered"),
    "within the sweep": dying_after(LocalFiles, "delete"),
    "after the sweep": dying_after(CommitLog, "sweep"),
    "before Spark's commit": dying_after(Engine, "__call__"),
}


#: `test_engine.py` has them all without Spark.
OFTEN = ("after the state files", "after the delivery", "before Spark's commit")


@pytest.mark.parametrize(
    "step", quick(DEATHS, OFTEN[0], nightly=[step for step in DEATHS if step not in OFTEN])
)
def test_a_driver_that_dies_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    tables = batches(3, 200)
    files(tmp_path / "in", tables[:1])
    outputs: Any = outputs_of("sessions", streamed(spark, tmp_path / "in"))
    run_to_the_end(outputs, tmp_path)
    files(tmp_path / "in", tables)
    with monkeypatch.context() as patched:
        DEATHS[step](patched)
        with pytest.raises(Exception, match="DeathError"):
            run_to_the_end(outputs, tmp_path)
    run_to_the_end(outputs, tmp_path)
    assert results_in(spark, tmp_path) == rows_of(expected(outputs, tables)[0])
    log = CommitLog(LocalFiles(str(tmp_path / "state" / FOLDER)))
    last = log.last()
    assert last is not None
    assert last.number == 2
    kept = {name for n in log.files.names("commits") for name in needed(log, n)}
    assert set(state_files(log, len(last.stages[0].shards))) == kept


def needed(log: CommitLog, name: str) -> Iterator[str]:
    yield from StateCommit.from_bytes(log.files.read(name), name).files


def state_files(log: CommitLog, shards: int) -> Iterator[str]:
    for folder in ("results", *(f"state/00-{shard:05}" for shard in range(shards))):
        yield from log.files.names(folder)


def test_a_first_start_may_have_died(spark: SparkSession, tmp_path: Path) -> None:
    """It left a folder and a draft, and no commit; files of somebody else are refused."""
    tables = batches(2, 200)
    files(tmp_path / "in", tables)
    outputs: Any = outputs_of("tumbling", streamed(spark, tmp_path / "in"))
    commits = tmp_path / "state" / FOLDER / "commits"
    commits.mkdir(parents=True)
    (commits / ".draft-000000000000-ab").write_bytes(b"{")
    other = tmp_path / "state" / "mine.txt"
    other.touch()
    with pytest.raises(StateMismatchError, match=r"new folder.*mine\.txt"):
        run_to_the_end(outputs, tmp_path)
    other.unlink()
    with pytest.raises(Exception, match="trigger"):
        start(outputs, gw.ParquetSink(str(tmp_path / "out")), str(tmp_path / "state"),
              trigger={"often": True})  # fmt: skip
    assert not list(commits.glob("[0-9]*"))
    run_to_the_end(outputs, tmp_path)
    assert results_in(spark, tmp_path) == rows_of(expected(outputs, tables)[0])
    assert not list(commits.glob(".draft*"))


@pytest.mark.thorough
def test_micro_batches_without_rows_and_shards_without_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = batches(3, 100)
    one_key = tables[1].filter(pa.compute.equal(tables[1]["k"], 3))
    given = [tables[0], tables[0].slice(0, 0), one_key, tables[2]]
    files(tmp_path / "in", given)
    outputs = outputs_of("tumbling", streamed(spark, tmp_path / "in"))
    run_to_the_end(outputs, tmp_path)
    wanted = expected(outputs, [table for table in given if len(table)])[0]
    assert results_in(spark, tmp_path) == rows_of(wanted)


def test_a_restart_remembers_how_far_each_input_of_a_union_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One is at 50 s and the other at 100 s; after a restart the first comes to 90 s."""
    files(tmp_path / "one", [seconds([("x", 45, 1), ("x", 50, 1)])])
    files(tmp_path / "other", [seconds([("x", 100, 1)])])
    like = seconds([("x", 0, 0)])
    one, other = (
        gw.stream(streamed(spark, tmp_path / name, like)).event_time("ts", STRICT)
        for name in ("one", "other")
    )
    windows = one.union(other).key_by("k").window(gw.TumblingEventTimeWindows.of("10 seconds"))
    outputs = windows.options(device="cpu", shards=2).with_outputs().aggregate(n=gw.count())
    run_to_the_end(outputs, tmp_path)
    assert ends(spark, tmp_path) == [50]
    files(tmp_path / "one", [seconds([("x", 45, 1)]), seconds([("x", 90, 1)])])
    run_to_the_end(outputs, tmp_path)
    assert ends(spark, tmp_path) == [50, 60]


def ends(spark: SparkSession, folder: Path) -> list[int]:
    """Return the ends of the windows that have fired, in seconds."""
    rows = gw.read_output(spark, folder / "out").collect()
    return sorted(int(row.window_end.timestamp()) - BEGIN // SECOND for row in rows)


def test_rows_and_markers_carry_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    """A marker is null but for the watermark; what is due comes in the same micro-batch."""
    like = seconds([("x", 0, 0)])

    def carrying(rows: list[tuple[str, int, int]], watermarks: list[int | None]) -> pa.Table:
        ticks = [None if each is None else BEGIN + each * SECOND for each in watermarks]
        column = pa.array(ticks, pa.int64()).cast(like["ts"].type)
        return seconds(rows).append_column("w", column)

    marker = carrying([("x", 0, 0)], [10])
    for name in ("k", "ts", "v"):
        at = marker.schema.get_field_index(name)
        marker = marker.set_column(at, name, pa.nulls(1, marker[name].type))
    given = [
        carrying([("x", 3, 1), ("x", 25, 1)], [None, 5]),
        marker,
        carrying([("x", 4, 1), ("x", 12, 1)], [None, 20]),  # the first is late
    ]
    files(tmp_path / "in", given)
    carried = gw.WatermarkStrategy.for_punctuated("w")
    rows = gw.stream(streamed(spark, tmp_path / "in", given[0])).event_time("ts", carried)
    windows = rows.key_by("k").window(gw.TumblingEventTimeWindows.of("10 seconds"))
    outputs = windows.options(device="cpu", shards=2).with_outputs().aggregate(n=gw.count())
    run_to_the_end(outputs, tmp_path)
    found = gw.read_output(spark, tmp_path / "out", micro_batch="number").collect()
    seen = [(r.number, int(r.window_end.timestamp()) - BEGIN // SECOND, r.n) for r in found]
    assert sorted(seen) == [(1, 10, 1), (2, 20, 1)]
    late = gw.read_output(spark, tmp_path / "out", "late").collect()
    assert [(row.k, row[REASON]) for row in late] == [("x", "late")]


@pytest.mark.thorough
def test_windows_end_by_the_clock_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 50))
    rows = gw.stream(streamed(spark, tmp_path / "in")).processing_time().key_by("k")
    windows = rows.window(gw.TumblingProcessingTimeWindows.of("3 seconds"))
    outputs: Any = windows.options(device="cpu", shards=2).with_outputs().aggregate(n=gw.count())
    sink = gw.ParquetSink(str(tmp_path / "out"))
    query = start(outputs, sink, str(tmp_path / "state"))
    try:
        until = time.monotonic() + 100
        while time.monotonic() < until and counted(spark, tmp_path) < 50:
            time.sleep(1)
    finally:
        query.stop()
    assert counted(spark, tmp_path) == 50
    log = CommitLog(LocalFiles(str(tmp_path / "state" / FOLDER)))
    last = log.last()
    assert last is not None
    assert last.next_call_ms is None  # no micro-batch comes for nothing


def counted(spark: SparkSession, folder: Path) -> int:
    return sum(row.n for row in gw.read_output(spark, folder / "out").collect())


def test_of_two_drivers_one_ends(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = batches(2, 200)
    files(tmp_path / "in", tables)
    outputs: Any = outputs_of("tumbling", streamed(spark, tmp_path / "in"))
    whole = MicroBatchJob.run

    def overtaken(self: MicroBatchJob, *arguments: Any) -> Any:
        """Let another driver commit the same micro-batch meanwhile."""
        monkeypatch.undo()
        self.log.add(whole(self, *arguments))
        return whole(self, *arguments)

    monkeypatch.setattr(MicroBatchJob, "run", overtaken)
    with pytest.raises(Exception, match=ConcurrentQueryError.__name__):
        run_to_the_end(outputs, tmp_path)
    run_to_the_end(outputs, tmp_path)
    assert results_in(spark, tmp_path) == rows_of(expected(outputs, tables)[0])


def test_a_checkpoint_of_which_parts_are_gone_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    files(tmp_path / "in", batches(2, 100))
    outputs: Any = outputs_of("tumbling", streamed(spark, tmp_path / "in"))
    run_to_the_end(outputs, tmp_path)
    for folder in ("offsets", "commits"):
        for file in (tmp_path / "state" / folder).iterdir():
            file.unlink()
    with pytest.raises(Exception, match="continues with micro-batch 0, and the last commit is of"):
        run_to_the_end(outputs, tmp_path)
    other: Any = outputs_of("sliding", streamed(spark, tmp_path / "in"))
    with pytest.raises(StateMismatchError, match="window was"):
        run_to_the_end(other, tmp_path)
