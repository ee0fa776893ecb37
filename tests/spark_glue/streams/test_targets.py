"""Several queries as one: each gives what it gives alone, in the same micro-batches."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.commits.records import is_identity
from gpu_windows.datastream.stream import Stream
from gpu_windows.datastream.timed_stream import TimedStream
from gpu_windows.errors import QueryError, UnsupportedQueryError
from gpu_windows.spark_glue.streams.targets import identity_of
from tests.lanes import quick
from tests.spark_glue.stream_runs import WATERMARKS, batches, files, streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HALF = gw.TumblingEventTimeWindows.of("20 seconds")


def in_files(folder: Path, count: int, rows: int) -> Path:
    files(folder, batches(count, rows))
    return folder


def counts(rows: TimedStream) -> gw.typing.Outputs:
    windowed = rows.key_by("k").window(HALF).options(device="cpu", shards=2)
    return windowed.with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))


def longest(rows: TimedStream) -> gw.typing.Outputs:
    fine = gw.stream_results(counts(rows), "fine").key_by("k")
    minutes = fine.window(gw.TumblingEventTimeWindows.of("1 minute")).options(shards=2)
    return minutes.with_outputs().aggregate(most=gw.max("n")).select("k", "most", twice="most * 2")


def timed(source: Any, *, shared: bool) -> TimedStream:
    begun = gw.stream(source, name="rows")
    return Stream(begun.source.with_shared_rows() if shared else begun.source).event_time(
        "ts", WATERMARKS
    )


def results(spark: SparkSession, path: Path, output: str = "result") -> Counter[Any]:
    return Counter(map(tuple, gw.read_output(spark, path, output).collect()))


@pytest.mark.parametrize("shared", quick([True, False], nightly=[False]))
def test_each_target_has_the_results_that_it_has_alone(
    spark: SparkSession, tmp_path: Path, shared: bool
) -> None:
    for name, make in (("counts", counts), ("longest", longest)):
        folder = in_files(tmp_path / f"in-{name}", 4, 200)
        alone = make(timed(streamed(spark, folder), shared=False))
        gw.write_stream(
            alone, tmp_path / name, tmp_path / f"{name}-state", trigger={"availableNow": True}
        ).awaitTermination()
    rows = timed(streamed(spark, in_files(tmp_path / "in", 4, 200)), shared=shared)
    both = {"counts": counts(rows), "longest": longest(rows)}
    sinks: dict[str, Any] = {name: tmp_path / f"both-{name}" for name in both}
    state = tmp_path / "state"
    query = gw.write_stream(both, sinks, state, trigger={"availableNow": True})
    query.awaitTermination()
    for name in both:
        assert results(spark, sinks[name]) == results(spark, tmp_path / name)
        assert results(spark, sinks[name])
    late = results(spark, sinks["counts"], "late")
    assert late == results(spark, tmp_path / "counts", "late")
    assert late
    fine = results(spark, sinks["longest"], "stages/fine/late")
    assert fine == results(spark, tmp_path / "longest", "stages/fine/late")
    read = sum(progress["numInputRows"] for progress in query.recentProgress)
    assert read == 800 if shared else read > 1_600
    again = gw.write_stream(both, sinks, state, trigger={"availableNow": True})
    again.awaitTermination()
    assert results(spark, sinks["counts"]) == results(spark, tmp_path / "counts")


class _FailingOnce(gw.Sink, gw.SinkWriter):
    """Writes to a sink, and fails before its second micro-batch the first time."""

    def __init__(self, path: Path, mark: Path) -> None:
        self.sink, self.mark = gw.ParquetSink(path), mark
        self.writer: gw.SinkWriter | None = None

    def open(self, query: gw.typing.SinkQuery) -> gw.SinkWriter:
        self.writer = self.sink.open(query)
        return self

    def begin(self, query: gw.typing.SinkQuery) -> None:
        assert self.writer is not None
        self.writer.begin(query)

    def write(self, batch: gw.typing.SinkBatch) -> None:
        assert self.writer is not None
        if batch.number == 1 and not self.mark.exists():
            self.mark.touch()
            raise OSError("the disk is full")
        self.writer.write(batch)


class _Identities(gw.Sink, gw.SinkWriter):
    """Records the identity of its query."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def open(self, query: gw.typing.SinkQuery) -> gw.SinkWriter:
        self.found.append(query.identity)
        return self

    def write(self, batch: gw.typing.SinkBatch) -> None:
        pass


