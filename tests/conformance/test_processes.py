"""Scenarios of process functions: restarts, broadcast rows, and what micro-batches cannot do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_windows.vocabulary.options import Options
from tests.conformance.batch import BatchRunner
from tests.conformance.called import spoiled
from tests.conformance.errors import ScenarioError
from tests.conformance.micro_batch_times import why_not
from tests.conformance.replay import elements_of, parts_of
from tests.conformance.scenario import Scenario, Watermark, read_scenario

RESTART = {"restart": True}


def row(ts: int, value: float = 1, **side: str) -> dict[str, Any]:
    return {**side, "key": "a", "ts": ts, "value": value}


def mark(time: int, **side: str) -> dict[str, Any]:
    return {**side, "watermark": time}


def clock(time: int) -> dict[str, Any]:
    return {"processing_time": time}


def asked(path: Path, function: str, *elements: Any, **more: Any) -> Scenario:
    """Return a scenario of a function of one input, unless ``more`` says another kind."""
    kind = more.pop("kind", "process")
    operator = {"kind": kind, "function": {"type": function, "param_ms": 10, **more}}
    named = {"name": "asked", "family": "asked", "operator": operator}
    file = path / "asked.json"
    file.write_text(json.dumps({**named, "input": elements, "expected": []}))
    return read_scenario(file)


def test_windows_are_not_restarted(tmp_path: Path) -> None:
    path = spoiled(tmp_path, lambda scenario: scenario["input"].append(RESTART))
    with pytest.raises(ScenarioError, match="only process, co_process, broadcast_process are"):
        read_scenario(Path(path))


@pytest.mark.parametrize(
    ("kind", "watermarks"),
    [("window_join", [5, 20, 20]), ("broadcast_process", [5, 9, 20, 8, 8])],
)
def test_a_watermark_of_both_sides_reaches_the_left_one_first(
    tmp_path: Path, kind: str, watermarks: list[int]
) -> None:
    left, right = {"side": "left"}, {"side": "right"}
    elements = [mark(5, **left), mark(9, **right), mark(20)]
    if kind == "broadcast_process":
        elements.append(RESTART)
    read = asked(tmp_path, "rules", *elements, mark(8), kind=kind)
    found = [part.time for part in parts_of(elements_of(read), None) if isinstance(part, Watermark)]
    assert [time for time in found[:-1] if abs(time) < 99] == watermarks


GOES_ON = "the watermark begins anew after a restart; that of micro-batches goes on"


@pytest.mark.parametrize(
    ("function", "elements", "domain", "can"),
    [
        ("count_with_timeout", [mark(5), row(3), RESTART, row(4), mark(6)], "event_time", True),
        ("count_with_timeout", [mark(5), row(3), RESTART, row(4), mark(5)], "event_time", True),
        ("count_with_timeout", [mark(15), row(3), RESTART, mark(12)], "event_time", True),
        ("count_with_timeout", [mark(15), row(3), RESTART, mark(13)], "event_time", False),
        ("count_with_timeout", [mark(15), RESTART, row(3), mark(13)], "event_time", False),
        ("count_with_timeout", [mark(15), RESTART, row(3), mark(16)], "event_time", True),
        ("count_with_timeout", [mark(15), RESTART, row(3), mark(13)], "processing_time", True),
        ("watermark_probe", [row(3), RESTART, row(4), mark(5), row(9)], "event_time", True),
        ("watermark_probe", [mark(5), RESTART, mark(6), row(9)], "event_time", True),
        ("watermark_probe", [mark(5), RESTART, row(9), mark(6)], "event_time", False),
        ("inactivity", [mark(5), RESTART, row(9), mark(6)], "event_time", True),
        ("inactivity", [mark(5), RESTART, row(9), clock(20)], "processing_time", False),
    ],
)
def test_the_watermark_of_micro_batches_goes_on_after_a_restart(
    tmp_path: Path, function: str, elements: list[Any], domain: str, can: bool
) -> None:
    read = asked(tmp_path, function, *elements, time_domain=domain)
    assert why_not(read) == (None if can else GOES_ON)


def _is_due_too_soon(path: Path, function: str, *elements: Any, **more: Any) -> bool:
    reason = why_not(asked(path, function, clock(100), *elements, **more)) or ""
    return reason.startswith("a timer is set for a processing time that has come")


@pytest.mark.parametrize(
    ("function", "value", "param"),
    [
        *(("timer_per_element", 1, 0), ("timers_in_timers", -1, 10), ("ttl", 1, 1)),
        *(("delete_on_negative", 1, 0), ("state_and_timer", 1, -5)),
    ],
)
def test_a_timer_that_is_past_meets_the_next_micro_batch(
    tmp_path: Path, function: str, value: float, param: int
) -> None:
    how = {"time_domain": "processing_time", "param_ms": param}
    assert _is_due_too_soon(tmp_path, function, row(7, value), **how)
    assert _is_due_too_soon(tmp_path, function, row(7, value), mark(5), clock(100), **how)
    assert not _is_due_too_soon(tmp_path, function, row(7, value), clock(100), mark(5), **how)


def test_a_row_of_its_own_meets_the_timer_of_the_one_before(tmp_path: Path) -> None:
    rows = [row(7, side="left"), row(8, side="left"), clock(100)]
    how = {"time_domain": "processing_time", "param_ms": 0}
    assert _is_due_too_soon(tmp_path, "broadcast_probe", *rows, kind="broadcast_process", **how)
    assert not _is_due_too_soon(tmp_path, "co_side_outputs", *rows, kind="co_process", **how)


@pytest.mark.parametrize(("ts", "can"), [(50, False), (51, True)])
def test_timers_of_the_clock_at_the_times_of_rows_may_be_past(
    tmp_path: Path, ts: int, can: bool
) -> None:
    assert _is_due_too_soon(tmp_path, "both_timers", row(ts)) != can
    assert not _is_due_too_soon(tmp_path, "both_timers", row(ts, -1))


@pytest.mark.parametrize(
    ("assigner", "now", "can"),
    [
        ({"type": "tumbling_processing_time", "size_ms": 10}, 9, False),
        ({"type": "tumbling_processing_time", "size_ms": 10}, 8, True),
        ({"type": "tumbling_processing_time", "size_ms": 10, "offset_ms": 1}, 10, False),
        ({"type": "sliding_processing_time", "size_ms": 10, "slide_ms": 5}, 4, False),
        ({"type": "session_processing_time", "gap_ms": 2}, 9, True),
        ({"type": "session_processing_time", "gap_ms": 1}, 9, False),
        ({"type": "dynamic_session_processing_time", "gap_factor_ms": 1}, 9, False),
        ({"type": "tumbling_event_time", "size_ms": 10}, 9, True),
    ],
)
def test_rows_at_the_last_tick_of_a_window_of_the_clock(
    tmp_path: Path, assigner: dict[str, Any], now: int, can: bool
) -> None:
    def change(scenario: Any) -> None:
        scenario["operator"]["assigner"] = assigner
        scenario["input"] = [clock(now), row(7, 1.5), mark(5), clock(now + 1)]

    assert (why_not(read_scenario(Path(spoiled(tmp_path, change)))) is None) == can


def test_what_a_batch_cannot_do(tmp_path: Path) -> None:
    runner = BatchRunner(Options())
    left, right = row(1, side="left"), row(1, side="right")
    kind = {"kind": "broadcast_process"}
    reason = runner.skips(asked(tmp_path, "rules", left, right, **kind))
    assert reason == "a batch takes the rows that are broadcast before all others"
    assert runner.skips(asked(tmp_path, "rules", right, left, **kind)) is None
    told = runner.skips(asked(tmp_path, "rules", right, time_domain="processing_time", **kind))
    assert told == "the clock of a batch is that of the machine, and the function tells it"
    assert runner.skips(asked(tmp_path, "ttl", row(1))) == told
