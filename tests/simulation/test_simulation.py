"""The simulation: some seeds pass, whatever is broken on purpose is found and made small."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpu_windows.spark_glue import micro_batch
from tests.simulation.__main__ import app, trials
from tests.simulation.case import Case, Crash, Row, Segment
from tests.simulation.draw import case_of
from tests.simulation.execution import CrashedError, Execution, Fuse, FusedStore, State
from tests.simulation.outcome import Given
from tests.simulation.shrink import shrink
from tests.simulation.trial import try_seed

#: Seeds of the quick test, and of the nightly one.
QUICK, NIGHTLY = range(120), range(1_000_000, 1_005_000)
ROOT = Path(__file__).parents[2]


def test_cuts_crashes_and_shards_change_nothing() -> None:
    found = [*trials(QUICK, jobs=1)]
    assert [trial.failure for trial in found if trial.failure is not None] == []
    for fact in ("results", "late", "calls", "crashes", "refused", "aggregated"):
        assert sum(trial.facts[fact] for trial in found) > 10, fact
    strategies = {trial.strategy for trial in found}
    wanted = {
        "slices", "buffer", "row at a time", "interval join", "version join", "over",
        "process function", "match",
    }  # fmt: skip
    assert strategies == wanted


@pytest.mark.slow
def test_many_seeds() -> None:
    found = trials(NIGHTLY, jobs=2)
    assert [trial.failure for trial in found if trial.failure is not None] == []


@pytest.mark.slow
@pytest.mark.ptx
def test_compiled_cuda_kernels_give_the_same() -> None:
    run = in_a_process("--seeds", "0..400", "--device", "compiled")
    assert run.returncode == 0, run.stdout + run.stderr


# ---- what is broken on purpose


class LosesWrites(FusedStore):
    """A store that does not keep what it has kept before."""

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        if kind in ("manifest", "measures") or (kind, bucket) not in self.blobs:
            super().write(kind, bucket, blob, held=held)


class LosesWritesExecution(Execution):
    def __init__(self, case: Case) -> None:
        super().__init__(case, LosesWrites)


class KeepsWhatDied(Execution):
    """What a micro-batch wrote that died stays."""

    def _die(self, segment: Segment, rows: dict[int, list[Any]], crash: Crash) -> None:
        try:
            self._attempt(segment, rows, self._state, Fuse(crash.after))
        except CrashedError:
            return


class IsLateTooEarly(Execution):
    """A watermark that is a tick ahead."""

    def _attempt(
        self, segment: Segment, rows: dict[int, list[Any]], state: State, fuse: Fuse
    ) -> Given:
        ahead = replace(segment, watermark=segment.watermark + 1) if segment.watermark else segment
        return super()._attempt(ahead, rows, state, fuse)


class KnowsAnOldWatermark(Execution):
    """Tasks before the shuffle know a watermark that is behind."""

    def _sent(self, rows: Any, segment: Segment) -> Any:
        behind = replace(segment, watermark=max(0, segment.watermark - 20))
        return super()._sent(rows, behind)


class ForgetsTimers(Execution):
    """A shard without rows is not called before the end."""

    def _due(self, shard: micro_batch.Shard, segment: Segment) -> set[int]:
        self._state.timers.clear()
        return super()._due(shard, segment)


@pytest.mark.parametrize(
    "broken", [LosesWritesExecution, KeepsWhatDied, IsLateTooEarly, KnowsAnOldWatermark]
)
def test_what_is_broken_is_found_and_made_small(broken: type[Execution]) -> None:
    told = first_failure(broken)
    assert len(re.findall(r"^  row ", told, re.MULTILINE)) <= 4
    assert re.search(r"^seed (\d+): python -m tests.simulation --seeds \1\.\.", told)


def test_lost_timers_are_found() -> None:
    told = first_failure(ForgetsTimers)
    assert re.search(r"segment \d+: results: lacks ", told)


def test_a_lost_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro_batch, "_in_order", lambda plan, rows: rows)
    told = first_failure(Execution)
    assert len(re.findall(r"^  row ", told, re.MULTILINE)) >= 2


def test_what_is_raised_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(micro_batch, "take_rows", raises)
    assert "ZeroDivisionError: on purpose" in first_failure(Execution)


def first_failure(make: type[Execution]) -> str:
    for seed in QUICK:
        trial = try_seed(seed, make=make)
        if trial.failure is not None:
            return trial.failure
    raise AssertionError(f"{make.__name__} is not found")


# ---- seeds and commands


def test_a_seed_is_always_the_same_case() -> None:
    for seed in range(30):
        (one, _), (other, _) = case_of(seed), case_of(seed)
        assert repr(one.script) == repr(other.script)  # NaN is not equal to itself
        assert one.executed.reasons == other.executed.reasons
        assert one.options == other.options
    assert try_seed(3) == try_seed(3)


def test_seeds_of_other_strategies_are_left_out() -> None:
    found = [try_seed(seed, only="process function") for seed in range(30)]
    run = [trial for trial in found if not trial.is_left_out]
    assert 0 < len(run) < len(found)
    assert all("process function" in trial.strategy and trial.facts["calls"] for trial in run)


def test_a_case_shrinks_to_what_is_needed() -> None:
    case = max((case_of(seed)[0] for seed in range(20)), key=lambda case: len(case.script))
    needed = {3, 11}

    def fails(smaller: Case) -> bool:
        return needed <= {each.seq for each in smaller.script if isinstance(each, Row)}

    assert fails(case)
    small = shrink(case, fails)
    assert [each.seq for each in small.script if isinstance(each, Row)] == sorted(needed)
    assert len(small.script) == 2
    assert small.options.shards == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seeds", "7"],
        ["--seeds", "9..9"],
        ["--seeds", "a..b"],
        ["--device", "gpu"],
        ["--device", "cuda"],
    ],
)
def test_bad_arguments_are_told(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2, result.output


def test_the_command_says_the_same_twice() -> None:
    """In processes whose hashes of strings differ."""
    one, other = (
        in_a_process("--seeds", "0..6", "--jobs", "1", PYTHONHASHSEED=hashes) for hashes in "12"
    )
    assert one.returncode == 0, one.stdout + one.stderr
    assert "6 seeds, 0 failed" in one.stdout
    assert one.stdout == other.stdout


def in_a_process(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, check=False
    )
