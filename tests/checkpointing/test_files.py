"""Files of a checkpoint: what each kind of store must do alike."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpu_windows.checkpointing import object_files
from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.object_files import ObjectFiles


@pytest.fixture(params=["local", "objects", "objects on a disk", "objects without cache"])
def files(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CheckpointFiles:
    if request.param == "local":
        return LocalFiles(str(tmp_path / "checkpoint"))
    stores = pytest.importorskip("obstore.store")
    is_on_disk = request.param == "objects on a disk"
    store = stores.LocalStore(tmp_path / "bucket", mkdir=True) if is_on_disk else None
    opened = store or stores.MemoryStore()
    monkeypatch.setattr(object_files, "open_store", lambda *_: opened)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    if request.param == "objects without cache":
        monkeypatch.setenv("GPU_WINDOWS_BLOCK_CACHE_BYTES", "0")
    return ObjectFiles("s3://bucket/checkpoint")


def test_of_several_creators_one_succeeds(files: CheckpointFiles) -> None:
    assert files.create("commits/1", b"a")
    assert files.create("commits/1", b"a")  # as after an answer that was lost
    assert not files.create("commits/1", b"b")
    assert files.read("commits/1") == b"a"


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
