"""Copies of checkpoints, of queries that run, whatever dies meanwhile, without Spark."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpoints import copy_checkpoint, read_commits, roll_back
from gpu_windows.errors import CheckpointError, OutputError, StateMismatchError
from gpu_windows.spark_glue.streams.resume import read_resumed_commit
from tests.checkpoints.path_writer import read_sums
from tests.checkpoints.plain_query import contents, run, start, sums
from tests.spark_glue.drivers import DeathError, Driver, Writer, dying


def read_lineage(folder: Path) -> str:
    return read_commits(folder / "state")[-1].lineage


@pytest.mark.parametrize("sequence", [0, 1, 3, 5])
def test_a_copy_resumes_after_the_commit(tmp_path: Path, sequence: int) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    run(first, 5)
    before = contents(first)
    copy_checkpoint(first / "state", sequence, second / "state")
    assert contents(first) == before
    (commit,) = read_commits(second / "state")
    assert (commit.sequence, commit.batch) == (sequence, sequence - 1 if sequence else None)
    assert commit.is_delivered
    ids = [json.loads((each / "state" / "metadata").read_text())["id"] for each in (first, second)]
    assert ids[0] != ids[1]
    for log in ("offsets", "commits", "sources/0"):
        names = sorted(path.name for path in (second / "state").glob(f"{log}/*"))
        assert names == [str(number) for number in range(sequence)]
    run(second, 6)
    assert read_sums(second / "out") == sums(6)[sequence:]
    run(first, 6)
    assert read_sums(first / "out") == sums(6)


def test_a_copy_of_a_copy_that_went_back(tmp_path: Path) -> None:
    run(tmp_path / "0", 4)
    copy_checkpoint(tmp_path / "0" / "state", 2, tmp_path / "1" / "state")
    run(tmp_path / "1", 5)
    roll_back(tmp_path / "1" / "state", 3, output=tmp_path / "1" / "out")
    assert read_sums(tmp_path / "1" / "out") == sums(3)[2:]
    copy_checkpoint(tmp_path / "1" / "state", 6, tmp_path / "2" / "state")
    run(tmp_path / "2", 5)
    assert read_sums(tmp_path / "2" / "out") == sums(5)[3:]
    assert len({read_lineage(tmp_path / str(each)) for each in range(3)}) == 3
    (tmp_path / "3").mkdir()
    shutil.copytree(tmp_path / "0" / "out", tmp_path / "3" / "out")
    copy_checkpoint(tmp_path / "0" / "state", 2, tmp_path / "3" / "state")
    with pytest.raises(OutputError, match="with another checkpoint"):
        start(tmp_path / "3")


@pytest.mark.parametrize("is_before", [True, False])
def test_a_death_at_any_step_leaves_what_a_start_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_before: bool
) -> None:
    run(tmp_path, 3)
    steps = set()
    for at in range(1_000):
        state = tmp_path / str(at) / "state"
        with monkeypatch.context() as patched:
            which = dying(patched, LocalFiles(""), Writer(), at, is_before=is_before)
            try:
                copy_checkpoint(tmp_path / "state", 3, state)
            except DeathError:
                steps.add(which())
        step, log = which(), CommitLog(LocalFiles(str(state / FOLDER)))
        if step is None or (step == "create commits" and not is_before):
            assert len(read_commits(state)) == 1
        elif not contents(state.parent):
            assert step.startswith("read") or step == "write metadata"
            copy_checkpoint(tmp_path / "state", 3, state)
        else:
            with pytest.raises(StateMismatchError, match="as in a copy that did not end"):
                read_resumed_commit(log, LocalFiles(str(state)))
            with pytest.raises(CheckpointError, match="an incomplete copy must be deleted before"):
                copy_checkpoint(tmp_path / "state", 3, state)
            shutil.rmtree(state)
            copy_checkpoint(tmp_path / "state", 3, state)
        run(state.parent, 4)
        assert read_sums(state.parent / "out") == sums(4)[3:]
        if step is None:
            break
    assert steps >= {"write metadata", "write offsets", "write state", "create commits"}


def test_the_query_deletes_the_files_while_they_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are open: what is deleted after that is copied all the same."""
    run(tmp_path, 3)
    write = LocalFiles.write

    def sweeping(files: LocalFiles, name: str, parts: Iterator[bytes]) -> None:
        if name == "metadata":
            shutil.rmtree(tmp_path / "state" / FOLDER / "state")
        write(files, name, parts)

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "write", sweeping)
        copy_checkpoint(tmp_path / "state", 2, tmp_path / "copy" / "state")
    run(tmp_path / "copy", 4)
    assert read_sums(tmp_path / "copy" / "out") == sums(4)[2:]


