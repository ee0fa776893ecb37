"""Whole queries whose checkpoint is on S3, Spark's part of it too, on a server on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto.server")
pytest.importorskip("pyspark")

import gpu_windows as gw
from gpu_windows.checkpointing.object_files import ObjectFiles
from gpu_windows.checkpoints import copy_checkpoint, roll_back
from tests.chaos.driver import STAGES
from tests.chaos.harness import kinds_of, prepare, rows_written, undisturbed
from tests.checkpointing.s3_server import KEY, SECRET, S3Server, serve_s3
from tests.spark_glue.s3_job import CLOCK, find_jars, settings_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("mvn") is None, reason="Maven fetches hadoop-aws"),
]
_LIMIT = 300


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return find_jars(tmp_path_factory.mktemp("maven"))


@pytest.fixture
def server() -> Iterator[S3Server]:
    with serve_s3() as found:
        yield found


class Run:
    """A run of a query in a process group of its own."""

    def __init__(self, query: str, folder: Path, checkpoint: str) -> None:
        command = [sys.executable, "-m", "tests.spark_glue.s3_job", query, str(folder), checkpoint]
        self._log = folder / "log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def finish(self) -> None:
        """Wait for the end, which must be a good one."""
        try:
            status = self.process.wait(_LIMIT)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        assert status == 0, self._log.read_text(errors="replace")[-5_000:]

    def kill(self) -> None:
        """Kill the driver with its JVM and its workers."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def start(server: S3Server, jars: list[str], folder: Path, query: str, bucket: str) -> Run:
    settings = settings_of(server.url, KEY, SECRET, jars)
    (folder / "settings").write_text(json.dumps(settings))
    return Run(query, folder, f"s3a://{bucket}/a/checkpoint")


def offsets_in(server: S3Server, bucket: str) -> dict[str, list[str]]:
    """Return which rows Spark planned for each micro-batch."""
    files = ObjectFiles(f"s3://{bucket}/a/checkpoint", server.options)
    names = files.names("offsets")
    return {name: files.read(name).decode().splitlines()[2:] for name in names}


def has_secret(server: S3Server, bucket: str, folder: Path) -> bool:
    """Whether the secret is in what was written: the checkpoint, the output, the log."""
    kept = [server.client.get_object(Bucket=bucket, Key=key)["Body"].read()
            for key in server.keys(bucket)]  # fmt: skip
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "settings"]
    return any(SECRET.encode() in content for content in (*kept, *(p.read_bytes() for p in paths)))


@pytest.mark.parametrize("query", ["sliding", STAGES])
def test_a_query_that_is_killed_writes_the_same(
    server: S3Server,
    jars: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
) -> None:
    """Its checkpoint is read where there is no Spark, goes back there, and is copied."""
    whole = tmp_path / "whole"
    prepare(whole, 4, 300)
    undisturbed(query, whole)
    planned = sorted(
        path.read_text().splitlines()[2:] for path in (whole / "checkpoint/offsets").glob("[0-9]*")
    )
    for attempt in range(3):  # Spark may take two files at once after a death
        bucket, folder = server.make_bucket(), tmp_path / f"run{attempt}"
        folder.mkdir()
        (folder / "in").symlink_to(whole / "in")
        run = start(server, jars, folder, query, bucket)
        while len([key for key in server.keys(bucket) if "gpu_windows/commits/" in key]) < 2:
            assert run.process.poll() is None, (folder / "log").read_text(errors="replace")[-5_000:]
            time.sleep(0.02)
        run.kill()
        start(server, jars, folder, query, bucket).finish()
        if sorted(offsets_in(server, bucket).values()) == planned:
            break
    for kind in kinds_of(query):
        assert rows_written(folder, kind) == rows_written(whole, kind)
        assert rows_written(whole, kind) or kind != "result"
    assert not has_secret(server, bucket, folder)
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT": server.url,
        "AWS_REGION": "eu-west-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    url = f"s3a://{bucket}/a/checkpoint"
    state, wanted = (gw.read_state(place) for place in (url, whole / "checkpoint"))
    assert (state.batch, state.watermark, state.stages) == (
        wanted.batch, wanted.watermark, wanted.stages,
    )  # fmt: skip
    first, last = gw.read_commits(url)
    assert first.can_resume
    copy_checkpoint(url, first.sequence, f"s3a://{bucket}/b")
    assert roll_back(url, first.sequence, output=folder / "out") == last.sequence + 1
    start(server, jars, folder, query, bucket).finish()
    for kind in kinds_of(query):
        assert rows_written(folder, kind) == rows_written(whole, kind)
    (copied,) = gw.read_commits(f"s3a://{bucket}/b")
    assert (copied.batch, copied.can_resume) == (first.batch, True)


def test_a_query_that_follows_the_clock(server: S3Server, jars: list[str], tmp_path: Path) -> None:
    """Spark's source of ticks reads commits in a process of its own."""
    folder = tmp_path / "run"
    prepare(folder, 2, 100)
    bucket = server.make_bucket()
    start(server, jars, folder, CLOCK, bucket).finish()
    assert rows_written(folder, "result")
    assert not has_secret(server, bucket, folder)
