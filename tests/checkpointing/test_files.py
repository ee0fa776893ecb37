"""Files of a checkpoint: what each kind of store must do alike."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from gpu_windows.checkpointing import object_files
from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.object_files import ObjectFiles
from tests.checkpointing.azure_server import ACCOUNT, KEY, install, make_container, serve_azure


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of a store of Azure."""
    if shutil.which("npm") is None:
        pytest.skip("npm fetches Azurite")
    folder = tmp_path_factory.mktemp("azurite")
    with serve_azure(install(folder), folder) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """A store of S3."""
    pytest.importorskip("moto.server")
    from tests.checkpointing.s3_server import serve_s3

    with serve_s3() as server:
        yield server


SERVERS = [pytest.param("s3", marks=pytest.mark.thorough),
           pytest.param("azure", marks=pytest.mark.slow)]  # fmt: skip


@pytest.fixture(params=["local", "objects", "objects on a disk", "objects without cache", *SERVERS])
def files(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CheckpointFiles:
    if request.param == "local":
        return LocalFiles(str(tmp_path / "checkpoint"))
    stores = pytest.importorskip("obstore.store")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    if request.param == "azure":
        endpoint, box = request.getfixturevalue("azure"), f"box{uuid4().hex}"
        make_container(endpoint, box)
        options = (("account_key", KEY), ("endpoint", endpoint))
        return ObjectFiles(f"abfss://{box}@{ACCOUNT}.dfs.core.windows.net/a b/c", options)
    if request.param == "s3":
        server = request.getfixturevalue("s3")
        return ObjectFiles(f"s3://{server.make_bucket()}/a b/c", server.options)
    is_on_disk = request.param == "objects on a disk"
    store = stores.LocalStore(tmp_path / "bucket", mkdir=True) if is_on_disk else None
    opened = store or stores.MemoryStore()
    monkeypatch.setattr(object_files, "open_store", lambda *_: opened)
    if request.param == "objects without cache":
        monkeypatch.setenv("GPU_WINDOWS_BLOCK_CACHE_BYTES", "0")
    return ObjectFiles("s3://bucket/checkpoint")


def test_of_several_creators_one_succeeds(files: CheckpointFiles) -> None:
    assert files.create("commits/1", b"a")
    assert files.create("commits/1", b"a")  # as after an answer that was lost
    assert not files.create("commits/1", b"b")
    assert files.read("commits/1") == b"a"


def test_of_creators_at_once_one_succeeds(files: CheckpointFiles) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda n: files.create("commits/1", b"%d" % n), range(40)))
    assert sum(made) == 1
    assert files.read("commits/1") == b"%d" % made.index(True)


def test_a_large_file(files: CheckpointFiles) -> None:
    """It is streamed in parts."""
    content = bytes(range(256)) * 50_000
    files.write("results/1-a", (content[at : at + 999_999] for at in range(0, 12_800_000, 999_999)))
    assert files.read("results/1-a") == content
    ranges = [(12_000_000, 900_000), (5, 10), (7_000_000, 3)]
    found = [content[offset : offset + length] for offset, length in ranges]
    assert files.read_ranges("results/1-a", ranges) == found
    assert files.read_end("results/1-a", 70_000) == content[-70_000:]
    files.delete_all(["results/1-a", "results/1-b"])
    assert not files.exists("results/1-a")


def test_a_file_is_read_in_ranges(files: CheckpointFiles) -> None:
    files.write("state/a", [b"01234", b"", b"56789"])
    ranges = [(8, 1), (0, 3), (2, 5), (4, 0), (7, 9), (10, 1), (99, 2)]
    found = [b"8", b"012", b"23456", b"", b"789", b"", b""]
    assert files.read_ranges("state/a", ranges) == found
    assert files.read_ranges("state/a", []) == []
    assert files.read_end("state/a", 3) == b"789"
    assert files.read_end("state/a", 30) == b"0123456789"
    assert files.read("state/a") == b"0123456789"
    with files.open("state/a") as file:
        assert file.read(2) == b"01"
        assert file.seek(3, 1) == 5
        assert file.read(100) == b"56789"
        assert file.read(1) == b""
        assert file.seek(-4, 2) == 6
        assert file.read(2) == b"67"
        assert file.seek(1) == file.tell() == 1
        assert file.read(2) == b"12"
    files.write("state/empty", [])
    assert files.read("state/empty") == files.read_end("state/empty", 5) == b""
    assert files.read_ranges("state/empty", [(0, 5)]) == [b""]


def read_a_piece(files: CheckpointFiles) -> bytes:
    with files.open("a/b") as file:
        return file.read(1)


