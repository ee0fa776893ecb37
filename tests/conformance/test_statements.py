"""Statements of Flink's SQL over windows: wrong answers fail, the rest says what it needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gpu_windows.vocabulary.windows import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from tests.conformance.__main__ import app
from tests.conformance.cases import OneInput, Skip
from tests.conformance.errors import ScenarioError
from tests.conformance.scenario import read_scenario
from tests.conformance.translate import translate
from tests.lanes import quick

GOLDEN = Path(__file__).parents[1] / "golden"
CUMULATE = "sql_window_tvf/cumulate2_10_bounds.json"
GROUP = "sql_group_window/hop_bounds.json"


def conformance(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "200"})


def changed(tmp_path: Path, name: str, change: Callable[[Any], None]) -> Path:
    scenario = json.loads((GOLDEN / name).read_text())
    change(scenario)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(scenario))
    return path


def _other_sum(scenario: Any) -> None:
    scenario["expected"][3]["s"] += 1


def _sooner(scenario: Any) -> None:
    scenario["expected"][-1]["wm"] = scenario["expected"][0]["wm"]


def _one_less(scenario: Any) -> None:
    scenario["expected"].pop()


def _a_late_row_counts(scenario: Any) -> None:
    late = next(e for e in scenario["input"] if e.get("value") == 6)
    late["ts"] = 10_000  # in the recorded run it was late for every window


@pytest.mark.parametrize("change", [_other_sum, _sooner, _one_less, _a_late_row_counts])
@pytest.mark.parametrize("runner", ["local", "streaming"])
@pytest.mark.parametrize("name", [CUMULATE, GROUP])
def test_a_wrong_answer_fails(tmp_path: Path, name: str, runner: str, change: Any) -> None:
    result = conformance(str(changed(tmp_path, name, change)), "--runner", runner)
    assert result.exit_code == 1, result.stdout
    assert "0 passed, 1 failed, 0 skipped" in result.stdout


def test_a_missing_late_firing_fails(tmp_path: Path) -> None:
    def change(scenario: Any) -> None:
        late = next(row for row in scenario["expected"] if row["op"] == "+U" and row["wm"] == 2999)
        scenario["expected"].remove(late)

    assert conformance(str(changed(tmp_path, "parity_emit/tumble3_late.json", change))).exit_code


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("late-fire.delay", "1 s", "come at each row"),
        ("allow-lateness", "1 min", "whole seconds"),
    ],
)
def test_unknown_ways_to_emit_are_refused(
    tmp_path: Path, option: str, value: str, rule: str
) -> None:
    def change(scenario: Any) -> None:
        scenario["sql_options"][f"table.exec.emit.{option}"] = value

    scenario = read_scenario(changed(tmp_path, "parity_emit/tumble3_late.json", change))
    with pytest.raises(ScenarioError, match=rule):
        translate(scenario, ticks_per_ms=1)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("change", quick([_other_sum, _one_less], _other_sum))
def test_a_wrong_answer_of_a_batch_fails(tmp_path: Path, change: Any) -> None:
    path = changed(tmp_path, f"bounded_{CUMULATE}", change)
    assert conformance(str(path), "--runner", "batch").exit_code == 1


@pytest.mark.parametrize(
    ("name", "assigner"),
    [
        ("sql_window_tvf/tumble10_off2_bounds", TumblingEventTimeWindows(10_000, 2_000)),
        ("sql_window_tvf/hop2_6_dense", SlidingEventTimeWindows(6_000, 2_000)),
        ("sql_window_tvf/cumulate2_10_dense", CumulativeEventTimeWindows(10_000, 2_000)),
        ("sql_window_tvf/session5_dense", EventTimeSessionWindows(5_000, ticks_per_ms=1)),
        ("sql_window_tvf/tumble10_global", TumblingEventTimeWindows(10_000)),
        ("sql_window_tvf/session5_no_partition", EventTimeSessionWindows(5_000, ticks_per_ms=1)),
        ("sql_group_window/tumble_bounds", TumblingEventTimeWindows(10_000)),
        ("sql_group_window/hop_bounds", SlidingEventTimeWindows(10_000, 5_000)),
        ("sql_group_window/session_bounds", EventTimeSessionWindows(5_000, ticks_per_ms=1)),
    ],
)
def test_windows_of_statements(name: str, assigner: WindowAssigner) -> None:
    case = translate(read_scenario(GOLDEN / f"{name}.json"), ticks_per_ms=1)
    assert isinstance(case, OneInput)
    assert case.windows.assigner == assigner


def test_what_is_not_run_says_why() -> None:
    path = GOLDEN / "sql_window_tvf" / "cumulate2_10_negative.json"
    case = translate(read_scenario(path), ticks_per_ms=1)
    assert isinstance(case, Skip)
    assert "Flink's aggregation in two phases loses" in case.reason


def test_fractions_of_seconds(tmp_path: Path) -> None:
    def change(scenario: Any) -> None:
        call = "HOP(rt, INTERVAL '2.500' SECOND(2, 3), INTERVAL '10' SECOND)"
        scenario["operator"]["window"] = call

    case = translate(read_scenario(changed(tmp_path, GROUP, change)), ticks_per_ms=1)
    assert isinstance(case, OneInput)
    assert case.windows.assigner == SlidingEventTimeWindows(10_000, 2_500)


@pytest.mark.parametrize(
    ("name", "part", "value", "rule"),
    [
        (GROUP, "window", "HOP(rt, INTERVAL '5' SECOND)", "a group window is"),
        (GROUP, "window", "TUMBLE(rt, INTERVAL '1' DAY)", "a group window is"),
        (GROUP, "group_by", ["key"], "groups by key and window"),
        (GROUP, "group_by", "key", "must be a list of strings"),
        (GROUP, "agg", ["sum", "median"], "an aggregate is one of"),
        (CUMULATE, "tvf", {"type": "hopp"}, "a window TVF is one of"),
    ],
)
def test_an_unknown_word_is_refused(
    tmp_path: Path, name: str, part: str, value: Any, rule: str
) -> None:
    def change(scenario: Any) -> None:
        scenario["operator"][part] = value

    scenario = read_scenario(changed(tmp_path, name, change))
    with pytest.raises(ScenarioError, match=rule):
        translate(scenario, ticks_per_ms=1)
