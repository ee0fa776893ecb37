"""Queries that end before Spark runs the micro-batch in which only time passes, and go on."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest
from pyarrow import fs

import gpu_windows as gw
from gpu_windows.commits.log import NOTHING, CommitLog
from gpu_windows.query.base import REASON
from tests.chaos.driver import FIRST, FUNCTION, QUERIES, outputs_named
from tests.lanes import quick
from tests.spark_glue.streams import (
    batches,
    files,
    no_time_alone,
    outputs_of,
    run_to_the_end,
    streamed,
)

offset_log = pytest.importorskip("gpu_windows.spark_glue.offset_log")
owed = pytest.importorskip("gpu_windows.spark_glue.owed")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = batches(2, 200)
KINDS = [name for name in QUERIES if name != FUNCTION]
ONCE, HOURLY = {"once": True}, {"processingTime": "1 hour"}
NOTED = '{"batchWatermarkMs":5000,"batchTimestampMs":7000,"conf":{"a":"b"}}'


def named(spark: SparkSession, folder: Path, name: str) -> gw.Outputs:
    like = TABLES[0]
    return outputs_named(name, *(streamed(spark, folder / "in", like) for _ in range(2)))


def written(spark: SparkSession, folder: Path, *, numbered: bool = True) -> dict[str, list[str]]:
    """Return the rows of every output, each with its micro-batch if they are to be ``numbered``."""
    log = CommitLog((folder / "out").as_uri())
    outputs = {name for commit in log.between(NOTHING) for name in commit.outputs}
    at = "__at" if numbered else None
    found = {name: gw.read_output(spark, folder / "out", name, micro_batch=at) for name in outputs}
    return {name: sorted(map(str, rows.collect())) for name, rows in found.items()}


def numbers(folder: Path, log: str = "commits") -> list[int]:
    names = (path.name for path in (folder / "state" / log).iterdir())
    return sorted(int(name) for name in names if name.isdigit())


def lines(folder: Path, number: int) -> list[Any]:
    """Return what is noted of a micro-batch, but when it was."""
    version, settings, *offsets = (folder / f"state/offsets/{number}").read_text().split("\n")
    noted = json.loads(settings)
    assert noted.pop("batchTimestampMs") > 0
    return [version, noted, offsets]


@pytest.mark.spark
@pytest.mark.parametrize(
    "name", quick(KINDS, nightly=[name for name in KINDS if name != "sliding"])
)
def test_what_is_complete_comes_without_new_rows(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """And as it would have: under the same number, with the same rows."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        folder.mkdir()
        files(folder / "in", TABLES)
    run_to_the_end(named(spark, whole, name), whole)
    with no_time_alone(spark):
        run_to_the_end(named(spark, cut, name), cut)
    before = written(spark, cut)
    assert numbers(cut) == [number for number in numbers(whole) if number < len(TABLES)]
    run_to_the_end(named(spark, cut, name), cut)
    after = written(spark, cut)
    assert after == written(spark, whole)
    assert numbers(cut) == numbers(whole)
    last = numbers(whole)[-1]
    assert lines(cut, last) == lines(whole, last)
    if name not in {"top", "count window", FIRST}:
        assert after != before
    run_to_the_end(named(spark, cut, name), cut)  # nothing is owed any more
    assert numbers(cut) == numbers(whole)


