"""``python -m tests.conformance``: golden data pass, a wrong answer does not."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from gpu_windows.planning.planner import plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.options import Options
from tests.conformance.called import GOLDEN, conformance, last_line, spoiled
from tests.conformance.cases import Case
from tests.conformance.compare import compare_replay
from tests.conformance.replay import replay
from tests.conformance.scenario import read_scenario
from tests.conformance.translate import translate
from tests.lanes import quick
from tests.reference.run import reference_plan

MECHANISM = [
    *("tumbling", "sliding", "session", "count_window", "triggers", "evictors", "blog_evictors"),
    *("lateness", "watermarks", "processing_time", "random", "errors"),
    *("window_join", "co_group", "interval_join", "parity_clock_sessions"),
    *("process_function", "process_clock", "process_side_outputs"),
    *("co_process", "co_process_clock", "broadcast_process", "process_restart"),
]
BOUNDED = [
    *("bounded_tumbling", "bounded_sliding", "bounded_session", "bounded_count_window"),
    *("bounded_triggers", "bounded_evictors", "bounded_blog_evictors", "bounded_lateness"),
    *("bounded_random", "bounded_window_join", "bounded_co_group", "bounded_interval_join"),
    *("bounded_process_function", "bounded_process_clock", "bounded_process_side_outputs"),
    *("bounded_co_process", "bounded_co_process_clock", "bounded_broadcast_process"),
]
SQL = [
    *("sql_window_join", "sql_interval_join", "sql_interval_join_on_time"),
    *("sql_version_join", "sql_version_join_late"),
    *("sql_window_tvf", "sql_window_tvf_one_phase", "sql_group_window", "sql_over"),
    *("sql_misc", "sql_rows", "sql_top_n", "sql_grouping_sets", "parity_emit"),
    *("sql_match", "sql_match_random", "sql_match_refused"),
]
BOUNDED_SQL = [
    *("bounded_sql_window_tvf", "bounded_sql_group_window", "bounded_sql_over"),
    *("bounded_sql_rows", "bounded_sql_top_n", "bounded_sql_grouping_sets"),
    *("bounded_sql_version_join", "bounded_sql_match"),
]
#: Families of long queries: some of each are taken in `make check`, all in `make nightly`.
RANDOM = ["random", "bounded_random"]
#: How many recorded scenarios of a family need what is not there.
SKIPPED = {"sql_window_tvf": 4, "sql_match": 2, "bounded_sql_match": 2}
#: What the reference engine does not do.
NOT_BY_ROW = (
    *("sql_grouping_sets", "bounded_sql_grouping_sets", "sql_top_n", "bounded_sql_top_n"),
)
KERNELS = ["bounded_kernels_tumbling", "bounded_kernels_sliding"]
WINDOWS = [*MECHANISM, "kernels_tumbling", "kernels_sliding"]


def _files(family: str) -> list[Path]:
    """Return the scenarios of a family, but those that are what Flink alone gives."""
    found = sorted((GOLDEN / family).glob("*.json"))
    return [path for path in found if "not_null" not in path.stem]


def _sample(families: Iterable[str], most: int) -> list[str]:
    """Return some scenarios of every family, the same ones in every run."""
    found = []
    for family in families:
        files = _files(family)
        found += random.Random(family).sample(files, min(most, len(files)))
    return [*map(str, found)]


@pytest.mark.parametrize("engine", ["reference", "kernels"])
@pytest.mark.parametrize(
    "family",
    quick([*WINDOWS, *BOUNDED, *SQL, *BOUNDED_SQL, *KERNELS, "kernels_small"], nightly=RANDOM),
)
def test_local_runner_agrees_with_flink(family: str, engine: str, tmp_path: Path) -> None:
    _agrees([str(GOLDEN / family)], family, engine, tmp_path / "results.json")


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["reference", "kernels"])
def test_local_runner_agrees_with_flink_on_some_random_queries(engine: str, tmp_path: Path) -> None:
    for family in RANDOM:
        _agrees(_sample([family], 10), family, engine, tmp_path / f"{family}.json")


def _agrees(paths: list[str], family: str, engine: str, file: Path) -> None:
    result = conformance(*paths, "--engine", engine, "--json", str(file))
    assert result.exit_code == 0, result.stdout
    rows = json.loads(file.read_text())["scenarios"]
    counted = {status: sum(row["status"] == status for row in rows) for status in _STATUSES}
    assert last_line(result) == "{passed} passed, {failed} failed, {skipped} skipped".format(
        **counted
    )
    skipped = SKIPPED.get(family, 0)
    if engine == "reference" and family in NOT_BY_ROW:
        skipped = len(rows)
    assert (counted["failed"], counted["skipped"]) == (0, skipped)
    if "kernels" in family and engine == "kernels":
        assert {row["strategy"] for row in rows} == {"slices"}


_STATUSES = ("passed", "failed", "skipped")


@pytest.mark.parametrize("engine", quick(["reference", "kernels"], "kernels"))
def test_local_runner_agrees_with_flink_on_a_sample(engine: str) -> None:
    paths = _sample([*WINDOWS, *BOUNDED, *SQL, *BOUNDED_SQL, *KERNELS, "kernels_small"], 1)
    result = conformance(*paths, "--engine", engine)
    assert result.exit_code == 0, result.stdout
    not_done = 1 + len(NOT_BY_ROW) * (engine == "reference")  # and of sql_window_tvf
    assert _counts(result)["passed"] >= len(paths) - not_done


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_batch_runner_agrees_with_flink_on_a_sample() -> None:
    paths = _sample([*BOUNDED, *BOUNDED_SQL, *KERNELS][::2], 1)
    result = conformance(*paths, "--runner", "batch")
    assert result.exit_code == 0, result.stdout
    assert _counts(result) == {"passed": len(paths), "failed": 0, "skipped": 0}


def test_streaming_runner_agrees_with_flink_on_a_sample() -> None:
    _streaming(*map(Path, _sample([*WINDOWS, *BOUNDED, *SQL, *BOUNDED_SQL][::2], 1)))


def test_streaming_runner_shuffles_rows_and_then_partials(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpu_windows.operators.slices.preaggregation import are_partials
    from tests.conformance import streaming

    sent: list[bool] = []
    packed = streaming._packed

    def noted(tables: Iterable[Any]) -> Any:
        every = list(tables)
        sent.extend(are_partials(table) for table in every if len(table))
        return packed(every)

    monkeypatch.setattr(streaming, "_packed", noted)
    _streaming(GOLDEN / "kernels_small")
    assert {False, True} == set(sent)
    assert sent.index(True) < len(sent) / 2  # scenario by scenario


def _counts(result: Result) -> dict[str, int]:
    """Read the last line: "3 passed, 0 failed, 1 skipped"."""
    words = (part.split() for part in last_line(result).split(", "))
    return {status: int(count) for count, status in words}


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("partials", quick(["auto", "kernels"], nightly=["kernels"]))
def test_batch_runner_agrees_with_flink(partials: str) -> None:
    paths = [str(path) for family in (*BOUNDED, *BOUNDED_SQL) for path in _files(family)[::20]]
    some = sorted((GOLDEN / "bounded_kernels_sliding").glob("*.json"))[::4]
    few = sorted((GOLDEN / "bounded_kernels_tumbling").glob("*.json"))[::6]
    wanted = [*paths, *map(str, some), *map(str, few)]
    result = conformance(*wanted, "--runner", "batch", "--partials", partials)
    assert result.exit_code == 0, result.stdout
    assert last_line(result).endswith(" passed, 0 failed, 0 skipped")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("partials", ["kernels", "spark"])
def test_batch_runner_agrees_with_flink_on_all(partials: str) -> None:
    families = [*BOUNDED, *BOUNDED_SQL, *KERNELS]
    if partials == "spark":  # refused as a statement, not as a query that the runner skips
        families.remove("bounded_sql_match")
    paths = [str(GOLDEN / family) for family in families]
    result = conformance(*paths, "--runner", "batch", "--partials", partials)
    assert result.exit_code == 0, result.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("family", [*WINDOWS, *BOUNDED, *SQL, *BOUNDED_SQL])
def test_streaming_runner_agrees_with_flink(family: str) -> None:
    _streaming(*_files(family)[:: 40 if family in RANDOM else 8])


@pytest.mark.slow
@pytest.mark.parametrize("family", [*WINDOWS, *BOUNDED, *SQL, *BOUNDED_SQL, *KERNELS])
def test_streaming_runner_agrees_with_flink_on_all(family: str) -> None:
    _streaming(GOLDEN / family)


def _streaming(*paths: Path) -> None:
    """Replay in micro-batches of a shard."""
    result = conformance(*map(str, paths), "--runner", "streaming")
    assert result.exit_code == 0, result.stdout


def _other_result(scenario: Any) -> None:
    scenario["expected"][0]["result"] += 1


def _other_step(scenario: Any) -> None:
    scenario["expected"][0]["step"] += 1


def _one_less(scenario: Any) -> None:
    scenario["expected"].pop()


def _late_missing(scenario: Any) -> None:
    scenario["late"].clear()


@pytest.mark.parametrize("change", [_other_result, _other_step, _one_less, _late_missing])
@pytest.mark.parametrize("engine", ["reference", "kernels"])
def test_a_wrong_answer_fails(tmp_path: Path, change: Any, engine: str) -> None:
    result = conformance(spoiled(tmp_path, change), "--engine", engine)
    assert result.exit_code == 1
    assert last_line(result) == "0 passed, 1 failed, 0 skipped"
    assert "spoiled.json" in result.stdout.replace("\n", "")


def test_differences_stand_side_by_side(tmp_path: Path) -> None:
    def change(scenario: Any) -> None:
        scenario["expected"][0]["result"] = 4711

    result = conformance(spoiled(tmp_path, change))
    head = next(line for line in result.stdout.splitlines() if "gpu_windows" in line)
    assert head.index("Flink") < head.index("gpu_windows")
    flink, ours = (f"result {value}" for value in ("4711", "4.0"))
    line = next(line for line in result.stdout.splitlines() if flink in line)
    assert line.index(flink) < line.index(ours)


def test_rows_late_by_flinks_overflow_are_left_out(tmp_path: Path) -> None:
    def change(scenario: Any) -> None:  # recorded from Flink 2.3.0
        scenario["operator"].update(
            assigner={"type": "sliding_event_time", "size_ms": 5000, "slide_ms": 10000},
            allowed_lateness_ms=LONG_MAX,
        )
        scenario["input"] = [
            {"watermark": 9999},
            {"key": "a", "ts": 16000, "value": 1},
            {"key": "a", "ts": 1000, "value": 2},
        ]
        scenario["expected"] = [
            {
                "step": 2,
                "fired": "element",
                "key": "a",
                "window_start": 0,
                "window_end": 5000,
                "result": 2,
                "timestamp": 4999,
            }
        ]
        scenario["late"] = [{"step": 1, "key": "a", "ts": 16000, "value": 1, "seq": 1}]

    result = conformance(spoiled(tmp_path, change))
    assert last_line(result) == "1 passed, 0 failed, 0 skipped"
    assert "scenarios with such rows: 1" in result.stdout


@pytest.mark.parametrize("split", quick([1, 2, 3], nightly=[1, 3]))
@pytest.mark.parametrize("engine", quick(["reference", "auto"], nightly=["reference"]))
def test_batches_do_not_matter(engine: Any, split: int) -> None:
    for family in (
        *("tumbling", "sliding", "session", "evictors", "count_window", "triggers"),
        *("window_join", "co_group", "interval_join"),
    ):
        for path in sorted((GOLDEN / family).glob("*.json")):
            scenario = read_scenario(path)
            case = translate(scenario, ticks_per_ms=1)
            assert isinstance(case, Case)
            made = case.query(Options(device="cpu"))
            planned = (reference_plan if engine == "reference" else plan)(made, bounded=False)
            replayed = replay(scenario, planned, case, engine=engine, split=split)
            assert compare_replay(scenario, replayed) == []


def test_a_scenario_with_watermarks_is_skipped_in_batch() -> None:
    result = conformance(str(GOLDEN / "tumbling" / "bounds_sum.json"), "--runner", "batch")
    assert last_line(result) == "0 passed, 0 failed, 1 skipped"


@pytest.mark.parametrize("again", [1, 2])
@pytest.mark.parametrize(("between", "verdict"), [([], "passed"), ([{"watermark": 5}], "skipped")])
def test_a_timer_that_waits_for_the_clock_fires_in_the_next_micro_batch(
    tmp_path: Path, between: list[Any], verdict: str, again: int
) -> None:
    def change(scenario: Any) -> None:  # recorded from Flink 2.3.0
        assigner = {"type": "session_processing_time", "gap_ms": 1}
        scenario["operator"].update(assigner=assigner, late_side_output=False)
        record = {"key": "a", "ts": 7, "value": 2}
        scenario["input"] = [{"processing_time": 1}, record, *between, {"processing_time": again}]
        bounds = {"window_start": 1, "window_end": 2, "timestamp": 1}
        fired = {"step": 2 + len(between), "fired": "processing_time", "fired_time": 1}
        scenario["expected"] = [{**fired, "key": "a", **bounds, "result": 2}]
        scenario["late"] = []

    path = spoiled(tmp_path, change)
    assert last_line(conformance(path)) == "1 passed, 0 failed, 0 skipped"
    result = conformance(path, "--runner", "streaming")
    assert f"1 {verdict}" in last_line(result), result.stdout


def test_the_streaming_runner_needs_no_spark() -> None:
    import subprocess
    import sys

    program = (
        "import sys\n"
        "sys.modules['pyspark'] = None\n"
        "from tests.conformance.streaming import StreamingRunner\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
