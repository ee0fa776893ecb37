"""Commits follow one another; of two drivers one ends, and nothing that is needed is deleted."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.state_commit import ShardState, StagedFile, StageState, StateCommit
from gpu_windows.errors import ConcurrentQueryError, StateCorruptedError, StateVersionError

FIRST = StateCommit(sequence=0, lineage="a", facts="{}", stages=(StageState("", (ShardState(),)),))


@pytest.fixture
def log(tmp_path: Path) -> CommitLog:
    return CommitLog(LocalFiles(str(tmp_path)))


def following(log: CommitLog, last: StateCommit, attempt: str = "ab") -> StateCommit:
    """Write the state and the results of a micro-batch, and commit it."""
    sequence = last.sequence + 1
    state = log.state_file(sequence, 0, 0, attempt)
    results = log.results_file(sequence, attempt)
    for name in (state, results):
        log.files.write(name, [b"x"])
    older = last.stages[0].shards[0].files[-1:]
    commit = StateCommit(
        sequence=sequence,
        lineage=last.lineage,
        facts=last.facts,
        number=last.number + 1,
        stages=(StageState("", (ShardState(state, (*older, state)),)),),
        results=(StagedFile(results, ((0, 1),)),),
        parent=last.identity,
    )
    log.add(commit)
    return commit


def files_in(root: Path) -> list[str]:
    return sorted(str(f.relative_to(root)) for f in root.rglob("*") if f.is_file())


def test_it_reads_what_was_committed_last(log: CommitLog) -> None:
    assert log.last() is None
    log.add(FIRST)
    assert log.last() == FIRST
    second = following(log, FIRST)
    assert log.last() == second
    assert not log.is_delivered(second)
    log.mark_delivered(second)
    assert log.is_delivered(second)


def test_a_pickled_log_commits_and_sweeps(log: CommitLog) -> None:
    """As Spark Connect pickles what a micro-batch calls."""
    log.add(FIRST)
    log.sweep(FIRST)
    copy = pickle.loads(pickle.dumps(log))  # noqa: S301 - our own bytes
    second = following(copy, FIRST)
    copy.mark_delivered(second)
    copy.sweep(second)
    assert copy.last() == second


def test_of_two_drivers_one_ends(log: CommitLog) -> None:
    log.add(FIRST)
    second = following(log, FIRST, "aa")
    with pytest.raises(ConcurrentQueryError, match="got commit 1"):
        following(log, FIRST, "bb")
    assert log.last() == second
    with pytest.raises(ConcurrentQueryError):  # the parent was replaced
        log.add(replace(FIRST, sequence=2, parent="other"))
    with pytest.raises(ConcurrentQueryError):
        log.check_is_last(0, FIRST.identity)
    log.check_is_last(1, second.identity)


def test_a_driver_that_was_paused_for_long_finds_its_commit_gone(log: CommitLog) -> None:
    log.add(FIRST)
    last = FIRST
    for _ in range(4):
        last = following(log, last)
        log.sweep(last)
    with pytest.raises(ConcurrentQueryError):
        log.add(replace(FIRST, sequence=1, identity="c", parent=FIRST.identity))


def test_a_driver_that_was_paused_before_it_created_its_commit_ends(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile another one has made that commit, and more, and swept it."""
    log.add(FIRST)
    late = replace(FIRST, sequence=1, identity="c", parent=FIRST.identity)
    create: Callable[[LocalFiles, str, bytes], bool] = LocalFiles.create

    def paused(files: LocalFiles, name: str, data: bytes) -> bool:
        monkeypatch.undo()
        last = FIRST
        for _ in range(4):
            last = following(log, last)
            log.sweep(last)
        return create(files, name, data)

    monkeypatch.setattr(LocalFiles, "create", paused)
    with pytest.raises(ConcurrentQueryError, match="got commit 4"):
        log.add(late)
    last = log.last()
    assert last is not None
    assert last.sequence == 4


def test_what_no_commit_needs_is_deleted(log: CommitLog, tmp_path: Path) -> None:
    log.add(FIRST)
    last = FIRST
    for attempt in ("aa", "bb", "cc", "dd"):
        last = following(log, last, attempt)
        log.mark_delivered(last)
        log.sweep(last)
    assert files_in(tmp_path) == [
        "commits/000000000003",
        "commits/000000000004",
        "delivered/000000000003",
        "delivered/000000000004",
        "results/000000000003-cc",
        "results/000000000004-dd",
        "state/00-00000/000000000002-bb",  # which the third commit names
        "state/00-00000/000000000003-cc",
        "state/00-00000/000000000004-dd",
    ]


