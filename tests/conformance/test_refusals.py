"""``python -m tests.conformance``: what Flink refuses is refused, what is no scenario is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.called import GOLDEN, conformance, last_line, spoiled


@pytest.mark.parametrize(
    ("assigner", "lateness", "flink"),
    [
        ({"size_ms": 0}, 0, "TumblingEventTimeWindows parameters must satisfy abs(offset) < size"),
        (
            {"size_ms": 10, "offset_ms": -10},
            0,
            "TumblingEventTimeWindows parameters must satisfy abs(offset) < size",
        ),
        (
            {"type": "sliding_event_time", "size_ms": 10**10, "slide_ms": 1},
            0,
            "SlidingEventTimeWindows parameters must satisfy size / slide <= 10000000",
        ),
        ({"size_ms": 10}, -1, "The allowed lateness cannot be negative."),
    ],
)
def test_what_flink_refuses_is_refused_by_the_same_rule(
    tmp_path: Path, assigner: Any, lateness: int, flink: str
) -> None:
    def change(scenario: Any) -> None:
        scenario["operator"]["assigner"] = {"type": "tumbling_event_time", **assigner}
        scenario["operator"]["allowed_lateness_ms"] = lateness
        del scenario["expected"], scenario["late"]
        kind = "java.lang.IllegalArgumentException"
        scenario["expected_error"] = {"class": kind, "message": flink}

    assert last_line(conformance(spoiled(tmp_path, change))) == "1 passed, 0 failed, 0 skipped"

    def other_rule(scenario: Any) -> None:
        change(scenario)
        scenario["expected_error"]["message"] = "The allowed lateness cannot be negative"
        scenario["operator"]["allowed_lateness_ms"] = 0

    result = conformance(spoiled(tmp_path, other_rule))
    assert last_line(result) == "0 passed, 1 failed, 0 skipped"


def test_a_refusal_that_does_not_come_is_a_failure(tmp_path: Path) -> None:
    def change(scenario: Any) -> None:
        del scenario["expected"]
        scenario["expected_error"] = {"class": "java.lang.Error", "message": "no such window"}

    result = conformance(spoiled(tmp_path, change))
    assert result.exit_code == 1
    assert "Flink refuses this, ours runs it: no such window" in result.stdout


def test_an_unknown_word_is_bad_input_and_the_rest_runs(tmp_path: Path) -> None:
    def change(scenario: Any) -> None:
        scenario["operator"]["trigger"] = {"type": "cuont", "n": 3}

    good = str(GOLDEN / "tumbling" / "bounds_sum.json")
    result = conformance(spoiled(tmp_path, change), good)
    assert result.exit_code == 2
    assert "spoiled.json: the trigger of a scenario must be one of" in result.stderr
    assert last_line(result) == "1 passed, 0 failed, 0 skipped"


def test_a_file_that_is_no_scenario_is_named_and_left_out(tmp_path: Path) -> None:
    spoiled(tmp_path, lambda scenario: None)
    (tmp_path / "results.json").write_text('{"passed": 3}')
    result = conformance(str(tmp_path))
    assert result.exit_code == 2
    assert "results.json: a scenario must be a JSON object with 'operator'" in result.stderr
    assert last_line(result) == "1 passed, 0 failed, 0 skipped"


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "x"}', '{"name": "x", "operator": {}}'])
def test_bad_files_are_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    result = conformance(str(file))
    assert result.exit_code == 2
    assert "bad.json" in result.output


def test_a_path_that_is_not_there() -> None:
    assert conformance("/nowhere/at/all").exit_code == 2
