"""A checkpoint that goes back to an earlier commit, whatever dies meanwhile, without Spark."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.checkpoints import read_commits, roll_back
from gpu_windows.checkpoints.path_results import PathResults
from gpu_windows.commits.path_log import PathLog
from gpu_windows.errors import (
    CheckpointError,
    ConcurrentQueryError,
    OutputError,
    StateMismatchError,
)
from tests.checkpoints.path_writer import PathWriter, read_sums
from tests.checkpoints.plain_query import KEEP, back, contents, run, start, sums
from tests.spark_glue.drivers import DeathError, Driver, Rows, Writer, dying


@pytest.mark.parametrize("sequence", [0, 1, 3, 5])
def test_a_query_resumes_after_the_commit_and_its_path_has_each_result_once(
    tmp_path: Path, sequence: int
) -> None:
    run(tmp_path, 5)
    assert back(tmp_path, sequence) == 6
    assert read_sums(tmp_path / "out") == sums(sequence)
    for log in ("offsets", "commits", "sources/0"):
        names = sorted(path.name for path in (tmp_path / "state" / log).iterdir())
        assert names == [str(number) for number in range(sequence)]
    newest, target = (
        read_commits(tmp_path / "state")[-1],
        read_commits(tmp_path / "state")[sequence],
    )
    assert newest.is_last
    assert newest.is_delivered
    assert newest.lineage != target.lineage
    same = replace(newest, sequence=target.sequence, lineage=target.lineage, is_last=False)
    assert replace(same, is_delivered=target.is_delivered) == target
    run(tmp_path, 6)
    assert read_sums(tmp_path / "out") == sums(6)


def test_who_follows_the_path_is_told_then_has_what_comes_again(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from pyspark.sql.types import StructType

    from gpu_windows.spark_glue.files.commit_source import CommitReader

    run(tmp_path, 4)
    options = {"uri": (tmp_path / "out").as_uri(), "output": "result"}
    reader = CommitReader(StructType(), {**options, "tasks": "2", "task_bytes": "1"})
    seen = reader.latestOffset({"generation": 0, "micro_batch": 1})
    back(tmp_path, 2)
    with pytest.raises(OutputError, match="the path holds less than was read from it"):
        reader.latestOffset(seen)
    run(tmp_path, 3)
    now = reader.latestOffset(seen)
    assert now == {"generation": 1, "micro_batch": 2}
    again = PathLog((tmp_path / "out").as_uri()).between((0, 3), (1, 2))
    assert [(each.number, each.rows) for each in again] == sums(3)[2:]


def test_it_goes_back_several_times(tmp_path: Path) -> None:
    run(tmp_path, 5)
    back(tmp_path, 4)
    back(tmp_path, 6)  # the newest, which is the fourth
    back(tmp_path, 2)
    run(tmp_path, 4)
    assert read_sums(tmp_path / "out") == sums(4)
    back(tmp_path, 10)
    back(tmp_path, 0)
    run(tmp_path, 5)
    assert read_sums(tmp_path / "out") == sums(5)


def test_a_driver_that_runs_meanwhile_ends_and_a_start_refuses_what_it_has_planned(
    tmp_path: Path,
) -> None:
    driver = start(tmp_path)
    driver.run_to(4)
    back(tmp_path, 2)
    driver.plan(4, 7_777)
    before = contents(tmp_path)
    with pytest.raises(ConcurrentQueryError):
        driver.engine(Rows(5), 4)
    after = contents(tmp_path)
    unnamed = after.keys() - before.keys()  # files of a commit that there is not
    folders = {name.rpartition("/")[0].split("/")[2] for name in unnamed}
    assert folders <= {"results", "state"}
    assert {name: after[name] for name in before} == before
    text = r"Stop all queries .* \(again, with the same --output\) to commit 5, got"
    with pytest.raises(StateMismatchError, match=text):
        start(tmp_path)
    back(tmp_path, 5)
    run(tmp_path, 5)
    assert read_sums(tmp_path / "out") == sums(5)
    assert unnamed.isdisjoint(contents(tmp_path))


def test_what_a_driver_plans_until_it_is_fenced_off_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = start(tmp_path)
    driver.run_to(4)
    add = CommitLog.add

    def planning(log: CommitLog, commit: StateCommit) -> None:
        driver.plan(4, 7_777)
        add(log, commit)

    with monkeypatch.context() as patched:
        patched.setattr(CommitLog, "add", planning)
        back(tmp_path, 2)
    run(tmp_path, 5)
    assert read_sums(tmp_path / "out") == sums(5)


@pytest.mark.parametrize("sequence", [0, 2, 4])
@pytest.mark.parametrize("is_before", [True, False])
def test_a_death_at_any_step_leaves_the_former_state_or_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sequence: int, is_before: bool
) -> None:
    whole = tmp_path / "whole"
    run(whole, 4)
    steps, refused = set(), 0
    for at in range(1_000):
        folder = tmp_path / str(at)
        shutil.copytree(whole, folder)
        with monkeypatch.context() as patched:
            which = dying(patched, LocalFiles(""), Writer(), at, is_before=is_before)
            try:
                back(folder, sequence)
            except DeathError:
                steps.add(which())
        try:
            run(folder, 4)
            assert read_sums(folder / "out") == sums(4)
        except StateMismatchError as error:
            refused += 1
            back(
                folder,
                int(str(error).partition("with the same --output) to commit ")[2].split(",")[0]),
            )
        run(folder, 5)
        assert read_sums(folder / "out") == sums(5)
        if which() is None:
            break
    assert "create commits" in steps
    assert "create owners" in steps
    assert "create delivered" in steps
    assert refused > 2
    if sequence < 4:
        assert steps >= {"delete commits", "delete offsets", "delete sources"}


def test_a_death_where_spark_has_not_noted_the_last_micro_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of Spark's is ahead then, and yet a start would give its results once more."""
    run(tmp_path, 2)
    (tmp_path / "state" / "commits" / "1").unlink()

    def die(*_: object) -> None:
        raise DeathError

    monkeypatch.setattr(PathResults, "withdraw", die)
    with pytest.raises(DeathError):
        back(tmp_path, 1)
    monkeypatch.undo()
    with pytest.raises(StateMismatchError, match=r"did not end.*to commit 3, got"):
        start(tmp_path)
    refused(tmp_path, 3, CheckpointError, "got results of micro-batch 1", again=False)
    with pytest.raises(OutputError, match="the path to which the query"):
        roll_back(tmp_path / "state", 3, output=tmp_path / "state")
    back(tmp_path, 3)
    run(tmp_path, 3)
    assert read_sums(tmp_path / "out") == sums(3)


