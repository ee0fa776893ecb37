"""The benchmark that counts what a shard reads and writes as its state grows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from benchmarks import suite
from benchmarks.cli import app
from benchmarks.contest import Window
from benchmarks.data import DataSet
from benchmarks.measure import Measurement
from benchmarks.report import Report
from benchmarks.runner import run
from benchmarks.shard_counts import MANIFEST, Access, CountingLog, Phase, Tally, Traffic
from benchmarks.shard_data import PATTERNS, ShardData
from benchmarks.shard_figures import ALLOWANCE, Course, columns, verdicts
from benchmarks.shard_queries import QUERIES
from benchmarks.shard_work import Cost, ShardWork
from benchmarks.stage import Resources
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.operators.state.buffer_spec import KeyColumns
from gpu_windows.operators.state.whole_table import WholeTable
from gpu_windows.planning.plan import Strategy
from tests.lanes import quick

TINY = ShardData(rows=3, keys=12, batches=4)
HOUR = Window.of("1 hour")


# ---- data


def test_the_first_micro_batch_has_every_key_and_the_others_those_of_their_pattern() -> None:
    assert sorted(TINY.fill()["key"].to_pylist()) == list(range(12))
    keys = {
        pattern: [TINY.micro_batch(pattern, index)["key"].to_pylist() for index in range(1, 40)]
        for pattern in PATTERNS
    }
    for each in keys.values():
        assert all(len(set(touched)) == len(touched) for touched in each)
    assert {len(touched) for touched in keys["random"]} == {3}
    assert set().union(*keys["random"]) == set(range(12))
    assert {frozenset(touched) for touched in keys["hot"]} == {frozenset(keys["hot"][0])}
    assert all(sorted(touched) == list(range(12)) for touched in keys["all"])
    assert TINY.micro_batch("random", 7).equals(TINY.micro_batch("random", 7))


def test_micro_batches_follow_each_other_in_time() -> None:
    tables = [TINY.fill(), *(TINY.micro_batch("all", index) for index in range(1, 4))]
    ts = np.concatenate([table["ts"].to_numpy() for table in tables])
    assert (np.diff(ts) >= 0).all()


def test_there_are_fewer_micro_batches_of_many_keys() -> None:
    data = ShardData(keys=100_000)
    assert (data.count("random"), data.count("hot", 2), data.count("all", 2)) == (100, 200, 20)
    assert ShardData(keys=1_000_000).count("all", 2) == 4
    assert ShardData(keys=1_000_000).limited(3).count("all") == 3
    assert ShardData(keys=50).touched == 50
    assert (
        ShardData(keys=50).describe() == "50 keys of a shard, micro-batches that touch 50 of them"
    )
    with pytest.raises(ValueError, match="in order of time, got shuffled"):
        ShardData(shuffled=True)
    with pytest.raises(ValueError, match="have no number of micro-batches"):
        DataSet().limited(3)


# ---- counting


def test_state_files_are_counted_with_all_that_is_in_them(tmp_path: Path) -> None:
    files, tally = LocalFiles(str(tmp_path)), Tally()

    def write(newest: str | None, name: str, *tables: str) -> int:
        """Write tables as a whole, in place of those that there are; return the bytes."""
        log = CountingLog(files, newest, tally)
        tally.phase = "taking"
        whole = {table: WholeTable(log, table, KeyColumns.NONE) for table in ("a", "b")}
        for table in tables:
            whole[table].load()
        tally.phase = "saving"
        for table in tables:
            whole[table].save(pa.table({"value": [*range(9)]}))
        assert log.finish(name) == name
        tally.phase = "restoring"
        return (tmp_path / name).stat().st_size

    size = write(None, "1", "a", "b")
    first = tally.take()
    assert (first.bytes_of("read"), first.bytes_of("write")) == (0, size)
    assert min(first.bytes_of("write", table) for table in ("a", "b", MANIFEST)) > 0
    assert (first.calls_of("read"), first.calls_of("write")) == (0, 1)
    size = write("1", "2", "a")
    second = tally.take()
    assert second.bytes_of("read", "a") == second.read_while("taking") > 0
    assert second.bytes_of("read", MANIFEST) == second.read_while("restoring") > 0
    assert second.bytes_of("write") == size
    assert second.tables == {"a", "b", MANIFEST}  # of the file of b half has expired
    assert second.bytes_of("read", "b") == second.read_while("saving") > 0
    assert tally.take() == Traffic({}, {})


@pytest.mark.parametrize("name", quick(QUERIES, "slices sliding"))
def test_state_holds_all_rows_until_the_end(name: str, tmp_path: Path) -> None:
    """Every row is in a result, and all fire at the end that fire with time."""
    query = QUERIES[name]
    work, given = ShardWork(query.plan, tmp_path), [TINY.fill()]
    costs = [work.micro_batch(query.filled(given[0]))]
    for index in (1, 2):
        given.append(TINY.micro_batch("random", index))
        costs.append(work.micro_batch(query.given(given[-1])))
        assert len(query.entries(given[-1])) == len(query.given(given[-1]))
    assert 0 < work.live_bytes < work.file_bytes
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == work.file_bytes
    end = work.end()
    assert [cost.results for cost in costs] + [end.results] == expected(name, given)
    assert all(cost.traffic.bytes_of("write") > 0 for cost in costs)


def expected(name: str, given: list[pa.Table]) -> list[int]:
    """Return the number of results of three micro-batches and of the end of time."""
    rest = [table["key"].to_pylist() for table in given[1:]]
    if name == "user function":  # at every row
        return [12, 3, 3, 0]
    if name.startswith(("panes trigger", "counts")):  # never
        return [0, 0, 0, 0]
    if name.startswith("join"):
        both = set(rest[0]) & set(rest[1])
        alone = 12 - len({*rest[0], *rest[1]}) if name == "join full" else 0
        # a right row meets the left ones before it, a left one the right ones: 2 and then 4 more
        return [0, 2 * 3, 2 * 3 + 2 * len(both), alone]
    if name == "slices sliding":
        minutes = {
            (key, ts // 60_000_000) for t in given for key, ts in zip(*pairs(t), strict=True)
        }
        windows = {(key, minute - back) for key, minute in minutes for back in range(60)}
        return [0, 0, 0, len(windows)]
    return [0, 0, 0, 12]


def pairs(table: pa.Table) -> tuple[list[int], list[int]]:
    return table["key"].to_pylist(), table["ts"].to_pylist()


# ---- what is aimed at


def cost(phase: Phase = "saving", *, read: int = 0, write: int = 0) -> Cost:
    accesses = {Access(phase, "read", "a"): read, Access("saving", "write", "a"): write}
    return Cost(0.5, Traffic(dict.fromkeys(accesses, 1), accesses), 3, 2, 1_000)


def checked(costs: list[Cost], **what: bool) -> dict[str, bool]:
    course = Course(cost(), costs, cost(), 77, 99)
    return {each.what: each.reached for each in course.checks(**{**_NEITHER, **what})}


_NEITHER = {"mergeable": False, "flat": False}
MOST = 4 * 1_000 + ALLOWANCE


def test_bytes_are_compared_with_those_of_the_entries_touched() -> None:
    assert checked([cost(write=MOST - 1), cost(write=MOST + 1)]) == {"written": True, "read": True}
    assert checked([cost(write=MOST), cost(write=MOST + 1)])["written"] is False
    assert checked([cost(read=2 * 16_000 + ALLOWANCE)])["read"] is True
    assert checked([cost("restoring", read=2 * 16_000 + ALLOWANCE + 1)])["read"] is False


def test_what_can_be_merged_is_read_by_compaction_alone() -> None:
    assert checked([cost(read=MOST)], mergeable=True) == {
        "written": True,
        "read while rows are taken": True,
        "read otherwise": True,
    }
    assert checked([cost(read=MOST + 1)], mergeable=True)["read otherwise"] is False
    assert checked([cost("taking", read=1)], mergeable=True)["read while rows are taken"] is False


@pytest.mark.parametrize(
    ("written", "flat"),
    [([10] * 8, True), ([10, 10, 99, 10, 10, 10, 12, 12], True), ([1, 2, 3, 4, 5, 6, 7, 8], False)],
)
def test_bytes_are_flat_if_the_last_quarter_takes_hardly_more(
    written: list[int], flat: bool
) -> None:
    assert checked([cost(write=n) for n in written], flat=True)["last quarter"] is flat


def test_a_missed_target_is_told() -> None:
    course = Course(cost(), [cost(read=5, write=MOST + 2_000)], cost(), 77, 99)
    checks = [check.row() for check in course.checks(mergeable=True, flat=False)]
    made = Measurement(
        "gpu_windows[x]", HOUR, (0.5,), details={**course.details(), "checks": checks}
    )
    assert verdicts([made]) == [
        "gpu_windows[x]: written 70.00 kB, at most 68.00: missed",
        "gpu_windows[x]: read while rows are taken 0.00 kB, at most 0.00: reached",
        "gpu_windows[x]: read otherwise 0.01 kB, at most 68.00: reached",
        "1 of 3 targets missed",
    ]
    assert columns(made).items() >= {"CPU ms": "500.0", "touched kB": "1.0", "missed": "1"}.items()


# ---- runs


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    with Resources(TINY, tmp_path_factory.mktemp("data")) as resources:
        only = ("slices tumbling random", "sessions hot", "join full all", "user function all")
        return run(suite.load("stream_growth"), resources, HOUR, peers=(), only=only)


@pytest.mark.thorough
def test_every_query_is_measured(report: Report) -> None:
    assert len(suite.load("stream_growth").contestants) == len(QUERIES) * len(PATTERNS)
    assert len(report.measurements) == 6
    for m in report.measurements:
        seen: dict[str, Any] = dict(m.details)
        assert seen["micro_batches"] == (8 if "sessions" in m.contestant else 4)
        assert seen["keys_touched"] == (12 if m.contestant.endswith("all]") else 3)
        assert 0 < seen["written_bytes"]["median"] <= seen["written_bytes"]["max"]
        tables = seen["tables"].values()
        for name in ("read", "written"):
            of_tables = sum(table[f"{name}_bytes"] for table in tables)
            assert of_tables == pytest.approx(seen[f"{name}_bytes"]["mean"])
        assert sum(seen["read_bytes_while"].values()) == pytest.approx(seen["read_bytes"]["mean"])
        assert m.median == seen["cpu_s"]["mean"] > 0
    assert report.notes[-1].endswith("targets missed") or "load" in report.notes[-1]
    json.dumps(report.rows())


def test_a_workload_is_run_alone(tmp_path: Path) -> None:
    file = tmp_path / "slices.json"
    arguments = ["stream_growth", "--quick", "--batches", "2", "--json", str(file)]
    only = ["--only", "slices tumbling hot, join all"]
    shown = CliRunner().invoke(app, [*arguments, *only], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    names = [row["contestant"] for row in json.loads(file.read_text())]
    ends = ("slices tumbling hot", "join inner all", "join full all")
    assert names == [f"gpu_windows[{end}]" for end in ends]
    assert "written kB" in shown.output
    assert "ratio" not in shown.output


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["stream_growth", "--only", "slicing"], "no contestant with 'slicing' in its name"),
        (["kernels", "--batches", "3"], "have no number of micro-batches"),
    ],
)
def test_bad_arguments_are_refused(arguments: list[str], rule: str) -> None:
    shown = CliRunner().invoke(app, [*arguments, "--quick"])
    assert shown.exit_code == 1
    assert rule in " ".join(shown.output.split())


def test_queries_run_on_the_kernels_where_they_can() -> None:
    strategies = {name: query.plan.strategy for name, query in QUERIES.items()}
    by_row = [name for name, each in strategies.items() if each is Strategy.ROW_AT_A_TIME]
    assert by_row == ["user trigger", "user function"]


def test_it_runs_where_pyspark_is_not() -> None:
    code = "import sys; sys.modules['pyspark'] = None; import benchmarks.suite.stream_growth"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
