"""Commits of checkpoints in a store of objects: listed, gone back to, copied, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import gpu_windows as gw
from gpu_windows.checkpointing import object_files
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.locations import open_checkpoint
from gpu_windows.checkpointing.object_files import ObjectFiles
from gpu_windows.checkpoints import copy_checkpoint, roll_back
from gpu_windows.errors import CheckpointError, OutputError, StateMismatchError
from tests.checkpoints.path_writer import PathWriter, read_sums
from tests.checkpoints.plain_query import KEEP, last_of, resume, sums
from tests.checkpoints.test_commit_commands import checkpoint, rows_of
from tests.spark_glue.drivers import DeathError, Driver, Writer, dying

STATE = "s3a://bucket/state"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The store of every bucket: it is in memory."""
    opened = pytest.importorskip("obstore.store").MemoryStore()
    monkeypatch.setattr(object_files, "open_store", lambda *_: opened)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "cache"))
    return opened


def run(place: str | Path, out: Path, end: int) -> None:
    files = open_checkpoint(place)
    resume(files)
    Driver(files, PathWriter(out, last_of(files)), KEEP).run_to(end)


def contents(store: Any) -> dict[str, bytes]:
    paths = [each["path"] for each in store.list().collect()]
    return {path: bytes(store.get(path).bytes()) for path in paths}


def test_commits_are_listed(store: Any, tmp_path: Path) -> None:
    run(STATE, tmp_path / "out", 3)
    run(tmp_path / "state", tmp_path / "other", 3)
    before = contents(store)
    commits = gw.read_commits(STATE)
    assert [(each.sequence, each.batch) for each in commits] == [(0, None), (1, 0), (2, 1), (3, 2)]
    assert commits == gw.read_commits(tmp_path / "state")
    assert all(each.is_delivered and each.can_resume for each in commits)
    result = checkpoint("list", STATE)
    assert (result.exit_code, result.stderr, len(rows_of(result))) == (0, "", 4)
    assert contents(store) == before
    missing = checkpoint("list", "s3a://bucket/none")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "must be a folder: there is none, got s3a://bucket/none" in missing.stderr


@pytest.mark.parametrize("sequence", [0, 2, 4])
def test_a_query_resumes_after_the_commit(store: Any, tmp_path: Path, sequence: int) -> None:
    out = tmp_path / "out"
    run(STATE, out, 4)
    result = checkpoint("back", STATE, sequence, "--output", out)
    text = f"Commit 5 has the state of commit {sequence}: a start resumes from it."
    assert (result.exit_code, " ".join(result.stdout.split())) == (0, text)
    assert read_sums(out) == sums(sequence)
    for log in ("offsets", "commits", "sources/0"):
        names = [f"{log}/{number}" for number in range(sequence)]
        assert open_checkpoint(STATE).names(log) == names
    assert not [path for path in contents(store) if "probe" in path]
    run(STATE, out, 5)
    assert read_sums(out) == sums(5)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("is_before", [True, False])
def test_a_death_at_any_step_leaves_the_former_state_or_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_before: bool
) -> None:
    refused = 0
    for at in range(1_000):
        place, out = f"s3a://bucket/{at}", tmp_path / str(at)
        run(place, out, 3)
        with monkeypatch.context() as patched:
            which = dying(patched, ObjectFiles(place), Writer(), at, is_before=is_before)
            with suppress(DeathError):
                roll_back(place, 1, output=out)
        try:
            run(place, out, 3)
        except StateMismatchError:
            refused += 1
            roll_back(place, 4, output=out)
        run(place, out, 4)
        assert read_sums(out) == sums(4)
        if which() is None:
            break
    assert refused > 2


