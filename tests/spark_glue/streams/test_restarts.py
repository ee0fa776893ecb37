"""Queries that end and are started again, without rows or with some: what has become due comes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.errors import StateMismatchError
from gpu_windows.planning.own_columns import REASON
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import (
    WATERMARKS,
    batches,
    expected,
    files,
    metrics_in,
    outputs_of,
    results_in,
    run_to_the_end,
    seconds,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_a_clock_goes_on_while_a_query_is_stopped(spark: SparkSession, tmp_path: Path) -> None:
    """With this trigger a query ends, though sessions are open, and takes a file at a time."""
    files(tmp_path / "in", batches(2, 50))
    keyed = gw.stream(streamed(spark, tmp_path / "in")).processing_time().key_by("k")
    sessions = keyed.window(gw.ProcessingTimeSessionWindows.with_gap("5 seconds"))
    outputs = sessions.options(shards=2).with_outputs().aggregate(n=gw.count())
    run_to_the_end(outputs, tmp_path)
    assert [each.counters.rows for each in metrics_in(tmp_path)] == [50, 50]
    time.sleep(5)
    run_to_the_end(outputs, tmp_path)
    assert metrics_in(tmp_path)[-1].counters.rows == 0
    assert sum(row.n for row in gw.read_output(spark, tmp_path / "out").collect()) == 100


@pytest.mark.thorough
@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_death_after_spark_has_noted_a_file_and_before_the_micro_batch(
    spark: SparkSession, tmp_path: Path, left: int
) -> None:
    """Spark takes that file and the next one at once: no row is lost, and none comes twice.

    ``left``: files that come after that one.
    """
    tables = batches(3 + left, 100)
    files(tmp_path / "in", tables[:2])
    outputs = outputs_of("tumbling", streamed(spark, tmp_path / "in"))
    run_to_the_end(outputs, tmp_path)
    files(tmp_path / "in", tables)
    noted = tmp_path / "state" / "sources" / "0"
    second = {"1.parquet": "2.parquet", '"batchId":1': '"batchId":2', "1000,": "2000,"}
    entry = (noted / "1").read_text()
    for before, after in second.items():
        assert before in entry
        entry = entry.replace(before, after)
    (noted / "2").write_text(entry)
    run_to_the_end(outputs, tmp_path)
    together = [*tables[:2], pa.concat_tables(tables[2:4]), *tables[4:]]
    rows = [each.counters.rows for each in metrics_in(tmp_path) if each.counters.rows]
    assert rows == [len(table) for table in together]
    results, late = expected(outputs, together)
    assert results_in(spark, tmp_path) == rows_of(results)
    assert gw.read_output(spark, tmp_path / "out", "late").count() == len(late) > 0


@pytest.mark.thorough
def test_a_query_begins_or_ceases_to_act_by_the_clock_on_a_checkpoint_of_its_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark has a source more then, and would end the query; how long a wait is may change."""
    files(tmp_path / "in", batches(1, 50))
    idle = WATERMARKS.with_idleness("1 minute")

    def run(watermarks: gw.WatermarkStrategy, folder: str) -> None:
        timed = gw.stream(streamed(spark, tmp_path / "in")).event_time("ts", watermarks)
        windows = timed.key_by("k").window(gw.TumblingEventTimeWindows.of("20 seconds"))
        run_to_the_end(
            windows.options(shards=2).with_outputs().aggregate(n=gw.count()), tmp_path / folder
        )

    for folder, first, other in (("plain", WATERMARKS, idle), ("idle", idle, WATERMARKS)):
        (tmp_path / folder).mkdir()
        run(first, folder)
        with pytest.raises(StateMismatchError, match="acts by the clock"):
            run(other, folder)
        run(first, folder)
    run(WATERMARKS.with_idleness("2 minutes").close_when_idle(), "idle")


@pytest.mark.slow
def test_no_clock_moves_before_rows_that_wait_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """The input was idle when the query ended, and time passes that would close windows."""
    newest = seconds([("a", 60, 1)])
    files(tmp_path / "in", [newest])
    idle = WATERMARKS.with_idleness("1 second").close_when_idle()
    timed = gw.stream(streamed(spark, tmp_path / "in", newest)).event_time("ts", idle).key_by("k")
    windows = timed.window(gw.TumblingEventTimeWindows.of("1 second"))
    outputs = windows.options(shards=2).with_outputs().aggregate(n=gw.count())

    def run() -> list[Any]:
        """Run to the end; return the rows given back."""
        run_to_the_end(outputs, tmp_path)
        return gw.read_output(spark, tmp_path / "out", "late").collect()

    def become_idle() -> None:
        run_to_the_end(outputs, tmp_path)  # the first look that finds no row
        time.sleep(1.1)
        run_to_the_end(outputs, tmp_path)
        assert str(metrics_in(tmp_path)[-1].held).startswith("all inputs idle since")

    run_to_the_end(outputs, tmp_path)
    become_idle()
    time.sleep(7)
    files(tmp_path / "in", [newest] * 2)
    assert run() == []
    become_idle()
    time.sleep(7)
    assert run() == []  # now the clock has closed the window
    files(tmp_path / "in", [newest] * 3)
    assert [(row.k, row[REASON]) for row in run()] == [("a", "late")]
    assert [row.n for row in gw.read_output(spark, tmp_path / "out").collect()] == [2]


@pytest.mark.smoke
@pytest.mark.slow
def test_a_run_takes_what_has_come_since_the_one_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Before Spark 4.2 sources of Python give all of it in one micro-batch."""
    tables = batches(2, 200)
    files(tmp_path / "in", tables[:1])
    outputs = outputs_of("tumbling", streamed(spark, tmp_path / "in"))
    run_to_the_end(outputs, tmp_path)
    rows = gw.read_output_stream(spark, tmp_path / "out")
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(rows).event_time("window_end", watermarks).key_by("k")
    minutes = keyed.window(gw.TumblingEventTimeWindows.of("20 seconds"))
    again = minutes.options(shards=2).with_outputs().aggregate(n=gw.count())
    counts = []
    for count in (1, 2, 2, 2):
        files(tmp_path / "in", tables[:count])
        run_to_the_end(outputs, tmp_path)
        run_to_the_end(again, tmp_path / "again")
        counts.append(sum(each.counters.rows for each in metrics_in(tmp_path / "again")))
    assert 0 < counts[0] < counts[1] == counts[2] == counts[3]
    assert counts[3] == gw.read_output(spark, tmp_path / "out").count()


@pytest.mark.parametrize(
    "name",
    [
        "tumbling",
        *(
            pytest.param(each, marks=pytest.mark.thorough)
            for each in ("sessions", "evictor", "continuous", "count window", "top")
        ),
    ],
)
def test_other_shards_after_a_start(spark: SparkSession, tmp_path: Path, name: str) -> None:
    tables = batches(4, 200)
    for number, shards in enumerate((4, 6, 3, 4)):
        files(tmp_path / "in", tables[: number + 1])
        outputs = outputs_of(name, streamed(spark, tmp_path / "in"), shards=shards)
        run_to_the_end(outputs, tmp_path)
        last = CommitLog(LocalFiles(str(tmp_path / "state" / FOLDER))).last()
        assert last is not None
        assert len(last.stages[-1].shards) == shards
    results, _ = expected(outputs, tables)
    assert results_in(spark, tmp_path) == rows_of(results)
    assert len(results) > 20
