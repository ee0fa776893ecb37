"""The benchmarks: their data, their comparison of results, their output, and quick runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from benchmarks import equality, machine, stage, suite
from benchmarks.cli import app
from benchmarks.contest import PEERS, Benchmark, Window, Work, base_name
from benchmarks.data import DAY, DISORDER, FILES, SCHEMA, START, DataSet, default_root
from benchmarks.engines import ours
from benchmarks.equality import RESULT_SCHEMA, ResultMismatchError, require_equal
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


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def ticks(table: pa.Table) -> Any:
    return table["ts"].cast(pa.int64()).to_numpy()


# ---- data


@pytest.mark.parametrize("rows", [0, 7, 8_003])
@pytest.mark.parametrize("shuffled", [False, True])
def test_data_has_its_rows_keys_and_types(root: Path, rows: int, shuffled: bool) -> None:
    folder = DataSet(rows, 13, shuffled=shuffled).ensure(root)
    assert len(list(folder.iterdir())) == FILES
    table = pq.read_table(folder)
    assert table.schema.equals(SCHEMA)
    assert len(table) == rows
    assert all(column.null_count == 0 for column in table.columns)
    assert set(table["key"].to_pylist()) <= set(range(13))
    if rows > 1_000:
        assert len(set(table["key"].to_pylist())) == 13
        assert ticks(table).min() >= START
        assert ticks(table).max() < START + DAY
        assert np.ptp(ticks(table)) > 0.99 * DAY


def test_rows_are_in_time_order_within_the_bound() -> None:
    parts = [ticks(DataSet(400_000, 10).part(index)) for index in range(FILES)]
    for index, part in enumerate(parts):
        assert part.min() >= START + index * DAY // FILES
        assert part.max() < START + (index + 1) * DAY // FILES
    rows = np.concatenate(parts)
    behind = np.maximum.accumulate(rows) - rows
    assert DISORDER // 2 < behind.max() < DISORDER


def test_shuffled_rows_are_in_no_order() -> None:
    part = ticks(DataSet(80_000, 10, shuffled=True).part(3))
    assert np.ptp(part) > 0.99 * DAY
    assert np.mean(np.diff(part) < 0) == pytest.approx(0.5, abs=0.05)


def test_data_is_made_once_and_the_same(root: Path, tmp_path: Path) -> None:
    data_set = DataSet(5_000, 5)
    folder = data_set.ensure(root)
    made = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert data_set.ensure(root) == folder
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == made
    again = data_set.ensure(tmp_path)
    assert pq.read_table(again).equals(pq.read_table(folder))


def test_other_parameters_have_another_folder() -> None:
    sets = [DataSet(10, 2), DataSet(11, 2), DataSet(10, 3), DataSet(10, 2, shuffled=True)]
    assert len({data_set.folder_name for data_set in sets}) == len(sets)


def test_an_interrupted_run_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match="no space left"):
        DataSet(10, 2).ensure(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("parameters", [(-1, 1), (1, 0)])
def test_impossible_data_is_refused(parameters: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="must not be negative, keys must be positive"):
        DataSet(*parameters)


def test_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "gpu_windows" / "benchmarks"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_root() == Path.home() / ".cache" / "gpu_windows" / "benchmarks"


# ---- equality


@pytest.fixture
def answer() -> pa.Table:
    random = np.random.default_rng(1)
    keys, starts = np.repeat(np.arange(5), 40), START + MINUTE * np.tile(np.arange(40), 5)
    time = RESULT_SCHEMA.field("window_start").type
    columns = [
        pa.array(keys),
        pa.array(starts, time),
        pa.array(starts + MINUTE, time),
        pa.array(random.normal(500, 100, keys.size)),
        pa.array(random.integers(1, 20, keys.size)),
        pa.array(random.normal(90, 5, keys.size)),
    ]
    return pa.table(columns, schema=RESULT_SCHEMA)


def changed(table: pa.Table, name: str, change: Callable[[Any], Any]) -> pa.Table:
    """Return the table with the value of its row 77 changed."""
    at, dtype = table.schema.get_field_index(name), table.schema.field(name).type
    numbers = table[name].cast(pa.int64() if pa.types.is_timestamp(dtype) else dtype)
    values = numbers.to_numpy().copy()
    values[77] = change(values[77])
    return table.set_column(at, table.schema.field(name), pa.array(values).cast(dtype))


ALTERATIONS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a row lost": lambda t: t.slice(1),
    "a row twice": lambda t: pa.concat_tables([t, t.slice(3, 1)]),
    "a row replaced": lambda t: pa.concat_tables([t.slice(1), t.slice(3, 1)]),
    "a sum off": lambda t: changed(t, "sum", lambda v: v * (1 + 1e-6)),
    "a count off": lambda t: changed(t, "count", lambda v: v + 1),
    "a maximum off": lambda t: changed(t, "max", lambda v: v + 1e-3),
    "a window moved": lambda t: changed(t, "window_start", lambda v: v + 1_000_000),
    "a window longer": lambda t: changed(t, "window_end", lambda v: v + 1),
    "a key off": lambda t: changed(t, "key", lambda v: (v + 1) % 5),
}


def test_order_and_last_bits_do_not_matter(answer: pa.Table) -> None:
    other = answer.take(pa.array(np.random.default_rng(2).permutation(len(answer))))
    other = changed(other, "sum", lambda v: v * (1 + 1e-12))
    require_equal(answer, other, ("a", "b"))
    require_equal(equality.digest(answer), equality.digest(other), ("a", "b"))


@pytest.mark.parametrize("alter", ALTERATIONS.values(), ids=ALTERATIONS)
@pytest.mark.parametrize("reduce", [equality.canonical, equality.digest])
def test_a_difference_is_found(
    answer: pa.Table, alter: Callable[[pa.Table], pa.Table], reduce: Callable[[pa.Table], pa.Table]
) -> None:
    with pytest.raises(ResultMismatchError, match=r"^a (has|and b disagree)"):
        require_equal(reduce(answer), reduce(alter(answer)), ("a", "b"))


def test_a_maximum_must_be_exact(answer: pa.Table) -> None:
    other = changed(answer, "max", lambda v: np.nextafter(v, np.inf))
    with pytest.raises(ResultMismatchError, match="1 rows differ in 'max', the first"):
        require_equal(answer, other, ("a", "b"))


def test_a_null_is_a_difference(answer: pa.Table) -> None:
    sums = pc.if_else(pc.greater(answer["count"], 5), answer["sum"], None)
    with pytest.raises(ResultMismatchError, match="nulls in column 'sum'"):
        require_equal(answer, answer.set_column(3, "sum", sums), ("a", "b"))


def test_check_names_who_differs_and_compares_equal_windows_only(answer: pa.Table) -> None:
    other = answer.slice(1)

    def work(table: pa.Table, window: Window) -> Work:
        return Work(lambda: 0.0, window, lambda: table)

    works = {"one": work(answer, TUMBLING), "two": work(other, SLIDING)}
    check(works, lambda _: None)
    with pytest.raises(ResultMismatchError, match="one has 200 rows, three 199"):
        check({**works, "three": work(other, TUMBLING)}, lambda _: None)


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


@pytest.mark.thorough
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