PLACES: dict[str, Callable[[Path], str | Path]] = {
    "store to store": lambda _: "gs://other/copy",
    "store to disk": lambda folder: folder / "copy",
    "disk to store": lambda _: "s3a://bucket/copy",
}


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("name", PLACES)
def test_a_copy_resumes_after_the_commit(tmp_path: Path, name: str) -> None:
    place: str | Path = tmp_path / "state" if name == "disk to store" else STATE
    run(place, tmp_path / "out", 4)
    target = PLACES[name](tmp_path)
    copy_checkpoint(place, 2, target)
    (commit,) = gw.read_commits(target)
    assert (commit.sequence, commit.batch, commit.is_delivered) == (2, 1, True)
    for each, out, found in ((target, "of copy", sums(5)[2:]), (place, "out", sums(5))):
        run(each, tmp_path / out, 5)
        assert read_sums(tmp_path / out) == found


@pytest.mark.usefixtures("store")
def test_the_query_deletes_the_files_while_they_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store keeps nothing open, so the copy does not end, and no start takes it."""
    run(STATE, tmp_path / "out", 3)
    write = ObjectFiles.write

    def sweeping(files: ObjectFiles, name: str, parts: Any) -> None:
        state = open_checkpoint(STATE).below(FOLDER)
        state.delete_all(state.walk("state"))
        write(files, name, parts)

    monkeypatch.setenv("GPU_WINDOWS_BLOCK_CACHE_BYTES", "0")
    with monkeypatch.context() as patched:
        patched.setattr(ObjectFiles, "write", sweeping)
        with pytest.raises(CheckpointError, match=r"Delete the copy, .* got commit 2: state/00-"):
            copy_checkpoint(STATE, 2, "s3a://bucket/copy")
    with pytest.raises(StateMismatchError, match="as in a copy that did not end"):
        resume(open_checkpoint("s3a://bucket/copy"))
    with pytest.raises(CheckpointError, match="an incomplete copy must be deleted before"):
        copy_checkpoint(STATE, 0, "s3a://bucket/copy")


# ---- refusals, before anything is changed


@pytest.mark.parametrize("target", [STATE, f"{STATE}/copy", "s3://bucket/state/copy"])
def test_no_copy_is_made_inside_of_the_checkpoint(store: Any, tmp_path: Path, target: str) -> None:
    run(STATE, tmp_path / "out", 2)
    before = contents(store)
    with pytest.raises(CheckpointError, match="must be outside of it"):
        copy_checkpoint(STATE, 1, target)
    assert contents(store) == before


def test_what_is_refused_changes_nothing(store: Any, tmp_path: Path) -> None:
    run(STATE, tmp_path / "out", 3)
    run("s3a://bucket/other", tmp_path / "other", 1)
    before = contents(store)
    with pytest.raises(CheckpointError, match="must be a new or empty folder, got s3a://bucket/o"):
        copy_checkpoint(STATE, 1, "s3a://bucket/other")
    with pytest.raises(CheckpointError, match="HDFS has no public call"):
        copy_checkpoint(STATE, 1, "hdfs://host/copy")
    with pytest.raises(CheckpointError, match="results after the commit were given to the sink"):
        roll_back(STATE, 1)
    with pytest.raises(OutputError, match="from a path on a disk of this machine, got s3a://"):
        roll_back(STATE, 1, output="s3a://bucket/out")
    open_checkpoint(STATE).write("state/0/0/1.delta", [b"x"])
    for command in (
        lambda: roll_back(STATE, 1, again=True),
        lambda: copy_checkpoint(STATE, 1, "a"),
    ):
        with pytest.raises(CheckpointError, match="without stateful steps of Spark"):
            command()
    open_checkpoint(STATE).delete("state/0/0/1.delta")
    assert contents(store) == before


def test_a_store_that_replaces_what_exists(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(STATE, tmp_path / "out", 3)
    before, obstore = contents(store), pytest.importorskip("obstore")
    put = obstore.put

    def replacing(store: Any, path: str, data: bytes, **_: Any) -> Any:
        return put(store, path, data)

    monkeypatch.setattr("obstore.put", replacing)
    for command in (
        lambda: roll_back(STATE, 1, output=tmp_path / "out"),
        lambda: copy_checkpoint(STATE, 1, "s3a://bucket/copy"),
    ):
        with pytest.raises(CheckpointError, match="an object only if there is none"):
            command()
    assert contents(store) == before
    assert read_sums(tmp_path / "out") == sums(3)
