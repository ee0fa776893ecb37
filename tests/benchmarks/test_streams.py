"""The benchmarks of streams: micro-batches, turns, and quick runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from benchmarks import soak, suite
from benchmarks.cli import app
from benchmarks.contest import Benchmark, Window, Work
from benchmarks.data import DISORDER, SCHEMA, START, DataSet
from benchmarks.equality import ResultMismatchError
from benchmarks.measure import race, turns, warm_up
from benchmarks.runner import run
from benchmarks.soak import Pace
from benchmarks.stage import Resources, Stage
from benchmarks.stream_data import StreamData, TwoStreams
from benchmarks.streams import Feed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark", reason="needs the extra `spark`")

MINUTE = 60_000_000
TUMBLING = Window.of("1 minute")
#: All but the one that has no Spark.
STREAMS = [n for n in suite.names() if n.startswith("stream_") and n != "stream_growth"]
SMALL = StreamData(400, 7)


def ticks(table: pa.Table) -> Any:
    return table["ts"].cast(pa.int64()).to_numpy()


# ---- data


def test_micro_batches_come_in_order_of_time_and_are_never_late() -> None:
    data = StreamData(20_000, 13)
    assert [make(2) for make in data.inputs] == [data.micro_batch(2)]
    latest = 0
    for index in range(4):
        table = data.micro_batch(index)
        assert table.schema.equals(SCHEMA)
        assert (len(table), len(set(table["key"].to_pylist()))) == (20_000, 13)
        assert ticks(table).min() > latest - DISORDER  # so Spark's watermark drops none
        assert START + index * data.span < ticks(table).max() < START + 16 * MINUTE * (index + 1)
        behind = np.maximum.accumulate(ticks(table)) - ticks(table)
        assert DISORDER // 2 < behind.max() < DISORDER
        latest = ticks(table).max()
    assert data.micro_batch(2).equals(data.micro_batch(2))
    assert not data.micro_batch(2).equals(data.micro_batch(3))


def test_two_inputs_have_rows_of_the_same_time() -> None:
    left, right = (make(3) for make in TwoStreams(20_000, 13).inputs)
    assert left.equals(StreamData(20_000, 13).micro_batch(3))
    assert len(left) == len(right)
    assert not left["ts"].equals(right["ts"])
    assert abs(ticks(left).mean() - ticks(right).mean()) < MINUTE
    assert TwoStreams(1_000, 5).describe().startswith("two inputs, micro-batches of 1,000 rows")


def test_streams_are_named_by_all_that_makes_them() -> None:
    assert StreamData(1_000, 5).describe() == "micro-batches of 1,000 rows and 15 min, 5 keys"
    names = {d.folder_name for d in (SMALL, replace(SMALL, span=MINUTE), DataSet(400, 7))}
    assert len(names) == 3
    with pytest.raises(ValueError, match="in order of time, got shuffled"):
        StreamData(10, 2, shuffled=True)


@pytest.mark.parametrize("times", [1, 50])
def test_state_is_filled_once_and_touched_between_two_ends_of_windows(times: int) -> None:
    from benchmarks.suite import stream_keys

    data, slide = StreamData(300, 11), 10 * MINUTE
    fill = stream_keys._batch(data, slide, times, 0)
    assert sorted(fill["key"].to_pylist()) == list(range(11 * times))
    assert ticks(fill).max() < START + slide
    benchmark = stream_keys.BENCHMARK
    for index in range(1, benchmark.warmups + benchmark.repeats + 1):
        rows = stream_keys._batch(data, slide, times, index)
        assert len(rows) == 300
        assert set(rows["key"].to_pylist()) <= set(range(11))
        assert START + slide + DISORDER <= ticks(rows).min()
        assert ticks(rows).max() < START + 2 * slide


# ---- turns


@pytest.mark.thorough
def test_details_are_asked_for_after_the_last_run() -> None:
    runs: list[str] = []

    def work(name: str) -> Work:
        def measure() -> float:
            runs.append(name)
            return 1.0

        return Work(measure, TUMBLING, details=lambda n: {"runs": [*n], "before": len(runs)})

    works = {"a": work("a"), "b": work("b")}
    made = race(works, warmups=1, repeats=2, tell=lambda _: None)
    assert [m.details for m in made] == [{"runs": [1, 2], "before": 6}] * 2
    runs.clear()
    made = race(works, warmups=2, repeats=3, in_a_row=2, tell=lambda _: None)
    assert "".join(runs) == "aaaabbbb" + "aabb"
    assert [m.details["runs"] for m in made] == [[2, 3, 5]] * 2
    assert [len(m.runs) for m in made] == [3, 3]


def test_contestants_are_warmed_up_where_they_can_be() -> None:
    asked: list[float] = []
    works = {"a": Work(lambda: 1.0, TUMBLING, warm=asked.append), "b": Work(lambda: 1.0, TUMBLING)}
    warm_up(works, 0.0, lambda _: None)
    assert asked == []
    warm_up(works, 2.0, lambda _: None)
    assert asked == [2.0]


def test_turns_of_several_runs_begin_with_one_that_does_not_count() -> None:
    assert [*turns(1, 3, 1)] == [(1, 0), (0, 1), (0, 1), (0, 1)]
    assert [*turns(4, 6, 3)] == [(4, 3), (1, 3)]
    assert [*turns(0, 5, 2)] == [(1, 2), (1, 2), (1, 1)]


@pytest.mark.thorough
def test_results_of_the_runs_themselves_are_compared_after_them(tmp_path: Path) -> None:
    done: list[str] = []

    def contestant(name: str, keys: list[int]) -> Any:
        def factory(stage: Stage) -> Work:
            def measure() -> float:
                done.append(name)
                return 1.0

            def result() -> pa.Table:
                done.append(f"result of {name}")
                return pa.table({"key": keys})

            return Work(measure, stage.window, result)

        return factory

    contestants = {"gpu_windows": contestant("a", [1, 2]), "spark": contestant("b", [2, 1])}
    benchmark = Benchmark(
        "b", "", "1 minute", contestants, warmups=0, repeats=2, checks_runs=True, data=StreamData
    )
    with Resources(SMALL, tmp_path) as resources:
        report = run(benchmark, resources, TUMBLING, peers=("spark",))
        assert done == ["a", "b", "a", "b", "result of a", "result of b"]
        assert [m.runs for m in report.measurements] == [(1.0, 1.0)] * 2
        other = {**contestants, "spark": contestant("b", [2, 3])}
        with pytest.raises(ResultMismatchError, match="rows differ in 'key'"):
            run(replace(benchmark, contestants=other), resources, TUMBLING, peers=("spark",))


class Query:
    """A streaming query that has taken another micro-batch each time it is asked again."""

    def __init__(self, *taken: int) -> None:
        self._taken = taken
        self._asked = 0

    def processAllAvailable(self) -> None:  # noqa: N802
        self._asked += 1

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802
        before = SimpleNamespace(batchId=3, numInputRows=400)
        nothing = SimpleNamespace(batchId=4, numInputRows=0)
        new = [SimpleNamespace(batchId=5 + i, numInputRows=n) for i, n in enumerate(self._taken)]
        return [before, nothing, *new[: self._asked - 1]]


def test_a_feed_waits_for_the_micro_batch_of_its_file() -> None:
    feed = Feed(cast(Stage, None), cast(Any, None), SMALL.micro_batch)
    feed._last = 3
    assert [p.batchId for p in feed._progress(cast(Any, Query(400)), 400)] == [5]
    feed._last = 3
    with pytest.raises(RuntimeError, match="400 rows given, 399 taken"):
        feed._progress(cast(Any, Query(399)), 400)


def test_the_files_of_two_inputs_may_come_in_two_micro_batches() -> None:
    feed = Feed(cast(Stage, None), cast(Any, None), *TwoStreams(400, 7).inputs)
    for taken in ((800,), (400, 400)):
        feed._last = 3
        found = feed._progress(cast(Any, Query(*taken)), 800)
        assert [p.numInputRows for p in found] == [*taken]
    feed._last = 3
    with pytest.raises(RuntimeError, match="800 rows given, 799 taken"):
        feed._progress(cast(Any, Query(400, 399)), 800)


def test_a_steady_rate_waits_and_does_not_catch_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now, begins = [100.0], []

    def sleep(seconds: float) -> None:
        now[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(soak, "time", clock)
    pace = Pace(10.0)
    for took in (3.0, 25.0, 1.0, 1.0):
        pace.wait()
        begins.append(now[0])
        now[0] += took
    assert begins == [100.0, 110.0, 135.0, 145.0]


# ---- the command line


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["kernels", "--minutes", "2"], "kernels has no steady rate"),
        (["stream_tumbling", "--shuffled"], "in order of time, got shuffled"),
    ],
)
def test_bad_arguments_are_refused(tmp_path: Path, arguments: list[str], rule: str) -> None:
    shown = CliRunner().invoke(app, [*arguments, "--data", str(tmp_path), "--rows", "10"])
    assert shown.exit_code == 1
    assert rule in " ".join(shown.output.split())


def test_minutes_are_as_many_runs() -> None:
    from benchmarks.cli import _repeats

    benchmark = suite.load("stream_soak")
    assert _repeats(benchmark, None, None) is None
    assert _repeats(benchmark, 4, None) == 4
    assert _repeats(benchmark, None, 15.0) == benchmark.repeats == 90
    assert _repeats(benchmark, None, 0.1) == 1


# ---- on Spark


@pytest.mark.slow
def test_a_stream_of_ours_and_of_spark_agree(spark: SparkSession, tmp_path: Path) -> None:
    loaded = suite.load("stream_tumbling")
    assert loaded.warm_seconds == 120
    benchmark = replace(loaded, warm_seconds=0.01, warmups=1, repeats=2)
    told: list[str] = []
    with Resources(SMALL, tmp_path, spark=spark) as resources:
        report = run(benchmark, resources, TUMBLING, peers=("spark",), tell=told.append)
    warm = [text for text in told if "s of warm-up" in text]
    names = ("gpu_windows", "gpu_windows_scan", "spark")
    assert warm == [f"{name}: 0.01 s of warm-up" for name in names]
    ours, scan, theirs = report.measurements
    assert (ours.contestant, scan.contestant, theirs.contestant) == names
    assert len(ours.runs) == len(scan.runs) == len(theirs.runs) == 2
    assert all(m.details["state_live_bytes"] > 0 for m in report.measurements)
    assert all(m.details["cpu_s"] > 0 for m in report.measurements)
    assert theirs.details["state_rows"] > 0
    assert [m.details["state_in"] for m in report.measurements] == ["files", "files", "RocksDB"]
    assert ours.details["state_held_bytes"] >= ours.details["state_live_bytes"]
    assert any("target 0.9" in note for note in report.notes)
    assert spark.conf.get("spark.sql.streaming.noDataMicroBatches.enabled") == "true"


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_streams_run(spark: SparkSession, tmp_path: Path, name: str) -> None:
    benchmark = replace(suite.load(name), warm_seconds=0.0)
    window = Window.of(benchmark.size, benchmark.slide)
    with Resources(benchmark.data(400, 7), tmp_path, spark=spark) as resources:
        report = run(benchmark, resources, window, peers=benchmark.peers, repeats=1)
    assert [m.contestant for m in report.measurements] == list(benchmark.contestants)
    assert all(m.details for m in report.measurements)


@pytest.mark.slow
def test_the_result_is_that_of_all_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    with Resources(SMALL, tmp_path, spark=spark) as resources:
        work = suite.load("stream_tumbling").contestants["spark"](Stage(resources, TUMBLING))
        for _ in range(3):
            assert work.measure() > 0
        assert work.result is not None
        whole = work.result()
    assert sum(whole["count"].to_pylist()) == rows_that_are_closed(3, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpu_windows", "spark"])
def test_a_last_micro_batch_closes_what_is_left_to_close(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    with Resources(SMALL, tmp_path, spark=spark) as resources:
        work = suite.load("stream_tumbling").contestants[name](Stage(resources, TUMBLING))
        for _ in range(2):
            work.measure()
        details = work.details([0, 1])
        assert work.result is not None
        whole = work.result()
    assert sum(whole["count"].to_pylist()) == rows_that_are_closed(3, 3)
    assert 0 < details["state_live_bytes"] <= details["state_held_bytes"]


def rows_that_are_closed(given: int, at: int) -> int:
    """Count rows of micro-batches in windows that have ended at the watermark after some."""
    rows = np.concatenate([ticks(SMALL.micro_batch(index)) for index in range(given)])
    watermark = ticks(SMALL.micro_batch(at - 1)).max() // 1_000 * 1_000 - DISORDER
    return int(np.count_nonzero(rows // MINUTE * MINUTE + MINUTE <= watermark))
