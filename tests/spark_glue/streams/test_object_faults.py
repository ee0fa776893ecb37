"""A store that fails a request of a micro-batch, before it does what is asked for or after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto.server")
pytest.importorskip("pyspark")

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.object_files import ObjectFiles
from gpu_windows.errors import CheckpointError, ConcurrentQueryError, StateCorruptedError
from tests.checkpointing.s3_server import Faults, S3Server, serve_s3
from tests.spark_glue.drivers import FIRST, Driver, Rows, Writer
from tests.spark_glue.streams.test_engine import MICRO_BATCHES, check

pytestmark = pytest.mark.thorough


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    with serve_s3() as found:
        yield found


class Failing:
    """Fails one request, by its number, and notes which that was."""

    def __init__(self, at: int) -> None:
        self.at, self.count, self.failed = at, 0, ""

    def is_due(self, method: str, path: str) -> bool:
        number, self.count = self.count, self.count + 1
        if number == self.at:
            self.failed = f"{method} {path}"
        return number == self.at

    def status(self, method: str, path: str) -> int | None:
        return 500 if self.is_due(method, path) else None


@pytest.mark.parametrize("is_done", [False, True])
def test_a_request_that_fails_loses_and_doubles_nothing(server: S3Server, is_done: bool) -> None:
    """Nothing is tried again: the query ends, and is started again."""
    bucket, failed = server.make_bucket(), set[str]()
    for at in range(1_000):
        files = ObjectFiles(f"s3://{bucket}/{at}", server.options, retries=0)
        writer, fault = Writer(), Failing(at)
        driver = Driver(files, writer)
        driver.run_to(2)
        driver.plan(2, 3_000)
        server.faults = Faults(loses=fault.is_due) if is_done else Faults(status=fault.status)
        try:
            driver.engine(Rows(3), 2)
        except OSError:
            failed.add(fault.failed.replace(f"/{bucket}/{at}", "").rpartition("/")[0])
        server.faults = Faults()
        Driver(files, writer).run_to(MICRO_BATCHES)
        if not fault.failed:
            check(files, writer)
            break
        assert writer.results == {n: [b"%d" % sum(range(1, n + 2))] for n in range(MICRO_BATCHES)}
        assert all(writer.results[number] == found for number, found in writer.given)
    assert failed >= {"PUT /gpu_windows/commits", "PUT /gpu_windows/delivered",
                      "PUT /gpu_windows/state/00-00000", "GET /gpu_windows/commits"}  # fmt: skip


def test_requests_of_a_micro_batch(server: S3Server) -> None:
    """A commit, the state of a shard and a result: what the blocks of this machine do not know."""
    files = ObjectFiles(f"s3://{server.make_bucket()}/a", server.options)
    driver = Driver(files, Writer())
    driver.run_to(4)
    driver.plan(4, 9_000)
    server.answered.clear()
    driver.engine(Rows(5), 4)
    found = Counter(
        (each.kind, each.key.removeprefix("a/").rpartition("/")[0]) for each in server.answered
    )
    assert found == {
        ("GET", "offsets"): 1,
        ("PUT", "gpu_windows/state/00-00000"): 1,
        ("PUT", "gpu_windows/results"): 1,
        ("GET", "gpu_windows/commits"): 1,  # of the parent
        ("PUT", "gpu_windows/commits"): 1,
        ("LIST", "gpu_windows/commits"): 2,  # it is the last one; what to sweep
        ("GET", "gpu_windows/results"): 1,
        ("PUT", "gpu_windows/delivered"): 1,
        ("DELETE", ""): 2,  # what old commits need, then these
    }


def test_a_shard_looks_for_commits_once_a_process(server: S3Server) -> None:
    log = CommitLog(ObjectFiles(f"s3://{server.make_bucket()}/a", server.options))
    with pytest.raises(
        CheckpointError, match="the driver and all executors must reach a checkpoint"
    ):
        log.check_is_reachable()
    log.add(FIRST)
    server.answered.clear()
    for _ in range(3):
        log.check_is_reachable()
    assert [each.kind for each in server.answered] == ["LIST"]


def test_a_job_that_fails_as_another_driver_swept_its_files_says_so(server: S3Server) -> None:
    files = ObjectFiles(f"s3://{server.make_bucket()}/a", server.options)
    first, second = Driver(files, Writer()), Driver(files, Writer())
    first.run_to(1)
    second.run_to(3)
    first.plan(1, 2_000)

    def fail(*_: object) -> None:
        raise StateCorruptedError("a state file that the last commit needs must be there")

    first.job.run = fail  # type: ignore[method-assign,assignment]
    with pytest.raises(ConcurrentQueryError) as raised:
        first.engine(Rows(2), 1)
    assert isinstance(raised.value.__context__, StateCorruptedError)


def test_a_driver_that_another_one_overtook_ends(server: S3Server) -> None:
    files = ObjectFiles(f"s3://{server.make_bucket()}/a", server.options)
    writers = Writer(), Writer()
    first = Driver(files, writers[0])
    first.run_to(1)
    second = Driver(files, writers[1])
    second.run_to(2)
    first.plan(1, 2_000)
    with pytest.raises(ConcurrentQueryError, match="another one has committed"):
        first.engine(Rows(2), 1)
    assert [number for number, _ in writers[0].given] == [0]
    second.run_to(MICRO_BATCHES)
    assert sorted(writers[1].results) == list(range(1, MICRO_BATCHES))