READS: dict[str, Callable[[CheckpointFiles], object]] = {
    "read": lambda files: files.read("a/b"),
    "read_ranges": lambda files: files.read_ranges("a/b", [(0, 1)]),
    "read_ranges of state": lambda files: files.read_ranges("state/b", [(0, 1)]),
    "read_end": lambda files: files.read_end("a/b", 1),
    "read_end of state": lambda files: files.read_end("state/b", 1),
    "open": read_a_piece,
}


@pytest.mark.parametrize("name", READS)
def test_a_missing_file(files: CheckpointFiles, name: str) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        READS[name](files)
    assert str(raised.value.filename).endswith("/b")


def test_names_are_those_of_one_folder_in_order(files: CheckpointFiles) -> None:
    assert files.names("state/00-00000") == []
    assert files.entries() is None
    for name in ("state/00-00000/2", "state/00-00000/10", "state/00-000001/3", "commits/1"):
        files.write(name, [b"x"])
    assert files.names("state/00-00000") == ["state/00-00000/10", "state/00-00000/2"]
    assert files.entries() == ["commits", "state"]
    assert files.below("state").entries() == ["00-00000", "00-000001"]
    assert files.below("state").read("00-000001/3") == b"x"
    assert files.drafts("state/00-00000") == {}


def test_files_below_a_folder(files: CheckpointFiles) -> None:
    assert files.walk("sources") == []
    for name in ("sources/0/1", "sources/0/offsets/7", "sources/1", "sources.b/1", "commits/1"):
        files.write(name, [b"x"])
    assert files.walk("sources") == ["sources/0/1", "sources/0/offsets/7", "sources/1"]
    assert files.walk("sources/0") == ["sources/0/1", "sources/0/offsets/7"]


def test_a_folder_in_another_one(files: CheckpointFiles, tmp_path: Path) -> None:
    beside = replace(files, root=f"{files.root}-b")
    assert files.holds(files)
    assert files.holds(files.below("a"))
    assert not files.below("a").holds(files)
    assert not files.holds(beside)
    assert not beside.holds(files)
    assert not files.holds(LocalFiles(str(tmp_path / "other")))
    assert not files.holds(ObjectFiles("s3://other/checkpoint/a"))


def test_a_folder_of_a_bucket_is_the_same_by_each_scheme() -> None:
    files = ObjectFiles("s3://bucket/a")
    assert files.holds(ObjectFiles("s3a://bucket/a/b"))
    assert not files.holds(ObjectFiles("gs://bucket/a/b"))


def test_a_missing_file_is_deleted_too(files: CheckpointFiles) -> None:
    files.write("a/b", [b"x"])
    assert files.exists("a/b")
    files.delete("a/b")
    files.delete("a/b")
    assert not files.exists("a/b")
    assert files.names("a") == []


def test_a_part_that_fails_leaves_nothing_to_refer_to(files: CheckpointFiles) -> None:
    def parts() -> Iterator[bytes]:
        yield b"x"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        files.write("a/b", parts())
    with pytest.raises(ZeroDivisionError):
        files.write("a/c", (bytes(1 << 20) + b"" if i < 9 else 1 // 0 * b"" for i in range(10)))


def test_files_go_to_other_processes(files: CheckpointFiles) -> None:
    files.check_create()
    files.write("a/b", [b"x"])
    sent = pickle.loads(pickle.dumps(files))  # noqa: S301
    assert sent.read("a/b") == b"x"


def test_what_was_fetched_is_not_asked_for_again(
    files: CheckpointFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {f"state/{name}": bytes([name]) * (300_000 + name) for name in range(3)}
    for name, data in content.items():
        files.write(name, [data[:1_000], data[1_000:]])
    asked = {name: [(5, 10), (150_000, 3), (290_000, 99_999), (9, 0)] for name in content}
    files.prefetch(asked)
    files.prefetch({})
    if files.is_remote:
        monkeypatch.setattr(object_files, "import_obstore", no_library)
    for name, ranges in asked.items():
        found = [content[name][offset : offset + length] for offset, length in ranges]
        assert files.read_ranges(name, ranges) == found


def no_library() -> None:
    raise AssertionError("nothing is asked for")


def test_a_missing_file_among_those_that_are_fetched(files: CheckpointFiles) -> None:
    files.write("state/a", [b"0123"])
    asked = {"state/a": [(0, 1)], "state/b": [(0, 1)]}
    if not files.is_remote:
        files.prefetch(asked)  # a disk is asked when it is read
        return
    with pytest.raises(FileNotFoundError) as raised:
        files.prefetch(asked)
    assert raised.value.filename == "state/b"


def test_a_store_without_a_method_cannot_be_made() -> None:
    """It would answer None, and nobody would see why."""
    made = type("Half", (LocalFiles,), {"read_ranges": CheckpointFiles.read_ranges})
    with pytest.raises(TypeError, match="read_ranges"):
        made("/nowhere")
