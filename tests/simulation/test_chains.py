"""Queries of several stages, cut and crashing: what a few seeds give, what is broken on purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from gpu_windows.rules import LONG_MAX
from tests.simulation import chains
from tests.simulation.chains import Execution, Rows, tried
from tests.simulation.stage import Attempt, Stage, Times

QUICK, NIGHTLY = range(20), range(1_000_000, 1_003_000)


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


def failures(make: type[Execution] = Execution) -> list[str] | None:
    """What is wrong with the first seed with which something is."""
    return next((found for _, found, _ in tried(range(100), make) if found), None)


def test_results_that_come_a_micro_batch_later_are_found() -> None:
    class Delays(Execution):
        waiting: Rows

        def _packed(self, number: int, results: Iterable[pa.Table]) -> Rows:
            before, self.waiting = getattr(self, "waiting", {}), super()._packed(number, results)
            return before

    assert failures(Delays)


def test_a_watermark_that_a_stage_takes_before_its_rows_is_found() -> None:
    class AdvancesFirst(Execution):
        def _run_stage(self, number: int, rows: Rows, times: Times, fuse: Any) -> Attempt:
            if number == 0 or fuse.left is not None:
                return super()._run_stage(number, rows, times, fuse)
            stage = self._stages[number]
            first = stage.attempt({}, times, fuse)
            stage.commit(first.shards)
            then = stage.attempt(rows, times, fuse)
            return replace(then, emissions=[*first.emissions, *then.emissions])

    assert failures(AdvancesFirst)


def test_a_watermark_that_is_not_held_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    held_back = chains.held_back
    wanted = chains.expected
    monkeypatch.setattr(chains, "held_back", lambda _, watermark: watermark)

    def expected(made: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(chains, "held_back", held_back)
            return wanted(made)

    monkeypatch.setattr(chains, "expected", expected)
    assert failures()


def test_shards_without_rows_that_are_not_called_are_found() -> None:
    class Skips(Stage):
        def _run(self, number: int, rows: Any, times: Times, *rest: Any) -> Any:
            if rows or times.watermark == LONG_MAX:
                return super()._run(number, rows, times, *rest)
            return self.shards[number]

    class SkipsShards(Execution):
        make_later = Skips

    assert failures(SkipsShards)
