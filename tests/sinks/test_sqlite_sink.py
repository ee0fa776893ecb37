"""The documented sink of one's own: exactly once, whatever dies; the page has its text."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

import pytest

import gpu_windows as gw
from gpu_windows import errors
from tests.operators.joins.rows import instants
from tests.sinks.dying import Dies, fails, run
from tests.sinks.sqlite_sink import SqliteSink
from tests.spark_glue.stream_runs import ASSIGNERS, SECOND, batches, files, streamed, windowed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.conftest import TimeZone

SOURCE = Path(__file__).with_name("sqlite_sink.py")
PAGE = Path(__file__).parents[2] / "docs" / "sinks.md"


def rows_in(path: Path, table: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as found:
        return sorted(found.execute(f"SELECT * FROM {table}"))


@pytest.mark.slow
def test_the_latest_firings_are_in_the_table(spark: SparkSession, tmp_path: Path) -> None:
    """Micro-batches that come again change nothing; a new checkpoint is not skipped."""
    files(tmp_path / "in", batches(3, 100))
    made = windowed(streamed(spark, tmp_path / "in"), ASSIGNERS["continuous"])
    early = made.trigger(gw.ContinuousEventTimeTrigger.of("15 seconds")).with_firing_columns()
    outputs = early.with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    path, state = tmp_path / "results.db", tmp_path / "state"
    sink = SqliteSink(str(path), "minutes")
    for number in (1, 2):
        fails(partial(run, outputs, Dies(sink, number), state), "dies here")
    run(outputs, sink, state)
    run(outputs, gw.ParquetSink(tmp_path / "out"), tmp_path / "plain")
    wanted: dict[Any, Any] = {}
    for row in gw.read_output(spark, tmp_path / "out").orderBy("firing").collect():
        bounds = [round(each.timestamp() * SECOND) for each in (row.window_start, row.window_end)]
        wanted[row[:3]] = (row.k, *bounds, *row[3:])
    assert rows_in(path, "minutes") == sorted(wanted.values())
    with closing(sqlite3.connect(path)) as table, table:
        table.execute("DELETE FROM minutes WHERE n > 1")
    run(outputs, sink, tmp_path / "another state")
    assert rows_in(path, "minutes") == sorted(wanted.values())
    assert len(rows_in(path, "written")) == 2


@pytest.mark.thorough
def test_hours_that_a_clock_shows_twice_are_two(
    spark: SparkSession, time_zone: TimeZone, tmp_path: Path
) -> None:
    """Summer time ends in New York on 2 November 2025, 06:00 UTC: [01:00, 01:30) is there twice."""
    half, first = 1800 * SECOND, 1_762_059_600 * SECOND  # 05:00 UTC
    at = [first, first + 2 * half, first + 4 * half]
    tables = [instants([("a", ticks, number)]) for number, ticks in enumerate(at)]
    files(tmp_path / "in", tables)
    with time_zone("America/New_York"):
        source = gw.stream(streamed(spark, tmp_path / "in", tables[0]))
        timed = source.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        halves = timed.key_by("k").window(gw.TumblingEventTimeWindows.of("30 minutes"))
        outputs = halves.with_firing_columns().with_outputs().aggregate(last=gw.max("ts"))
        run(outputs, SqliteSink(str(tmp_path / "results.db"), "halves"), tmp_path / "state")
    written = rows_in(tmp_path / "results.db", "halves")
    assert [row[:3] for row in written] == [("a", each, each + half) for each in at[:2]]
    assert [row[3] for row in written] == at[:2]


def test_results_that_do_not_replace_each_other_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    files(tmp_path / "in", batches(1, 5))
    outputs = windowed(streamed(spark, tmp_path / "in"), ASSIGNERS["tumbling"])
    sink = SqliteSink(str(tmp_path / "results.db"), "minutes")
    with pytest.raises(errors.QueryError, match=r"with_firing_columns\(\)"):
        run(outputs.with_outputs().aggregate(n=gw.count()), sink, tmp_path / "state")
    assert not (tmp_path / "results.db").exists()


@pytest.mark.thorough
def test_an_older_copy_of_a_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """What it writes under a number that was there is not what was written."""
    files(tmp_path / "in", batches(2, 50)[:1])
    path, state = tmp_path / "results.db", tmp_path / "state"

    def once(state: Path) -> None:
        made = windowed(streamed(spark, tmp_path / "in"), ASSIGNERS["tumbling"])
        outputs = made.with_firing_columns().with_outputs().aggregate(n=gw.count())
        run(outputs, SqliteSink(str(path), "minutes"), state)

    once(state)
    copytree(state, tmp_path / "copy")
    files(tmp_path / "in", batches(2, 50))
    once(state)
    wanted = rows_in(path, "minutes")
    fails(partial(once, tmp_path / "copy"), "the checkpoint is an older copy")
    assert rows_in(path, "minutes") == wanted


def test_the_page_has_its_text() -> None:
    text = SOURCE.read_text()
    assert len(text.splitlines()) <= 70
    assert text in PAGE.read_text()
