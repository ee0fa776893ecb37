"""The benchmarks: how they measure, their output, and quick runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from benchmarks import machine, stage, suite
from benchmarks.cli import app
from benchmarks.contest import PEERS, Benchmark, Window, Work, base_name
from benchmarks.data import DataSet
from benchmarks.engines import ours
from benchmarks.equality import ResultMismatchError
from benchmarks.measure import Measurement, check, race
from benchmarks.report import Report
from benchmarks.runner import run
from benchmarks.stage import Resources, Stage
from gpu_windows.errors import GpuWindowsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

for package in ("duckdb", "matplotlib", "polars", "pyspark"):
    pytest.importorskip(package, reason="needs the extra `benchmarks`")

MINUTE = 60_000_000
TUMBLING = Window.of("1 minute")
SLIDING = Window.of("60 minutes", "1 minute")


# ---- measuring


def test_contestants_take_turns_and_warm_ups_do_not_count() -> None:
    turns: list[str] = []

    def work(name: str, seconds: float) -> Work:
        def measure() -> float:
            turns.append(name)
            return seconds * len(turns)

        return Work(measure, TUMBLING)

    told: list[str] = []
    works = {"a": work("a", 1.0), "b": work("b", 10.0)}
    first, second = race(works, warmups=1, repeats=3, tell=told.append)
    assert "".join(turns) == "abababab"
    assert first.runs == (3.0, 5.0, 7.0)
    assert second.runs == (40.0, 60.0, 80.0)
    assert (first.median, second.median) == (5.0, 60.0)
    assert (told[0], told[-1]) == ("a: warm-up", "b: run 3 of 3")


def test_large_results_are_compared_by_digest(root: Path) -> None:
    small, large = (Resources(DataSet(10**7, keys), root) for keys in (1_000, 10**6))
    assert not Stage(small, SLIDING).digested
    assert Stage(large, SLIDING).digested


def test_peers_are_chosen_and_ours_always_run() -> None:
    def nothing(_: Stage) -> Work:
        raise AssertionError

    names = ["gpu_windows[10]", "gpu_windows[60]", "spark[10]", "polars", "copy"]
    benchmark = Benchmark("b", "", "1 minute", dict.fromkeys(names, nothing))
    assert list(benchmark.chosen(["spark"])) == [name for name in names if name != "polars"]
    assert list(benchmark.chosen([], ["gpu_windows"])) == ["copy"]
    assert list(benchmark.chosen([], ["gpu_windows[60]"])) == ["gpu_windows[10]", "copy"]
    assert list(benchmark.chosen([], only=["gpu_windows 60", "copy"])) == [
        "gpu_windows[60]",
        "copy",
    ]
    assert list(benchmark.chosen([], only=["10"])) == ["gpu_windows[10]"]
    with pytest.raises(ValueError, match="no contestant with '60 copy' in its name"):
        benchmark.chosen([], only=["60 copy"])


@pytest.mark.parametrize("window", [("0 s", None), ("1 minute", "0 s"), ("1 minute", "2 minutes")])
def test_impossible_windows_are_refused(window: tuple[str, str | None]) -> None:
    with pytest.raises(ValueError, match="slide must be positive and not greater than size"):
        Window.of(*window)


# ---- output


@pytest.fixture
def report() -> Report:
    runs = {"gpu_windows": (0.2, 0.1, 0.3), "spark": (8.0, 9.0, 7.5), "copy": (0.01, 0.02, 0.01)}
    made = tuple(Measurement(name, SLIDING, r, floor=name == "copy") for name, r in runs.items())
    return Report("sliding", "about", DataSet(1_000, 7), made)


def test_json_has_the_fields_that_readers_rely_on(report: Report, tmp_path: Path) -> None:
    rows = json.loads(report.write_json(tmp_path / "deep" / "file.json").read_text())
    expected = {"benchmark": "sliding", "contestant": "spark", "rows": 1_000, "keys": 7}
    expected |= {"median_s": 8.0, "runs": [8.0, 9.0, 7.5], "shuffled": False, "floor": False}
    expected |= {"size_us": 60 * MINUTE, "slide_us": MINUTE}
    assert rows[1].items() >= expected.items()
    assert all(row["machine"]["cores"] >= 1 for row in rows)
    assert all(row["versions"]["pyarrow"] == pa.__version__ for row in rows)
    assert len({row["contestant"] for row in rows}) == len(rows)


def test_a_folder_gets_a_file_named_by_machine(report: Report, tmp_path: Path) -> None:
    name = report.write_json(tmp_path).name
    assert name.startswith("sliding-1000-rows-7-keys-ordered-")
    assert name.endswith(f"-{machine.slug()}.json")
    assert re.fullmatch(r"[a-z0-9-]+", machine.slug())


def test_ratio_and_picture(report: Report, tmp_path: Path) -> None:
    from benchmarks.plot import save

    assert report.ratio(report.measurements[1]) == pytest.approx(40.0)
    assert report.ratio(Measurement("spark", TUMBLING, (1.0,))) is None
    save(report, tmp_path / "deep" / "picture.png")
    assert (tmp_path / "deep" / "picture.png").read_bytes().startswith(b"\x89PNG")


# ---- engines and benchmarks


@pytest.mark.parametrize("name", suite.names())
def test_a_benchmark_is_named_by_its_file_and_has_ours(name: str) -> None:
    benchmark = suite.load(name)
    assert benchmark.name == name
    assert "gpu_windows" in benchmark.names
    assert set(benchmark.peers) <= benchmark.names & set(PEERS)
    assert all(base_name(contestant) for contestant in benchmark.contestants)


@pytest.mark.parametrize("sizes", ["60 / 1", "25 / 10", "7 / 7"])
def test_engines_in_memory_agree(root: Path, sizes: str) -> None:
    from benchmarks.engines import duckdb, polars

    window = Window.of(*(f"{minutes} minutes" for minutes in sizes.split(" / ")))
    at = Stage(Resources(DataSet(3_000, 4), root), window)
    factories = {
        "gpu_windows": ours.from_memory(),
        "polars": polars.from_memory(polars.dynamic),
        "polars, files": polars.from_parquet(polars.dynamic),
        "duckdb": duckdb.from_memory(),
        "duckdb, files": duckdb.from_parquet(),
    }
    check({name: factory(at) for name, factory in factories.items()}, lambda _: None)


def test_kernels_runs(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "kernels.json"
    arguments = ["kernels", "--quick", "--data", str(root), "--json", str(file)]
    shown = CliRunner().invoke(app, [*arguments, "--peers", "polars,spark"])
    assert shown.exit_code == 0, shown.output
    assert "kernels has no contestant spark" in shown.output
    rows = json.loads(file.read_text())
    assert [row["contestant"] for row in rows] == ["gpu_windows", "polars", "copy"]
    assert {(row["rows"], row["keys"]) for row in rows} == {(20_000, 20)}
    assert all(row["median_s"] == row["runs"][0] > 0 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["nothing"], "a benchmark must be one of"),
        (["kernels", "--peers", "pandas"], "a contestant must be one of"),
        (["kernels", "--slide", "2 minutes"], "slide must be positive"),
        (["kernels", "--size", "a while"], "a duration must read"),
        (["kernels", "--peers", "", "--without", "gpu_windows,copy"], "has no contestant left"),
    ],
)
def test_bad_arguments_are_refused(root: Path, arguments: list[str], rule: str) -> None:
    shown = CliRunner().invoke(app, [*arguments, "--quick", "--data", str(root)])
    assert shown.exit_code == 1
    assert rule in " ".join(shown.output.split())


def test_a_wrong_result_is_not_timed(root: Path) -> None:
    import polars as pl

    from benchmarks.engines import polars

    def off_by_a_little(frame: Any, window: Window) -> Any:
        return polars.dynamic(frame, window).with_columns(max=pl.col("max") + 1e-3)

    benchmark = suite.load("kernels")
    contestants = {**benchmark.contestants, "polars": polars.from_memory(off_by_a_little)}
    with (
        Resources(DataSet(3_000, 4), root) as resources,
        pytest.raises(ResultMismatchError, match="gpu_windows and polars disagree"),
    ):
        run(replace(benchmark, contestants=contestants), resources, TUMBLING, peers=("polars",))


@pytest.mark.slow
@pytest.mark.parametrize("digested", [False, True])
def test_contestants_on_spark_agree(
    root: Path, spark: SparkSession, digested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if digested:
        monkeypatch.setattr(stage, "MOST_ROWS", 0)
    benchmark = suite.load("sliding")
    window = Window.of("25 minutes", "10 minutes")
    with Resources(DataSet(2_000, 4), root, spark=spark) as resources:
        report = run(benchmark, resources, window, peers=benchmark.peers, repeats=1)
    assert [m.contestant for m in report.measurements] == list(benchmark.contestants)
    assert [m.contestant for m in report.measurements if m.floor] == ["identity"]


def test_flatness_is_shown_as_ratios() -> None:
    benchmark = suite.load("sliding_flat")
    seconds = {10: 2.0, 60: 2.2, 600: 2.5}
    made = [Measurement(f"gpu_windows[{n} slides]", TUMBLING, (s,)) for n, s in seconds.items()]
    assert list(benchmark.summary(made))[1:] == ["gpu_windows: 1.00 : 1.10 : 1.25"]


@pytest.mark.slow
@pytest.mark.spark
def test_the_first_result_comes_from_a_process_of_its_own(root: Path) -> None:
    contestants = suite.load("cold").contestants
    with Resources(DataSet(2_000, 4), root) as resources:
        at = Stage(resources, TUMBLING)
        assert contestants["gpu_windows_kernels[no cache]"](at).measure() > 0
        assert contestants["identity"](at).measure() > 0


def test_our_errors_end_a_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise GpuWindowsError("no such luck", value=13)

    monkeypatch.setattr(ours, "query", refuse)
    shown = CliRunner().invoke(app, ["kernels", "--quick", "--data", str(root)])
    assert shown.exit_code == 1
    assert "GpuWindowsError no such luck, got 13" in shown.output