@pytest.mark.spark
@pytest.mark.parametrize("name", quick(KINDS, nightly=KINDS))
def test_new_rows_come_after_it(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """All rows are written that are without it: it has closed what the next one would have."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder, tables in ((whole, TABLES), (cut, TABLES[:1])):
        folder.mkdir()
        files(folder / "in", tables)
    run_to_the_end(named(spark, whole, name), whole)
    with no_time_alone(spark):
        run_to_the_end(named(spark, cut, name), cut)
    files(cut / "in", TABLES)
    run_to_the_end(named(spark, cut, name), cut)
    assert written(spark, cut, numbered=False) == written(spark, whole, numbered=False)
    assert len(numbers(cut)) == (len(TABLES) if name == FIRST else len(numbers(whole)) + 1)


@pytest.mark.spark
@pytest.mark.thorough
def test_a_death_between_is_one_of_that_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", TABLES)
    outputs = named(spark, tmp_path, "sliding")
    with no_time_alone(spark):
        run_to_the_end(outputs, tmp_path)
    log = offset_log.OffsetLog((tmp_path / "state").as_uri())
    assert log.plan_owed(by_clock=False) == 2
    assert log.plan_owed(by_clock=True) is None
    run_to_the_end(outputs, tmp_path)
    assert numbers(tmp_path) == [0, 1, 2]


@pytest.mark.spark
@pytest.mark.thorough
def test_a_clock_goes_on_without_new_rows(spark: SparkSession, tmp_path: Path) -> None:
    """As that of a query that was not stopped: a session ends."""
    files(tmp_path / "in", [TABLES[0]])
    keyed = gw.stream(streamed(spark, tmp_path / "in")).processing_time().key_by("k")
    sessions = keyed.window(gw.ProcessingTimeSessionWindows.with_gap("10 seconds"))
    outputs = sessions.options(shards=2).outputs(n=gw.count())
    query = gw.write_stream(outputs, tmp_path / "out", tmp_path / "state")
    with _stopped(query):
        _wait(lambda: (tmp_path / "state/commits").exists() and numbers(tmp_path))
    forget_planned(tmp_path)
    assert not (tmp_path / "out/commits").exists()
    query = gw.write_stream(outputs, tmp_path / "out", tmp_path / "state")
    with _stopped(query):
        _wait(lambda: (tmp_path / "out/commits").exists())
    assert gw.read_output(spark, tmp_path / "out").count() == len(set(TABLES[0]["k"].to_pylist()))


@pytest.mark.spark
@pytest.mark.slow
def test_no_clock_moves_before_rows_that_wait_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """The input was idle when the query stopped, and time passed that would have closed windows."""
    files(tmp_path / "in", [TABLES[0]])
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("30 seconds")
    idle = strategy.with_idleness("1 second").close_when_idle()
    timed = gw.stream(streamed(spark, tmp_path / "in")).event_time("ts", idle).key_by("k")
    windows = timed.window(gw.TumblingEventTimeWindows.of("10 seconds"))
    outputs = windows.options(shards=2).outputs(n=gw.count())
    query = gw.write_stream(outputs, tmp_path / "out", tmp_path / "state")
    with _stopped(query):  # until the clock moves the watermark
        _wait(lambda: query.lastProgress and len(numbers(tmp_path)) > 4)
    forget_planned(tmp_path)
    time.sleep(32)
    newest = TABLES[0].filter(pc.equal(TABLES[0]["ts"], pc.max(TABLES[0]["ts"])))
    files(tmp_path / "in", [TABLES[0], newest])
    query = gw.write_stream(outputs, tmp_path / "out", tmp_path / "state")
    with _stopped(query):
        _wait(lambda: any(each.numInputRows for each in query.recentProgress))
    late = gw.read_output(spark, tmp_path / "out", "late")
    assert late.where(f"{REASON} = 'late'").count() == 0


@contextmanager
def _stopped(query: Any) -> Iterator[None]:
    try:
        yield
    finally:
        query.stop()


def _wait(until: Any) -> None:
    deadline = time.monotonic() + 90
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def forget_planned(folder: Path) -> None:
    """Take away what is noted of a micro-batch that has not run."""
    for late in set(numbers(folder, "offsets")) - set(numbers(folder)):
        (folder / f"state/offsets/{late}").unlink()
        (folder / f"state/offsets/.{late}.crc").unlink()


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("trigger", quick([ONCE, HOURLY], nightly=[ONCE, HOURLY]), ids=str)
def test_triggers_of_one_micro_batch_take_the_rows_there_are(
    spark: SparkSession, tmp_path: Path, trigger: dict[str, Any]
) -> None:
    files(tmp_path / "in", TABLES[:1])
    outputs = outputs_of("tumbling", streamed(spark, tmp_path / "in"))
    with no_time_alone(spark):
        for _ in range(2):
            run_to_the_end(outputs, tmp_path)
            assert numbers(tmp_path, "offsets") == [0]
    files(tmp_path / "in", TABLES)
    query = gw.write_stream(outputs, tmp_path / "out", tmp_path / "state", trigger=trigger)
    with _stopped(query):
        _wait(lambda: numbers(tmp_path) == [0, 1, 2])
    progress = [each.numInputRows for each in query.recentProgress]
    assert progress[0] == len(TABLES[1])


@pytest.mark.spark
@pytest.mark.smoke
@pytest.mark.slow
def test_sources_that_take_all_in_one_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Before Spark 4.2 those of Python do; every run reads what has come since the one before."""
    files(tmp_path / "in", TABLES[:1])
    outputs = outputs_of("tumbling", streamed(spark, tmp_path / "in"))
    run_to_the_end(outputs, tmp_path)
    rows = gw.read_output_stream(spark, tmp_path / "out")
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(rows).event_time("window_end", watermarks).key_by("k")
    minutes = keyed.window(gw.TumblingEventTimeWindows.of("20 seconds"))
    again = minutes.options(shards=2).outputs(n=gw.count())
    taken = []
    for count in (1, 2, 2, 2):
        files(tmp_path / "in", TABLES[:count])
        run_to_the_end(outputs, tmp_path)
        trigger = {"availableNow": True}
        query = gw.write_stream(again, tmp_path / "n", tmp_path / "cp", trigger=trigger)
        query.awaitTermination()
        taken.append(sum(each.numInputRows for each in query.recentProgress))
    assert [bool(rows) for rows in taken] == [True, True, False, False]
    assert sum(taken) == gw.read_output(spark, tmp_path / "out").count()


@pytest.mark.spark
@pytest.mark.thorough
def test_a_query_that_runs_is_stopped_before(spark: SparkSession, tmp_path: Path) -> None:
    """As Spark would; where it is told to refuse the start nothing is touched."""
    files(tmp_path / "in", TABLES)
    outputs = outputs_of("tumbling", streamed(spark, tmp_path / "in"))
    state = tmp_path / "state"
    asked: Any = (spark, str(state), state.as_uri())
    with no_time_alone(spark):
        query = gw.write_stream(outputs, tmp_path / "out", state)
    with _stopped(query):
        query.processAllAvailable()
        spark.conf.set(owed._STOPS, "false")
        assert not owed.plan_owed(*asked, by_clock=True)
        spark.conf.unset(owed._STOPS)
        assert query.isActive
        assert owed.plan_owed(*asked, by_clock=False)
        assert not query.isActive
    assert not owed.plan_owed(*asked, by_clock=True)
    assert numbers(tmp_path, "offsets") == [0, 1, 2]


@pytest.mark.spark
@pytest.mark.thorough
def test_a_task_does_it_where_this_process_cannot(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where a file was taken away by hand its checksum is there."""
    files(tmp_path / "in", TABLES)
    outputs = outputs_of("tumbling", streamed(spark, tmp_path / "in"))
    with no_time_alone(spark):
        run_to_the_end(outputs, tmp_path)
    shutil.copy(tmp_path / "state/offsets/.1.crc", tmp_path / "state/offsets/.2.crc")
    monkeypatch.setattr(owed.OffsetLog, "is_of", lambda *_: False)  # here, not in workers
    run_to_the_end(outputs, tmp_path)
    assert numbers(tmp_path) == [0, 1, 2]


@pytest.mark.spark
@pytest.mark.thorough
def test_why_nothing_can_be_noted_is_said(
    spark: SparkSession, noted: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (noted / "metadata").write_text('{"id":"another"}')
    (noted / "offsets" / "11").write_text("v9")
    with caplog.at_level(logging.WARNING):
        assert not owed.plan_owed(spark, str(noted), noted.as_uri(), by_clock=False)
        assert not owed.plan_owed(spark, str(noted), "nowhere://path", by_clock=False)
    assert caplog.text.count("what is complete may wait for the next rows") == 2
    assert caplog.text.count("ValueError") == 2
    assert caplog.text.count("the checkpoint is not seen") == 2


@pytest.fixture
def noted(tmp_path: Path) -> Path:
    """A checkpoint whose last micro-batch is 11, and has moved the watermark."""
    for log, text in (("offsets", f'v1\n{NOTED}\n{{"at":1}}\n-'),
                      ("commits", 'v1\n{"nextBatchWatermarkMs":9000}')):  # fmt: skip
        (tmp_path / log).mkdir()
        for number in (2, 10, 11):
            (tmp_path / log / str(number)).write_text(text)
        (tmp_path / log / ".12.crc").write_text("")
        (tmp_path / log / ".99.some.tmp").write_text("")
    return tmp_path


#: What is there besides.
NAMES = {"2", "10", "11", ".99.some.tmp"}


def names(folder: Path) -> set[str]:
    return {path.name for path in (folder / "offsets").iterdir()}


def test_it_has_the_offsets_of_the_last_and_the_watermark_reached(noted: Path) -> None:
    assert offset_log.OffsetLog(noted.as_uri()).plan_owed(by_clock=False) == 12
    version, settings, *offsets = (noted / "offsets" / "12").read_text().split("\n")
    found = json.loads(settings)
    assert (version, offsets) == ("v1", ['{"at":1}', "-"])
    assert found == {"batchWatermarkMs": 9_000, "batchTimestampMs": 7_000, "conf": {"a": "b"}}
    assert names(noted) == NAMES | {"12"}


@pytest.mark.parametrize("by_clock", [False, True])
def test_none_is_owed_where_time_stood_still_but_to_a_clock(noted: Path, by_clock: bool) -> None:
    (noted / "commits" / "11").write_text('v1\n{"nextBatchWatermarkMs":4000}')
    found = offset_log.OffsetLog(noted.as_uri()).plan_owed(by_clock=by_clock)
    assert found == (12 if by_clock else None)
    if by_clock:
        assert (
            json.loads((noted / "offsets/12").read_text().split("\n")[1])["batchWatermarkMs"]
            == 5_000
        )


def test_none_is_owed_where_one_is_to_run_again_or_none_has_run(noted: Path) -> None:
    log = offset_log.OffsetLog(noted.as_uri())
    (noted / "commits" / "11").unlink()
    assert log.plan_owed(by_clock=True) is None
    assert offset_log.OffsetLog((noted / "other").as_uri()).plan_owed(by_clock=True) is None


@pytest.mark.parametrize(
    ("log", "text"),
    [("offsets", "v9"), ("offsets", "v9\n{}\n"), ("offsets", "v9\n[]\n-"), ("offsets", "v9\n{\n-"),
     ("commits", "v9"), ("commits", "v9\n{}"), ("commits", 'v9\n{"nextBatchWatermarkMs":"x"}')],
)  # fmt: skip
def test_a_format_that_is_not_known_is_left(noted: Path, log: str, text: str) -> None:
    (noted / log / "11").write_text(text)
    with pytest.raises(offset_log.UNREADABLE):
        offset_log.OffsetLog(noted.as_uri()).plan_owed(by_clock=True)
    assert not (noted / "offsets" / "12").exists()


def test_other_file_systems(noted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be linked it appears by a move."""
    system = fs.SubTreeFileSystem(str(noted.parent), fs.LocalFileSystem())
    monkeypatch.setattr(offset_log, "file_system", lambda _: (system, noted.name))
    log = offset_log.OffsetLog("s3a://bucket/checkpoint")
    assert log.plan_owed(by_clock=False) == 12
    whole = (noted / "offsets" / "12").read_text()
    assert not log._add(12, "other")
    assert (noted / "offsets" / "12").read_text() == whole
    assert names(noted) == NAMES | {"12", ".12.crc"}


def test_a_disk_without_links(noted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> bool:
        raise OSError("Operation not permitted")

    monkeypatch.setattr(offset_log, "link_whole", fails)
    assert offset_log.OffsetLog(noted.as_uri()).plan_owed(by_clock=False) == 12
    assert names(noted) == NAMES | {"12"}


def test_a_checkpoint_that_is_another_s_here_is_not_touched(noted: Path) -> None:
    (noted / "metadata").write_text('{"id":"one"}\n')
    log = offset_log.OffsetLog(noted.as_uri())
    other = owed._Owed(log, '{"id":"two"}', by_clock=True)
    assert other.plan() == "the checkpoint is not seen"
    assert not (noted / "offsets" / "12").exists()
    (done,) = owed._Owed(log, '{"id":"one"}', by_clock=True)(iter([]))
    assert done.to_pydict() == {"told": ["noted"]}
    assert (noted / "offsets" / "12").exists()