def test_after_a_death_it_goes_to_no_commit_whose_results_may_be_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, 4)

    def die(results: PathResults, number: int) -> None:
        withdraw(results, number)
        raise DeathError

    withdraw = PathResults.withdraw
    monkeypatch.setattr(PathResults, "withdraw", die)
    with pytest.raises(DeathError):
        back(tmp_path, 1)
    monkeypatch.undo()
    refused(tmp_path, 3, CheckpointError, "went back, to commit 5: go to it or an earlier one")
    assert [each.can_resume for each in read_commits(tmp_path / "state")] == [
        True, True, False, False, False, True
    ]  # fmt: skip
    back(tmp_path, 0)
    run(tmp_path, 4)
    assert read_sums(tmp_path / "out") == sums(4)


@pytest.mark.thorough
def test_deaths_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    for case in range(60):
        folder = tmp_path / str(case)
        run(folder, 3)
        for _ in range(6):
            with monkeypatch.context() as patched:
                dying(
                    patched,
                    LocalFiles(""),
                    Writer(),
                    rng.randrange(40),
                    is_before=rng.random() < 0.5,
                )
                try:
                    choices = [e.sequence for e in read_commits(folder / "state") if e.can_resume]
                    back(folder, rng.choice(choices))
                except DeathError:
                    continue
            run(folder, rng.randrange(5))
        newest = read_commits(folder / "state")[-1].sequence
        back(folder, newest)
        run(folder, 6)
        assert read_sums(folder / "out") == sums(6)


# ---- refusals, before anything is changed


def refused(folder: Path, sequence: int, kind: type[Exception], text: str, **given: object) -> None:
    before = contents(folder)
    given = given or {"output": folder / "out"}
    with pytest.raises(kind, match=text):
        roll_back(folder / "state", sequence, **given)  # type: ignore[arg-type]
    assert contents(folder) == before


def test_a_commit_that_is_not_kept(tmp_path: Path) -> None:
    run(tmp_path, 2)
    refused(tmp_path, 3, CheckpointError, "one that is kept: 0, 1, 2, got 3")


def test_where_the_sink_has_results_somebody_says_what_becomes_of_them(tmp_path: Path) -> None:
    run(tmp_path, 4)
    text = r"name their path.*--output.*--again.*got results of micro-batch 2, 3"
    refused(tmp_path, 2, CheckpointError, text, again=False)
    assert roll_back(tmp_path / "state", 4) == 5  # nothing was delivered since
    assert roll_back(tmp_path / "state", 2, again=True) == 6
    writer = Writer()
    Driver(tmp_path / "state", writer, KEEP).run_to(4)
    assert [number for number, _ in writer.given] == [2, 3]


