"""The benchmarks of interval joins: their data, checksums, targets, and quick runs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import suite
from benchmarks.contest import Window
from benchmarks.data import SECOND, START, DataSet
from benchmarks.engines import ours
from benchmarks.equality import PAIRS, ResultMismatchError, require_equal
from benchmarks.join_data import HotData, JoinData
from benchmarks.joins import checksums, in_memory
from benchmarks.measure import Measurement, check
from benchmarks.runner import run
from benchmarks.stage import Resources, Stage
from benchmarks.verdict import faster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

for package in ("duckdb", "pyspark"):
    pytest.importorskip(package, reason="needs the extra `benchmarks`")

NEAR = Window.of("5 seconds")


def ticks(table: pa.Table, name: str = "ts") -> Any:
    return table[name].cast(pa.int64()).to_numpy()


def nested_loops(left: pa.Table, right: pa.Table, window: Window) -> pa.Table:
    near = np.abs(ticks(left)[:, None] - ticks(right)[None, :]) <= window.size
    same = left["key"].to_numpy()[:, None] == right["key"].to_numpy()[None, :]
    i, j = (pa.array(places) for places in np.nonzero(near & same))
    mine, other = left.take(i), right.take(j)
    columns = [mine["key"], mine["value"], mine["ts"], other["value"], other["ts"]]
    return pa.table(columns, names=list(PAIRS))


# ---- data


def test_both_sides_are_the_first_file_of_data_d(tmp_path: Path) -> None:
    data = JoinData(1_000, 13)
    left, right = data.sides(data.ensure(tmp_path))
    assert left == right
    assert pq.read_table(left).equals(DataSet(8_000, 13).part(0))
    assert data.folder_name != DataSet(1_000, 13).folder_name


def test_a_hot_key_has_as_many_pairs_as_it_says(tmp_path: Path) -> None:
    data = HotData(5_000)
    left, right = map(pq.read_table, data.sides(data.ensure(tmp_path)))
    assert (len(left), len(right)) == (5_000, 1_000)
    assert set(left["key"].to_pylist()) == set(right["key"].to_pylist()) == {0}
    pairs = len(nested_loops(left, right, NEAR))
    assert pairs == pytest.approx(8_000_000 / 20**2, rel=0.05)
    assert np.all(np.diff(ticks(left)) >= 0)
    assert np.any(np.diff(ticks(HotData(5_000, shuffled=True).part(0))) < 0)


# ---- checksums


@pytest.fixture(scope="module")
def pairs() -> pa.Table:
    left, right = (HotData(2_000, 3).part(index) for index in range(2))
    return nested_loops(left, right, NEAR)


def swapped(table: pa.Table, *columns: str) -> pa.Table:
    """Exchange values between two pairs of other rows, but of one key and second."""
    keys, left, right = (ticks(table, name) for name in ("key", "left_ts", "right_ts"))
    first, second = next(
        (i, j)
        for i, j in combinations(range(len(table)), 2)
        if keys[i] == keys[j] and left[i] // SECOND == left[j] // SECOND
        if left[i] != left[j] and right[i] != right[j]
    )
    order = np.arange(len(table))
    order[[first, second]] = second, first
    for name in columns:
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].take(pa.array(order)))
    return table


ALTERATIONS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a pair lost": lambda t: t.slice(1),
    "a pair twice": lambda t: pa.concat_tables([t, t.slice(3, 1)]),
    "a pair replaced": lambda t: pa.concat_tables([t.slice(1), t.slice(3, 1)]),
    "right values swapped": lambda t: swapped(t, "right_value"),
    "right times swapped": lambda t: swapped(t, "right_ts"),
    "partners swapped": lambda t: swapped(t, "right_value", "right_ts"),
}


def test_order_does_not_change_checksums(pairs: pa.Table) -> None:
    other = pairs.take(pa.array(np.random.default_rng(2).permutation(len(pairs))))
    require_equal(checksums(pairs), checksums(other), ("a", "b"))
    assert sum(checksums(pairs)["count_all"].to_pylist()) == len(pairs)


@pytest.mark.parametrize("alter", ALTERATIONS.values(), ids=ALTERATIONS)
def test_checksums_show_a_difference(
    pairs: pa.Table, alter: Callable[[pa.Table], pa.Table]
) -> None:
    with pytest.raises(ResultMismatchError, match=r"^a (has|and b disagree)"):
        require_equal(checksums(pairs), checksums(alter(pairs)), ("a", "b"))


# ---- targets


def test_targets_are_told_of_those_who_took_part() -> None:
    seconds = {"gpu_windows": 2.0, "spark": 30.0, "gpu_windows[local]": 1.0, "duckdb": 4.0}
    made = [Measurement(name, NEAR, (s,)) for name, s in seconds.items()]
    assert suite.load("interval_join").summary(made) == [
        "15.00 times spark's rows a second, target 15: reached",
        "gpu_windows[local]: 4.00 times duckdb's rows a second, target 5: missed",
    ]
    assert suite.load("interval_join_hot").summary(made) == [
        "15.00 times spark's rows a second, target 25: missed"
    ]
    assert faster("gpu_windows", "duckdb", None, made) == ["2.00 times duckdb's rows a second"]


# ---- engines and benchmarks


@pytest.mark.parametrize("size", ["5 seconds", "7 minutes"])
@pytest.mark.parametrize("data", [JoinData(400, 4), HotData(400, 2)])
def test_engines_in_memory_agree(tmp_path: Path, data: JoinData, size: str) -> None:
    from benchmarks.engines import duckdb

    at = Stage(Resources(data, tmp_path), Window.of(size))
    joins = {
        "nested loops": nested_loops,
        "gpu_windows": ours.joined,
        "duckdb": duckdb.in_time,
        "duckdb, buckets": duckdb.in_time_by_buckets,
    }
    check({name: in_memory(join)(at) for name, join in joins.items()}, lambda _: None)


def test_buckets_hold_for_bounds_that_are_met_exactly() -> None:
    from benchmarks.engines import duckdb

    times = START + NEAR.size * np.arange(-3, 9)
    rows = DataSet(8 * len(times), 1).part(0)
    rows = rows.set_column(1, "ts", pa.array(times, rows.schema.field("ts").type))
    wanted = checksums(nested_loops(rows, rows, NEAR))
    for join in (ours.joined, duckdb.in_time, duckdb.in_time_by_buckets):
        require_equal(wanted, checksums(join(rows, rows, NEAR)), ("nested loops", str(join)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["interval_join", "interval_join_hot"])
def test_contestants_on_spark_agree(tmp_path: Path, spark: SparkSession, name: str) -> None:
    benchmark = suite.load(name)
    with Resources(benchmark.data(600, 2), tmp_path, spark=spark) as resources:
        report = run(benchmark, resources, NEAR, peers=benchmark.peers, repeats=1)
    assert [m.contestant for m in report.measurements] == list(benchmark.contestants)
