"""Recorded runs of Flink as streaming queries of Spark, stopped and killed on the way."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import gpu_windows as gw
from gpu_windows.vocabulary.options import Options
from tests.conformance.__main__ import app
from tests.conformance.scenario import read_scenario
from tests.conformance.streaming_query import StreamingQueryRunner, expected_steps
from tests.lanes import quick

GOLDEN = Path(__file__).parents[1] / "golden"


def _listed() -> tuple[list[str], list[str]]:
    """Return the scenarios of every run, and those of the nightly run only."""
    paragraphs = (GOLDEN / "streaming_queries.txt").read_text().split("\n\n")
    often, seldom = ([line for line in p.splitlines() if line[0] != "#"] for p in paragraphs)
    return often, seldom


OFTEN, SELDOM = _listed()
RUNNER = StreamingQueryRunner(Options(device="cpu"))
#: Watermarks before 1970, at both ends of time, and one that is told.
TIMES = [
    "tumbling/negative_ts.json",
    "watermarks/min_watermark.json",
    "kernels_small/hand_highest_watermark.json",
    "triggers/global_end_of_stream_sum.json",
    "triggers/collect_state_count2.json",
    "session/continuous2000_sessions_lat0.json",
]
PROCESSES = [
    "process_function/timer_in_the_past.json",
    "process_side_outputs/late_rows.json",
    "co_process/pair_or_timeout.json",
    "broadcast_process/sides.json",
]
FAMILIES = {family: list(of) for family, of in groupby(SELDOM, lambda path: path.split("/")[0])}


def conformance(*paths: Path) -> Result:
    arguments = [*map(str, paths), "--runner", "streaming-query"]
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


def last_line(result: Result) -> str:
    return result.stdout.strip().splitlines()[-1]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("path", quick(OFTEN, nightly=OFTEN[4:]))
def test_a_query_agrees_with_flink(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    starts, start = [], gw.write_stream

    def write_stream(*arguments: Any, **options: Any) -> Any:
        starts.append(start(*arguments, **options))
        return starts[-1]

    monkeypatch.setattr(gw, "write_stream", write_stream)
    result = conformance(GOLDEN / path)
    assert last_line(result) == "1 passed, 0 failed, 0 skipped", result.stdout
    assert [query.exception() is None for query in starts] == [True, False, True]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("family", FAMILIES)
def test_more_queries_agree_with_flink(family: str) -> None:
    paths = [GOLDEN / path for path in FAMILIES[family]]
    result = conformance(*paths)
    assert last_line(result) == f"{len(paths)} passed, 0 failed, 0 skipped", result.stdout


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("paths", [TIMES, PROCESSES])
def test_all_times_of_a_query_agree_with_flink(paths: list[str]) -> None:
    result = conformance(*(GOLDEN / path for path in paths))
    assert last_line(result) == f"{len(paths)} passed, 0 failed, 0 skipped", result.stdout


def _other_result(scenario: Any) -> None:
    scenario["expected"][-1]["result"] += 1


def _earlier(scenario: Any) -> None:
    scenario["expected"][-1]["step"] = scenario["expected"][0]["step"]


def _not_late(scenario: Any) -> None:
    scenario["late"].pop()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("change", [_other_result, _earlier, _not_late])
def test_a_wrong_answer_fails(tmp_path: Path, change: Any) -> None:
    scenario = json.loads((GOLDEN / "kernels_small" / "hand_gap_of_1_ms.json").read_text())
    change(scenario)
    (tmp_path / "spoiled.json").write_text(json.dumps(scenario))
    result = conformance(tmp_path / "spoiled.json")
    assert result.exit_code == 1
    assert last_line(result) == "0 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        (
            "watermarks/regressing_watermarks.json",
            [{0, 1}, {2}, {3, 4}, {5}, {6, 7}, {8}, {9, 10, 11}, {12}, {13}],
        ),
        (  # each row by itself, and a watermark of both sides as one of each
            "broadcast_process/sides.json",
            [
                *({step} for step in range(7)),
                *({7, 8}, {8}, {9}, {10}, {11}, {12}, {13, 14}, {14}, {15, 16}, {17}, {18}),
                *({19}, {20, 21}, {22}, {22}, {23}, {24}, {25, 26}, {26}),
            ],
        ),
    ],
)
def test_what_a_micro_batch_takes(path: str, steps: list[set[int]]) -> None:
    assert expected_steps(read_scenario(GOLDEN / path)) == steps


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("processing_time/tumbling_sum.json", "nobody sets the processing time"),
        ("process_restart/lower_watermark_fires.json", "that of a query goes on"),
    ],
)
def test_what_a_query_cannot_do_is_skipped(path: str, reason: str) -> None:
    assert reason in (RUNNER.skips(read_scenario(GOLDEN / path)) or "")


def test_rows_beyond_all_dates_are_skipped(tmp_path: Path) -> None:
    scenario = json.loads((GOLDEN / "tumbling" / "bounds_sum.json").read_text())
    scenario["input"].append({"key": "a", "ts": 1 << 60, "value": 1})
    (tmp_path / "far.json").write_text(json.dumps(scenario))
    reason = RUNNER.skips(read_scenario(tmp_path / "far.json"))
    assert reason == f"{1 << 60} is too far from 1970 for dates"


def test_what_is_listed_is_run() -> None:
    assert len({*OFTEN, *SELDOM}) == len(OFTEN) + len(SELDOM) >= 40
    every = (*OFTEN, *SELDOM, *TIMES, *PROCESSES)
    assert not [path for path in every if RUNNER.skips(read_scenario(GOLDEN / path))]
