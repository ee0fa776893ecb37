"""An input that has something new when a timer is due by the clock, and where that is in a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

pytest.importorskip("pyspark")

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.spark_glue.streams import ticks
from gpu_windows.spark_glue.streams.ticks import TickReader

Commit = Callable[[int, int | None], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Its one value is the time, in milliseconds."""
    now = [1_000]
    monkeypatch.setattr(ticks, "_now_ms", lambda: now[0])
    return now


@pytest.fixture
def commit(tmp_path: Path) -> Commit:
    """Add a commit: when it was planned, and when something is due."""
    log, last = CommitLog(LocalFiles(str(tmp_path))), list[StateCommit]()

    def add(planned_ms: int, due_ms: int | None) -> None:
        made = StateCommit(sequence=len(last), lineage="a", facts="", identity=uuid4().hex)
        parent = last[-1].identity if last else ""
        last.append(replace(made, planned_ms=planned_ms, next_call_ms=due_ms, parent=parent))
        log.add(last[-1])

    return add


def reader(folder: Path) -> TickReader:
    return TickReader(CommitLog(LocalFiles(str(folder))))


def latest(of: TickReader, begin: int = 0) -> int:
    return of.latestOffset({"at_ms": begin})["at_ms"]


def test_a_tick_comes_when_something_is_due(
    tmp_path: Path, clock: list[int], commit: Commit
) -> None:
    commit(900, 1_500)
    ours = reader(tmp_path)
    assert latest(ours) == 1_000  # what was due before the start is not waited for
    clock[0] = 1_499
    assert latest(ours, 1_000) == 1_000
    clock[0] = 1_600
    assert latest(ours, 1_000) == 1_600
    commit(1_600, None)
    clock[0] = 9_000
    assert latest(ours, 1_600) == 1_600


def test_a_clock_that_was_set_back_does_not_go_back(
    tmp_path: Path, clock: list[int], commit: Commit
) -> None:
    commit(5_000, 1_000)
    assert latest(reader(tmp_path), 4_000) == 5_000
    clock[0] = 6_000
    assert latest(reader(tmp_path), 7_000) == 7_000


def test_a_run_to_the_end_has_one_tick(tmp_path: Path, clock: list[int], commit: Commit) -> None:
    """Else it would go on for as long as timers become due."""
    commit(900, 950)
    ours = reader(tmp_path)
    ours.prepareForTriggerAvailableNow()
    clock[0] = 2_000
    assert latest(ours) == 1_000
    commit(1_900, 1_901)
    clock[0] = 3_000
    assert latest(ours, 1_000) == 1_000