def test_as_many_commits_stay_as_are_kept_and_each_is_read_once(
    log: CommitLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.add(FIRST)
    read = LocalFiles.read
    names: list[str] = []

    def counted(files: LocalFiles, name: str) -> bytes:
        names.append(name)
        return read(files, name)

    last = FIRST
    for number in range(10):
        last = following(log, last, f"{number:02x}")
        monkeypatch.setattr(LocalFiles, "read", counted)
        log.sweep(last, 5)
        monkeypatch.undo()
    assert [each.sequence for each in log.read_all()] == [6, 7, 8, 9, 10]
    assert sorted(names) == sorted({*names})
    for number in range(10, 12):  # a start that keeps fewer
        last = following(log, last, f"{number:02x}")
        log.sweep(last, 2)
    assert [each.sequence for each in log.read_all()] == [11, 12]
    state = [name for name in files_in(tmp_path) if name.startswith("state")]
    assert [name[-2:] for name in state] == ["09", "0a", "0b"]


def test_results_of_a_commit_that_was_delivered_before_need_no_mark(log: CommitLog) -> None:
    log.add(FIRST)
    last = following(log, FIRST)
    assert not log.is_delivered(last)
    assert log.is_delivered(replace(last, was_delivered=True))


def test_attempts_that_failed_are_deleted_and_later_ones_are_not(
    log: CommitLog, tmp_path: Path
) -> None:
    log.sweep_failed_attempts()
    log.add(FIRST)
    last = following(log, FIRST)
    for sequence in (1, 2):
        log.files.write(log.state_file(sequence, 0, 0, "ee"), [b"x"])
        log.files.write(log.results_file(sequence, "ee"), [b"x"])
    log.sweep_failed_attempts()
    assert [name for name in files_in(tmp_path) if name.endswith("-ee")] == [
        "results/000000000002-ee",
        "state/00-00000/000000000002-ee",
    ]
    assert {name for name in files_in(tmp_path) if name.endswith("-ab")} == last.files


def test_a_death_within_a_sweep_leaves_what_the_next_one_deletes(
    log: CommitLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.add(FIRST)
    last = FIRST
    for _ in range(4):
        last = following(log, last)
    delete = LocalFiles.delete
    for deaths in range(12):
        left = [deaths]

        def dying(files: LocalFiles, name: str, left: list[int] = left) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            delete(files, name)

        with monkeypatch.context() as patched:
            patched.setattr(LocalFiles, "delete", dying)
            try:
                log.sweep(last)
            except KeyboardInterrupt:
                continue
    log.sweep(last)
    found = files_in(tmp_path)
    assert [name for name in found if name.startswith("commits")] == [
        "commits/000000000003",
        "commits/000000000004",
    ]
    assert len(found) == 7


def test_a_draft_of_a_driver_that_died_is_deleted(log: CommitLog, tmp_path: Path) -> None:
    log.add(FIRST)
    for sequence in (0, 1):  # one of a commit that is there, one of a commit to come
        (tmp_path / "commits" / f".draft-{sequence:012}-ab").write_bytes(b"x")
    log.sweep_failed_attempts()
    assert log.files.drafts("commits") == {"commits/.draft-000000000001-ab": "000000000001"}
    assert log.last() == FIRST


def test_a_commit_of_this_driver_that_nfs_says_is_there_is_its_own(log: CommitLog) -> None:
    assert log.files.create("commits/000000000000", FIRST.as_bytes)
    assert log.files.create("commits/000000000000", FIRST.as_bytes)
    assert not log.files.create("commits/000000000000", replace(FIRST, lineage="b").as_bytes)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"format": 1}', b"\xff"])
def test_what_is_no_commit_is_refused(log: CommitLog, text: bytes) -> None:
    log.files.create("commits/000000000000", text)
    with pytest.raises(StateCorruptedError, match="commits/000000000000"):
        log.last()


def test_a_commit_of_another_format_is_refused(log: CommitLog) -> None:
    log.files.create("commits/000000000000", b'{"format": 7}')
    with pytest.raises(StateVersionError, match="got 7"):
        log.last()
