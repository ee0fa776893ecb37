"""The simulation: some seeds pass, whatever is broken on purpose is found and made small."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from gpu_windows.kernels.backend import why_no_cuda
from gpu_windows.operators.base import Emission
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.runs import Run
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Strategy
from gpu_windows.rules import LONG_MAX
from gpu_windows.spark_glue.tasks import shard_run
from gpu_windows.spark_glue.tasks.shard_run import ShardRun
from tests.lanes import quick
from tests.simulation.__main__ import app, trials
from tests.simulation.case import Case, Crash, Row, Segment
from tests.simulation.draw import case_of
from tests.simulation.execution import Execution, by_shard
from tests.simulation.fuses import CrashedError, Fuse
from tests.simulation.shrink import shrink
from tests.simulation.stage import Attempt, Shard, Stage, Times, state_folder
from tests.simulation.trial import try_seed

#: Seeds of the quick test, and of the nightly one.
QUICK, THOROUGH, NIGHTLY = range(40), range(120), range(1_000_000, 1_005_000)
ROOT = Path(__file__).parents[2]
#: The rows of shards.
Rows = dict[int, list[pa.Table]]


def test_some_seeds() -> None:
    found = [*trials(QUICK, jobs=1)]
    assert [trial.failure for trial in found if trial.failure is not None] == []
    assert sum(trial.facts["results"] for trial in found) > 5


@pytest.mark.thorough
def test_cuts_crashes_and_shards_change_nothing() -> None:
    found = [*trials(THOROUGH, jobs=1)]
    assert [trial.failure for trial in found if trial.failure is not None] == []
    for fact in ("results", "late", "calls", "crashes", "refused", "aggregated"):
        assert sum(trial.facts[fact] for trial in found) > 5, fact
    strategies = {trial.strategy for trial in found}
    wanted = {
        "slices", "buffer", "row at a time", "interval join", "temporal join", "over",
        "process function", "match",
    }  # fmt: skip
    assert strategies == wanted


@pytest.mark.slow
def test_many_seeds() -> None:
    found = trials(NIGHTLY, jobs=2)
    assert [trial.failure for trial in found if trial.failure is not None] == []


@pytest.mark.slow
@pytest.mark.ptx(runs=True)
def test_compiled_cuda_kernels_give_the_same() -> None:
    run = in_a_process("--seeds", "0..400", "--device", "ptx")
    assert run.returncode == 0, run.stdout + run.stderr


# ---- what is broken on purpose


class LosesRuns(StateLog):
    """A log that forgets a run of a table when it has several."""

    def runs(self, table: str) -> list[Run]:
        return super().runs(table)[-1:]


class LosesRunsExecution(Execution):
    def __init__(self, case: Case) -> None:
        super().__init__(case, LosesRuns)


class KeepsWhatDied(Execution):
    """What a micro-batch wrote that died before it was committed stays."""

    def _die(self, rows: Rows, times: Times, crash: Crash) -> None:
        with suppress(CrashedError):
            self._stage.commit(self._attempt(rows, times, Fuse(crash.after)).shards)


class IsLateTooEarly(Execution):
    """A watermark that is a tick ahead."""

    def _attempt(self, rows: Rows, times: Times, fuse: Fuse) -> Attempt:
        if times.watermark is not None:
            times = replace(times, watermark=min(times.watermark + 1, LONG_MAX))
        return super()._attempt(rows, times, fuse)


class KnowsAnOldWatermark(Execution):
    """Tasks before the shuffle know a watermark that is behind."""

    def _sent(self, rows: Any, segment: Segment) -> Any:
        if segment.before is not None:
            segment = replace(segment, before=segment.before - 20)
        return super()._sent(rows, segment)


@pytest.mark.parametrize(
    "broken",
    quick(
        [LosesRunsExecution, KeepsWhatDied, IsLateTooEarly, KnowsAnOldWatermark], LosesRunsExecution
    ),
)
def test_what_is_broken_is_found_and_made_small(broken: type[Execution]) -> None:
    failure = first_failure(broken)
    assert len(re.findall(r"^  row ", failure, re.MULTILINE)) <= 4
    assert re.search(r"^seed (\d+): python -m tests.simulation --seeds \1\.\.", failure)


def test_shards_without_rows_that_are_not_called_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Stage._run

    def skip(self: Stage, number: int, rows: Any, times: Times, *rest: Any) -> Shard:
        if rows or times.watermark == LONG_MAX or number >= len(self.shards):
            return run(self, number, rows, times, *rest)
        return self.shards[number]

    monkeypatch.setattr(Stage, "_run", skip)
    assert re.search(r"segment \d+: results: lacks ", first_failure(Execution))


def test_a_watermark_before_its_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def reversed_steps(self: ShardRun, tables: Any, watermark_after: Any) -> Iterator[Emission]:
        operator = self._operator
        if self._plan.query.reads_processing_time:
            yield from operator.advance_processing_time(self._now)
        if (watermark := watermark_after()) is not None:
            yield from operator.advance_watermark(watermark)
        yield from shard_run.process_rows(self._plan, operator, tables)

    monkeypatch.setattr(ShardRun, "_steps", reversed_steps)
    assert re.search(r"segment \d+: late: has ", first_failure(Execution))


def test_times_that_a_shard_does_not_report_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = ShardRun.finish
    monkeypatch.setattr(
        ShardRun, "finish", lambda self, name: replace(finish(self, name), next_times=(None, None))
    )
    assert "BrokenInvariantError: nothing is due" in first_failure(Execution)


def test_given_keys_are_filled_when_a_shard_runs_for_the_first_time_without_rows() -> None:
    assert try_seed(2300).failure is None


def test_a_lost_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_run, "_in_order", lambda plan, rows: rows)
    failure = first_failure(Execution)
    assert len(re.findall(r"^  row ", failure, re.MULTILINE)) >= 2


def test_what_is_raised_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(shard_run, "process_rows", raises)
    assert "ZeroDivisionError: on purpose" in first_failure(Execution)


# ---- crashes


def test_what_an_attempt_wrote_that_died_is_swept() -> None:
    """Also what it wrote in part; what was committed is left as it was."""
    case = case_of(1)[0]
    rows = next(each for each in case.segments() if each.rows)
    with state_folder() as folder:
        stage = Stage(case.executed, folder)
        dealt = by_shard(stage.plan, [case.table(rows.rows, stage.plan, rows.now)])
        stage.commit(stage.attempt(dealt, Times(1, None), Fuse()).shards)
        before, shards = files_in(folder), stage.shards
        for after in count():
            try:
                made = stage.attempt(dealt, Times(2, None), Fuse(after))
            except CrashedError:
                assert stage.shards == shards
                assert {name: files_in(folder)[name] for name in before} == before
                continue
            break
        assert after > 5
        assert len(files_in(folder)) > len(before) + 1
        stage.commit(made.shards)
        live = {name for shard in stage.shards for name in shard.state.files}
        assert {*files_in(folder)} == live


def files_in(folder: str) -> dict[str, bytes]:
    found = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def first_failure(make: type[Execution]) -> str:
    for seed in THOROUGH:
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


def test_a_case_of_a_device_shrinks_to_one_that_can_be_planned() -> None:
    cases = (case_of(seed, "cuda")[0] for seed in count())
    case = next(each for each in cases if isinstance(each.query, WindowQuery))
    assert shrink(case, lambda smaller: True).executed.strategy is Strategy.ROW_AT_A_TIME


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seeds", "7"],
        ["--seeds", "9..9"],
        ["--seeds", "a..b"],
        ["--device", "gpu"],
        pytest.param(
            ["--device", "cuda"],
            marks=pytest.mark.skipif(why_no_cuda() is None, reason="a device is there"),
        ),
    ],
)
def test_bad_arguments_are_told(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2, result.output


@pytest.mark.thorough
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
