"""Files in a store of objects that is a server: its answers, its faults, and several clients."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto.server")

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.object_files import ObjectFiles
from gpu_windows.checkpointing.object_stores import parse_url
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.checkpointing.store_options import find_options
from gpu_windows.errors import CheckpointError, ConcurrentQueryError
from tests.checkpointing.s3_server import KEY, SECRET, Faults, S3Server, count_rounds, serve_s3

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def shared_server() -> Iterator[S3Server]:
    with serve_s3() as server:
        yield server


@pytest.fixture
def server(shared_server: S3Server) -> Iterator[S3Server]:
    yield shared_server
    shared_server.faults = Faults()


@pytest.fixture
def bucket(server: S3Server) -> str:
    return server.make_bucket()


@pytest.fixture
def files(
    server: S3Server, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ObjectFiles:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    return ObjectFiles(f"s3://{bucket}/some folder/checkpoint", server.options, retries=2)


def test_what_a_server_answers(files: ObjectFiles, server: S3Server, bucket: str) -> None:
    files.check_create()
    assert files.entries() is None
    assert files.create("commits/1", b"a")
    assert files.create("commits/1", b"a")
    assert not files.create("commits/1", b"b")
    content = bytes(range(256)) * 100_000
    files.write("state/00-00000/1-a", [content[:7], content[7:]])  # in parts
    files.write("results/1-a", [b"0123456789"])
    ranges = [(0, 5), (25_000_000, 700_000), (3_000_000, 10), (3_000_005, 2), (26_000_000, 9)]
    found = [content[offset : offset + length] for offset, length in ranges]
    assert files.read_ranges("state/00-00000/1-a", ranges) == found
    assert files.read_ranges("state/00-00000/1-a", ranges) == found  # of the cache
    assert files.read_end("state/00-00000/1-a", 100_000) == content[-100_000:]
    assert files.read_ranges("results/1-a", [(8, 5), (99, 1), (3, 2)]) == [b"89", b"", b"34"]
    with files.open("state/00-00000/1-a") as file:
        assert file.read(9) == content[:9]
        file.seek(24_000_000, 1)
        assert file.read(2_000_000) == content[24_000_009:]
    assert files.names("state/00-00000") == ["state/00-00000/1-a"]
    assert files.entries() == ["commits", "results", "state"]
    assert server.keys(bucket) == [
        f"some folder/checkpoint/{name}" for name in ("commits/1", "results/1-a",
        "state/00-00000/1-a")
    ]  # fmt: skip
    files.delete_all(["commits/1", "commits/2", "results/1-a", "state/00-00000/1-a"])
    assert server.keys(bucket) == []


@pytest.mark.parametrize("has_session", [True, False])
def test_every_object_is_encrypted_as_the_session_or_the_environment_says(
    server: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch, *, has_session: bool
) -> None:
    """State, which is sent in parts if it is large, and commits."""
    settings: dict[str, str] = {}
    if has_session:
        settings = {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "of-ours"}
    else:
        monkeypatch.setenv("AWS_SERVER_SIDE_ENCRYPTION", "aws:kms")
        monkeypatch.setenv("AWS_SSE_KMS_KEY_ID", "of-ours")
    url = f"s3a://{bucket}/checkpoint"
    options = (*server.options, *find_options(parse_url(url), settings.get))
    files = ObjectFiles(url, options, retries=2)
    assert files.create("commits/1", b"a")
    files.write("state/00-00000/1-a", [bytes(26_000_000)])
    files.write("results/1-a", [b"a"])
    for key in server.keys(bucket):
        found = server.client.head_object(Bucket=bucket, Key=key)
        assert (found["ServerSideEncryption"], found["SSEKMSKeyId"]) == ("aws:kms", "of-ours"), key
    assert len(server.keys(bucket)) == 3


def test_what_marks_a_folder_for_hadoop_is_no_file(
    files: ObjectFiles, server: S3Server, bucket: str
) -> None:
    for name in ("some folder/checkpoint/", "some folder/checkpoint/commits/"):
        server.client.put_object(Bucket=bucket, Key=name, Body=b"")
    assert files.names("commits") == []
    files.write("commits/1", [b"x"])
    assert files.names("commits") == ["commits/1"]
    assert files.entries() == ["commits"]


def test_a_part_that_fails_leaves_nothing(
    files: ObjectFiles, server: S3Server, bucket: str
) -> None:
    def parts() -> Iterator[bytes]:
        yield bytes(12 << 20)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        files.write("results/1-a", parts())
    assert server.keys(bucket) == []
    assert "Uploads" not in server.client.list_multipart_uploads(Bucket=bucket)


def _commit(last: StateCommit | None, identity: str) -> StateCommit:
    sequence, parent = (0, "") if last is None else (last.sequence + 1, last.identity)
    return StateCommit(sequence=sequence, lineage="a", facts="", identity=identity, parent=parent)


def test_of_two_drivers_one_commits(files: ObjectFiles) -> None:
    logs = [CommitLog(replace(files, retries=count)) for count in (2, 3)]  # clients of their own
    first = _commit(None, "f0")
    logs[0].add(first)
    for _ in range(10):
        last = logs[0].last()
        assert last is not None

        def run(number: int, last: StateCommit = last) -> bool:
            try:
                logs[number].add(_commit(last, f"{number}{last.sequence}"))
            except ConcurrentQueryError:
                return False
            return True

        with ThreadPoolExecutor(2) as threads:
            assert sorted(threads.map(run, range(2))) == [False, True]


def test_a_create_whose_answer_is_lost_has_succeeded(files: ObjectFiles, server: S3Server) -> None:
    lost: list[str] = []

    def loses(method: str, path: str) -> bool:
        if method == "PUT" and not lost:
            lost.append(path)
            return True
        return False

    server.faults = Faults(loses=loses)
    assert files.create("commits/1", b"a")
    assert lost
    assert files.read("commits/1") == b"a"


def test_a_create_that_meets_another_under_way_is_tried_again(
    files: ObjectFiles, server: S3Server
) -> None:
    asked: list[str] = []

    def conflict(method: str, _: str) -> int | None:
        asked.append(method)
        return 409 if asked == ["PUT"] else None

    server.faults = Faults(status=conflict)
    assert files.create("commits/1", b"a")
    assert asked == ["PUT", "GET", "PUT"]
    server.faults = Faults(status=lambda method, _: 409 if method == "PUT" else None)
    assert not files.create("commits/2", b"a")
    assert not files.create("commits/1", b"b")


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_that_fails_once_is_asked_again(
    files: ObjectFiles, server: S3Server, status: int
) -> None:
    files.write("results/1-a", [b"0123"])
    failed = []

    def fail(method: str, _: str) -> int | None:
        failed.append(method)
        return status if len(failed) % 2 else None

    server.faults = Faults(status=fail)
    assert files.read("results/1-a") == b"0123"
    assert files.read_ranges("results/1-a", [(1, 2)]) == [b"12"]
    assert files.create("commits/1", b"a")
    assert files.names("commits") == ["commits/1"]
    assert len(failed) == 8


def test_a_server_that_fails_raises_and_loses_nothing(files: ObjectFiles, server: S3Server) -> None:
    files.write("results/1-a", [b"0123"])
    server.faults = Faults(status=lambda *_: 500)
    for call in (
        lambda: files.read("results/1-a"),
        lambda: files.read_ranges("state/1-a", [(0, 1)]),
        lambda: files.read_end("state/1-a", 1),
        lambda: files.create("commits/1", b"a"),
        lambda: files.write("results/2-a", [bytes(6 << 20)]),
        lambda: files.names("commits"),
        lambda: files.exists("commits/1"),
        lambda: files.delete("results/1-a"),
        lambda: files.delete_all(["results/1-a"]),
        files.check_create,
    ):
        with pytest.raises(OSError, match="500") as raised:
            call()
        assert type(raised.value) is OSError
        assert SECRET not in f"{raised.value!r} {raised.value}"
        assert KEY not in f"{raised.value!r} {raised.value}"
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__
    server.faults = Faults()
    assert files.read("results/1-a") == b"0123"
    assert files.names("commits") == []
    assert files.names("results") == ["results/1-a"]


def test_a_server_that_is_not_there(files: ObjectFiles) -> None:
    options = dict(files.options) | {"endpoint": "http://127.0.0.1:9"}
    gone = replace(files, options=tuple(options.items()), retries=1)
    with pytest.raises(OSError, match="error sending request"):
        gone.read("commits/1")


def test_a_bucket_that_is_not_there(files: ObjectFiles) -> None:
    with pytest.raises(FileNotFoundError, match="NoSuchBucket"):
        replace(files, root="s3://nothing-there/a").check_create()


def test_a_server_that_replaces_what_is_there_is_refused(
    files: ObjectFiles, server: S3Server, bucket: str
) -> None:
    server.faults = Faults(has_conditions=False)
    with pytest.raises(CheckpointError, match=r"only if there is none .* got s3://bucket"):
        files.check_create()
    assert server.keys(bucket) == []


def test_a_server_without_conditions_is_refused(files: ObjectFiles, server: S3Server) -> None:
    server.faults = Faults(status=lambda method, _: 501 if method == "PUT" else None)
    with pytest.raises(CheckpointError, match=r"must do what S3 does, .*\(NotImplemented\)"):
        files.check_create()
    with pytest.raises(CheckpointError, match=r"must do what S3 does, .*\(NotImplemented\)"):
        files.create("commits/1", b"a")


def test_what_was_written_here_is_read_without_the_server(
    files: ObjectFiles, server: S3Server
) -> None:
    files.write("state/1-a", [b"0123456789"])
    before = server.requests.total()
    assert files.read_end("state/1-a", 4) == b"6789"
    assert files.read_ranges("state/1-a", [(1, 2)]) == [b"12"]
    assert server.requests.total() == before
    for block in Path(os.environ["SPARK_LOCAL_DIRS"]).rglob("*"):
        if block.is_file():
            block.write_bytes(block.read_bytes()[:-1] + b"!")
    assert files.read_end("state/1-a", 4) == b"6789"
    assert files.read_ranges("state/1-a", [(1, 2)]) == [b"12"]
    assert server.requests.total() == before + 1  # the end of a small file is all of it


@pytest.mark.parametrize("limit", ["", "0"])
def test_ranges_of_several_files_take_one_round(
    files: ObjectFiles, server: S3Server, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    content = bytes(range(256)) * 10_000
    for number in range(4):
        files.write(f"state/{number}", [content])
    for block in Path(os.environ["SPARK_LOCAL_DIRS"]).rglob("*"):
        if block.is_file():
            block.unlink()
    monkeypatch.setenv("GPU_WINDOWS_BLOCK_CACHE_BYTES", limit)
    server.faults = Faults(delay_s=0.5)
    server.answered.clear()
    ranges = [(9, 3), (700_000, 200_000), (701_000, 5), (2_500_000, 70_000)]
    files.prefetch({f"state/{number}": ranges for number in range(4)})
    assert (count_rounds(server.answered), len(server.answered)) == (1, 12)
    for number in range(4):
        found = files.read_ranges(f"state/{number}", ranges)
        assert found == [content[offset : offset + length] for offset, length in ranges]
    assert len(server.answered) == 12


def test_nothing_that_is_shown_or_pickled_plainly_has_the_secret(files: ObjectFiles) -> None:
    assert not re.search(f"{re.escape(SECRET)}|{KEY}", f"{files!r} {files}")