def test_the_query_has_deleted_files_before_they_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, 3)
    open_file = LocalFiles.open

    @contextmanager
    def late(files: LocalFiles, name: str) -> Iterator[BinaryIO]:
        shutil.rmtree(tmp_path / "state" / FOLDER / "state", ignore_errors=True)
        with open_file(files, name) as file:
            yield file

    monkeypatch.setattr(LocalFiles, "open", late)
    with pytest.raises(
        CheckpointError,
        match=r"copy a later commit, .*\(keep=\), got commit 2: .*/state/00-00000/0+2-",
    ):
        copy_checkpoint(tmp_path / "state", 2, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_more_files_than_a_process_may_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, 3)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2, 2))
    copy_checkpoint(tmp_path / "state", 3, tmp_path / "copy" / "state")
    run(tmp_path / "copy", 4)
    assert read_sums(tmp_path / "copy" / "out") == sums(4)[3:]


# ---- refusals, before anything is written


def refused(folder: Path, sequence: int, target: Path, text: str) -> None:
    before = contents(folder)
    with pytest.raises(CheckpointError, match=text):
        copy_checkpoint(folder / "state", sequence, target)
    assert contents(folder) == before


@pytest.mark.parametrize("kind", ["a file", "other files", "a checkpoint", "inside", "itself"])
def test_where_no_copy_is_made(tmp_path: Path, kind: str) -> None:
    run(tmp_path, 2)
    target, text = tmp_path / "target", "must be a new or empty folder"
    if kind == "a file":
        target.touch()
    elif kind == "other files":
        target.mkdir()
        (target / "a").touch()
    elif kind == "a checkpoint":
        target.mkdir()
        Driver(target, Writer())
    else:
        target = tmp_path / "state" / ("" if kind == "itself" else "copy")
        text = "must be outside of it"
    refused(tmp_path, 1, target, text)


def test_what_cannot_be_copied(tmp_path: Path) -> None:
    run(tmp_path, 3)
    refused(tmp_path, 7, tmp_path / "to", "one that is kept: 0, 1, 2, 3, got 7")
    (tmp_path / "state" / "sources" / "0" / "0").unlink()
    refused(tmp_path, 2, tmp_path / "to", "log of the files .* sources/0/0 is not there")
    (tmp_path / "state" / "offsets" / "0").unlink()
    refused(tmp_path, 2, tmp_path / "to", "offsets/0 is not there")
    (tmp_path / "state" / "state").mkdir()
    (tmp_path / "state" / "state" / "0").mkdir()
    refused(tmp_path, 3, tmp_path / "to", "without stateful steps of Spark")
    shutil.rmtree(tmp_path / "state")
    refused(tmp_path, 3, tmp_path / "to", "must be a folder: there is none")


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, 3)

    def refuse(files: LocalFiles, name: str, _: Iterator[bytes]) -> None:
        raise OSError(28, "No space left on device", f"{files.root}/{name}")

    monkeypatch.setattr(LocalFiles, "write", refuse)
    refused(tmp_path, 3, tmp_path / "to", "accessible: No space left on device, got .*/metadata")