def test_targets_that_may_write_to_one_place_have_other_identities(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = in_files(tmp_path / "in", 1, 20)
    for _ in range(2):
        sinks = {"a": _Identities(), "b": _Identities(), "c": _Identities()}
        rows = timed(streamed(spark, folder), shared=True)
        both = {name: counts(rows) for name in sinks}
        query = gw.write_stream(both, sinks, tmp_path / "s", trigger={"availableNow": True})
        query.awaitTermination()
        found = [{*sink.found} for sink in sinks.values()]
        identities = {each for some in found for each in some}
        assert all(len(some) == 1 for some in found)
        assert len(identities) == 3
        assert all(is_identity(each) for each in identities)
    [last] = sinks["c"].found
    assert sinks["a"].found == [identity_of(last, "a")]


@pytest.mark.thorough
def test_a_sink_that_fails_gets_the_same_micro_batch_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = in_files(tmp_path / "in", 3, 200)

    def start(first: Path, second: Any, state: Path) -> Any:
        rows = timed(streamed(spark, folder), shared=True)
        both = {"counts": counts(rows), "longest": longest(rows)}
        sinks = {"counts": first, "longest": second}
        return gw.write_stream(both, sinks, state, trigger={"availableNow": True})

    start(tmp_path / "a", tmp_path / "b", tmp_path / "state-1").awaitTermination()
    failing = _FailingOnce(tmp_path / "d", tmp_path / "mark")
    with pytest.raises(Exception, match="the disk is full"):
        start(tmp_path / "c", failing, tmp_path / "state-2").awaitTermination()
    start(tmp_path / "c", failing, tmp_path / "state-2").awaitTermination()
    assert results(spark, tmp_path / "c") == results(spark, tmp_path / "a")
    assert results(spark, tmp_path / "d") == results(spark, tmp_path / "b")


def test_what_cannot_run_as_one_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = streamed(spark, in_files(tmp_path / "in", 1, 20))
    rows = timed(frame, shared=True)
    one, state = counts(rows), tmp_path / "state"
    out: dict[str, Any] = {"a": tmp_path / "a", "b": tmp_path / "b"}
    for outputs, sinks, rule in (
        ({"a": one, "b": one}, tmp_path / "a", "a sink for each"),
        ({"a": one, "b": one}, {"a": tmp_path / "a"}, "each query has a sink"),
        ({"a": one, "b": one}, {"a": tmp_path / "a", "b": tmp_path / "a"}, "two folders"),
        ({"a b": one, "b": one}, {"a b": tmp_path / "a", "b": tmp_path / "b"}, "letters, digits"),
        ({"fine": one, "b": longest(rows)}, {"fine": out["a"], "b": out["b"]}, "name of its own"),
        ({}, {}, "at least one query"),
        (one, out, "a sink for each"),
        ({"a": rows, "b": one}, out, "with_outputs"),
    ):
        with pytest.raises(QueryError, match=rule):
            gw.write_stream(outputs, sinks, state)  # type: ignore[arg-type]
    assert not state.exists()


@pytest.mark.thorough
def test_a_target_needs_no_time_that_others_have(spark: SparkSession, tmp_path: Path) -> None:
    """Windows of counts, whose results have no time, and windows of event time."""
    frame = streamed(spark, in_files(tmp_path / "in", 3, 100))
    source = gw.stream(frame, name="rows").source.with_shared_rows()
    by_count = Stream(source).key_by("k").count_window(2)
    both = {
        "counted": by_count.with_outputs().aggregate(n=gw.count()),
        "timed": counts(Stream(source).event_time("ts", WATERMARKS)),
    }
    out: dict[str, Any] = {name: tmp_path / name for name in both}
    trigger = {"availableNow": True}
    gw.write_stream(both, out, tmp_path / "state", trigger=trigger).awaitTermination()
    keys = Counter(pa.concat_tables(batches(3, 100))["k"].to_pylist())
    counted = Counter(row.k for row in gw.read_output(spark, out["counted"]).collect())
    assert counted == Counter({key: n // 2 for key, n in keys.items() if n > 1})
    assert results(spark, out["timed"])


def test_processing_time_among_several_targets_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = streamed(spark, in_files(tmp_path / "in", 1, 20))
    clock = gw.stream(frame).processing_time().key_by("k")
    clocked = clock.window(gw.TumblingProcessingTimeWindows.of("1 minute")).with_outputs()
    both = {"a": counts(timed(frame, shared=True)), "b": clocked.aggregate(n=gw.count())}
    out: dict[str, Any] = {name: tmp_path / name for name in both}
    with pytest.raises(UnsupportedQueryError, match="event time"):
        gw.write_stream(both, out, tmp_path / "state")
    assert not (tmp_path / "state").exists()