def test_spark_has_removed_its_part_or_has_another(tmp_path: Path) -> None:
    run(tmp_path, 4)
    offsets = tmp_path / "state" / "offsets"
    (offsets / "0").unlink()
    refused(tmp_path, 2, CheckpointError, "and of the one before: offsets/0 is not there, got com")
    refused(tmp_path, 1, CheckpointError, "offsets/0 is not there")
    text = (offsets / "2").read_text()
    (offsets / "2").write_text(text.replace("3000", "3001"))
    refused(tmp_path, 3, CheckpointError, "of the micro-batch that offsets/2 is of, got commit 3")


def test_the_results_of_the_commit_may_not_be_delivered(tmp_path: Path) -> None:
    run(tmp_path, 2)
    (tmp_path / "state" / FOLDER / "delivered" / f"{2:012}").unlink()
    refused(tmp_path, 2, CheckpointError, "start the query once, or go back to an earlier one")
    assert back(tmp_path, 1) == 3


def test_state_of_the_commit_is_gone(tmp_path: Path) -> None:
    run(tmp_path, 2)
    log = CommitLog(LocalFiles(str(tmp_path / "state" / FOLDER)))
    (name,) = (each for each in log.read_all()[1].files if each.startswith("state"))
    log.files.delete(name)
    refused(tmp_path, 1, CheckpointError, f"files of the commit must be there, got {name}")


def test_a_sweep_passes_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver deletes state of the commit after it was looked for: the new commit is undone."""
    run(tmp_path, 3)
    log = CommitLog(LocalFiles(str(tmp_path / "state" / FOLDER)))
    (name,) = (each for each in log.read_all()[1].files if each.startswith("state"))
    before = contents(tmp_path)
    add = CommitLog.add

    def sweeping(log: CommitLog, commit: StateCommit) -> None:
        log.files.delete(name)
        add(log, commit)

    monkeypatch.setattr(CommitLog, "add", sweeping)
    with pytest.raises(ConcurrentQueryError, match="stop it, got commit 1"):
        back(tmp_path, 1)
    assert contents(tmp_path) == {k: v for k, v in before.items() if not k.endswith(name)}


def test_input_files_are_gone(tmp_path: Path) -> None:
    run(tmp_path, 3)
    entry = {"path": (tmp_path / "a b").as_uri(), "timestamp": 1, "batchId": 2}
    (tmp_path / "state" / "sources" / "0" / "2").write_text(f"v1\n{json.dumps(entry)}")
    refused(tmp_path, 2, CheckpointError, "input files that were read after .*got .*/a b")
    (tmp_path / "a b").touch()
    assert back(tmp_path, 2) == 4


def test_spark_keeps_state_of_steps_before(tmp_path: Path) -> None:
    run(tmp_path, 3)
    (tmp_path / "state" / "state" / "0").mkdir(parents=True)
    assert not any(each.can_resume for each in read_commits(tmp_path / "state"))
    refused(tmp_path, 2, CheckpointError, "without stateful steps of Spark")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nowhere", "the path to which the query of the checkpoint writes"),
        ("state", "the path to which the query of the checkpoint writes"),
        ("other/out", "the path to which the query of the checkpoint writes"),
        ("s3a://bucket/out", "from a path on a disk of this machine, got s3a://bucket/out"),
    ],
)
def test_the_output_is_another(tmp_path: Path, path: str, text: str) -> None:
    run(tmp_path, 3)
    PathWriter(tmp_path / "other" / "out", "b" * 32)
    output = path if ":" in path else tmp_path / path
    refused(tmp_path, 2, OutputError, text, output=output)


@pytest.mark.parametrize("kind", ["a file", "nothing", "an empty folder", "of Spark's"])
def test_what_is_no_checkpoint(tmp_path: Path, kind: str) -> None:
    state = tmp_path / "state"
    if kind == "a file":
        state.touch()
    elif kind != "nothing":
        state.mkdir()
    if kind == "of Spark's":
        (state / "metadata").touch()
    refused(tmp_path, 0, CheckpointError, "must be")


def test_a_disk_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, 3)

    def refuse(files: LocalFiles, name: str, _: bytes) -> bool:
        raise PermissionError(13, "Permission denied", f"{files.root}/{name}")

    monkeypatch.setattr(LocalFiles, "create", refuse)
    refused(tmp_path, 2, CheckpointError, "accessible: Permission denied, got .*commits/0+4")
