"""The steps of a micro-batch, without Spark: a driver that dies at any of them, or is not alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpu_windows.checkpointing import object_files
from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.object_files import ObjectFiles
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.errors import StateMismatchError
from tests.spark_glue.drivers import DeathError, Driver, Rows, Writer, dying, files_of

MICRO_BATCHES = 4


@pytest.fixture(params=["disk", "objects", pytest.param("s3", marks=pytest.mark.slow)])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[int], CheckpointFiles]]:
    """Where checkpoints may be: from a number to the files of one."""
    if request.param == "disk":
        yield lambda number: LocalFiles(str(tmp_path / str(number)))
        return
    stores = pytest.importorskip("obstore.store")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    if request.param == "objects":
        opened = stores.MemoryStore()
        monkeypatch.setattr(object_files, "open_store", lambda *_: opened)
        yield lambda number: ObjectFiles(f"s3://bucket/{number}")
        return
    from tests.checkpointing.s3_server import serve_s3

    with serve_s3() as server:
        bucket = server.make_bucket()
        yield lambda number: ObjectFiles(f"s3://{bucket}/{number}", server.options)


def check(root: Path | CheckpointFiles, writer: Writer) -> None:
    """Check results and what was given again, and that no file is left that no commit needs."""
    sums = [sum(range(1, number + 2)) for number in range(MICRO_BATCHES)]
    assert writer.results == {n: [str(total).encode()] for n, total in enumerate(sums)}
    assert all(writer.results[number] == found for number, found in writer.given)
    log = CommitLog(files_of(root).below("gpu_windows"))
    last = log.last()
    assert last is not None
    assert last.number == MICRO_BATCHES - 1
    before = StateCommit.from_bytes(log.files.read(log.files.names("commits")[0]), "")
    found = {n for folder in ("results", "state/00-00000") for n in log.files.names(folder)}
    assert found == last.files | before.files
    assert not log.files.drafts("commits")


@pytest.mark.parametrize("is_before", [True, False])
def test_a_death_at_any_operation_loses_and_doubles_nothing(
    place: Callable[[int], CheckpointFiles], monkeypatch: pytest.MonkeyPatch, is_before: bool
) -> None:
    steps = set[str]()
    for at in range(1_000):
        root, writer = place(at), Writer()
        Driver(root, writer).run_to(1)
        with monkeypatch.context() as patched:
            which = dying(patched, root, writer, at, is_before=is_before)
            try:
                Driver(root, writer).run_to(MICRO_BATCHES - 1)
            except DeathError:
                verb, *folders = (which() or "").split()
                steps |= {f"{verb} {folder}" for folder in folders}
        step = which()
        Driver(root, writer).run_to(MICRO_BATCHES)
        check(root, writer)
        if step is None:
            break
    assert steps >= {"create commits", "create delivered", "write state", "write results",
                     "read offsets", "read commits", "give sink", "delete state", "delete results",
                     "delete commits", "delete delivered"}  # fmt: skip


def test_deaths_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(4)
    for case in range(60):
        root, writer = LocalFiles(str(tmp_path / str(case))), Writer()
        for _ in range(rng.randrange(1, 8)):
            with monkeypatch.context() as patched:
                dying(patched, root, writer, rng.randrange(60), is_before=rng.random() < 0.5)
                try:
                    Driver(root, writer).run_to(MICRO_BATCHES - 1)
                except DeathError:
                    continue
        Driver(root, writer).run_to(MICRO_BATCHES)
        check(root, writer)


def test_a_clock_that_is_set_back_does_not_go_back_here(tmp_path: Path) -> None:
    driver = Driver(tmp_path, Writer())
    for number, at_ms in enumerate([5_000, 3_000, 5_001, 9_000]):
        driver.plan(number, at_ms)
    driver.run_to(MICRO_BATCHES)
    assert driver.job.times == [5_000, 5_001, 5_002, 9_000]


def test_a_micro_batch_that_was_planned_anew_is_refused(tmp_path: Path) -> None:
    """Its offsets were removed, so it may have other rows; the sink has the first ones."""
    driver = Driver(tmp_path, Writer())
    driver.run_to(2)
    for folder in ("offsets", "commits"):
        (tmp_path / folder / "1").unlink()
    again = Driver(tmp_path, Writer())
    again.plan(1, 7_777)
    with pytest.raises(StateMismatchError, match="micro-batch 1, and the last commit is of"):
        again.run_to(2)
    assert again.writer.given == []


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_micro_batch_that_gave_nothing_may_be_planned_anew(tmp_path: Path, number: int) -> None:
    """It takes other rows, from the state before; no row of the first attempt is in it."""
    writer = Writer()
    driver = Driver(tmp_path, writer)
    driver.run_to(number)
    driver.job.gives = False
    driver.plan(number, 5_000)
    driver.engine(Rows(1_000), number)  # and dies before Spark notes that it has run
    (tmp_path / "offsets" / str(number)).unlink()
    again = Driver(tmp_path, writer)
    again.plan(number, 7_777)
    again.run_to(MICRO_BATCHES)
    writer.given = [each for each in writer.given if each[1]]
    check(tmp_path, writer)
    last = again.log.last()
    assert last is not None
    assert last.sequence == MICRO_BATCHES + 1


def test_only_the_last_micro_batch_may_be_planned_anew_and_once(tmp_path: Path) -> None:
    """The commit before those two is gone, and so is the state that they would begin from."""
    driver = Driver(tmp_path, Writer())
    driver.run_to(1)
    for at_ms in (5_000, 6_000, 7_000):
        again = Driver(tmp_path, Writer())
        again.job.gives = False
        (tmp_path / "offsets" / "1").unlink(missing_ok=True)
        again.plan(1, at_ms)
        if at_ms < 7_000:
            again.engine(Rows(1_000), 1)
            continue
        with pytest.raises(StateMismatchError, match="micro-batch 1, and the last commit is of"):
            again.engine(Rows(1_000), 1)


def test_files_that_attempts_leave_are_found_while_a_query_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_windows.spark_glue.streams.engine._SEARCH_EVERY", 3)
    driver = Driver(tmp_path, Writer())
    driver.run_to(1)
    left = driver.log.state_file(2, 0, 0, "ee")
    driver.log.files.write(left, [b"x"])  # of a task that ran twice
    driver.run_to(2)
    assert driver.log.files.exists(left)
    driver.run_to(3)
    assert not driver.log.files.exists(left)
