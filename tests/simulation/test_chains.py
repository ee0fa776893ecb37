"""Queries of several stages, cut and crashing: what a few seeds give, what is broken on purpose."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gpu_windows.spark_glue import micro_batch, passed
from gpu_windows.spark_glue.reached import Reached
from tests.simulation.chains import Execution, tried
from tests.simulation.execution import State

QUICK, NIGHTLY = range(40), range(1_000_000, 1_003_000)


def test_stages_give_what_operators_give_that_are_never_cut() -> None:
    total: Counter[str] = Counter()
    for _, found, facts in tried(QUICK):
        assert found == []
        total += facts
    for what in ("crashes", "results of 0", "late of 0", "results of 1", "late of 1",
                 "results of 2"):  # fmt: skip
        assert total[what] > 5, what


@pytest.mark.slow
def test_many_seeds() -> None:
    assert [found for _, found, _ in tried(NIGHTLY) if found] == []


def failures() -> list[str] | None:
    """What is wrong with the first seed with which something is."""
    return next((found for _, found, _ in tried(range(100)) if found), None)


def test_rows_in_the_wrong_phase_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro_batch, "is_before", lambda _: False)
    assert failures()


def test_a_watermark_that_is_not_told_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro_batch, "reached_before", lambda _: 0)
    assert failures()


def test_a_watermark_that_a_stage_does_not_pass_on_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A shard that was not called at the last watermark learns of it from the stage before."""
    seed = range(1115, 1116)
    assert not any(found for _, found, _ in tried(seed))
    monkeypatch.setattr(Reached, "learn", lambda *_: None)
    assert all(found for _, found, _ in tried(seed))


def test_lost_messages_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulation.chains.rows_of", lambda *_: [])
    assert failures()
    monkeypatch.undo()
    assert passed.is_message(b"pass")


def test_lost_timers_of_a_later_stage_are_found() -> None:
    class ForgetsTimers(Execution):
        def _stage(self, number: int, segment: Any, sent: Any, state: State, fuse: Any) -> Any:
            if number:
                state.timers.clear()
            return super()._stage(number, segment, sent, state, fuse)

    assert any(found for _, found, _ in tried(range(100), ForgetsTimers))
