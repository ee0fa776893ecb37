"""Files of a checkpoint on a disk, local or shared (NFS)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO
from uuid import uuid4

from gpu_windows.checkpointing.files import CheckpointFiles

#: Suffix of drafts, by which readers and sweeps recognize them.
_DRAFT = ".draft-"


@dataclass(frozen=True)
class LocalFiles(CheckpointFiles):
    """Files of a disk that all processes reach by the same path.

    Parameters
    ----------
    root : str
        Path of the folder.
    """

    def holds(self, other: CheckpointFiles) -> bool:
        """Whether another folder is this one, or one below it; links are followed."""
        if not isinstance(other, LocalFiles):
            return False
        return Path(other.root).resolve().is_relative_to(Path(self.root).resolve())

    @property
    def spark_url(self) -> str:
        """URL of the folder: Spark's working folder and default file system may be others."""
        return f"file:{self.root}"

    def check_create(self) -> None:
        """Do nothing: a disk without links fails in `create`."""

    def create(self, name: str, data: bytes) -> bool:
        """Create a file unless its name exists, by linking a draft to the name.

        Raises
        ------
        OSError
            If the disk is full, or has no links. The file does not exist then.
        """
        path = self._path(name)
        self._make_folder(path.parent)
        draft = path.with_name(f"{_DRAFT}{path.name}-{uuid4().hex}")
        try:
            _write(draft, [data])
            os.link(draft, path)
        except FileExistsError:
            with suppress(FileNotFoundError):  # swept since
                return path.read_bytes() == data
            return False
        finally:
            draft.unlink(missing_ok=True)
        _sync_folder(path.parent)
        return True

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file with a name unique to this attempt."""
        path = self._path(name)
        self._make_folder(path.parent)
        _write(path, parts)
        _sync_folder(path.parent)

    def read(self, name: str) -> bytes:
        """Return a file."""
        return self._path(name).read_bytes()

    def prefetch(self, ranges: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        """Do nothing: a disk is read at once."""

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return ranges of bytes of a file, which is opened once."""
        with self.open(name) as file:
            return [_read_range(file, offset, length) for offset, length in ranges]

    def read_end(self, name: str, length: int) -> bytes:
        """Return the last bytes of a file."""
        with self.open(name) as file:
            size = file.seek(0, os.SEEK_END)
            return _read_range(file, max(size - length, 0), length)

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a file to read it piece by piece."""
        with self._path(name).open("rb", buffering=0) as file:
            yield file

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return self._path(name).exists()

    def entries(self) -> list[str] | None:
        """Return the names of files and folders directly in this folder, in order."""
        try:
            return sorted(path.name for path in Path(self.root).iterdir())
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, in order."""
        entries = self.below(folder).entries() or []
        return [f"{folder}/{name}" for name in entries if not name.startswith(_DRAFT)]

    def walk(self, folder: str) -> list[str]:
        """Return the names of the files in a folder and in those below it, in order."""
        files = (path for path in Path(self.root, folder).rglob("*") if path.is_file())
        names = (path for path in files if not path.name.startswith(_DRAFT))
        return sorted(path.relative_to(self.root).as_posix() for path in names)

    def drafts(self, folder: str) -> dict[str, str]:
        """Return the drafts in a folder."""
        entries = self.below(folder).entries() or []
        drafts = (name for name in entries if name.startswith(_DRAFT))
        return {f"{folder}/{name}": name.removeprefix(_DRAFT).rpartition("-")[0] for name in drafts}

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        self._path(name).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder and everything in it, including drafts, if it exists."""
        with suppress(FileNotFoundError):
            rmtree(self._path(folder))

    def _path(self, name: str) -> Path:
        return Path(self.root, name)

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for each in missing:
            _sync_folder(each.parent)


def _read_range(file: BinaryIO, offset: int, length: int) -> bytes:
    """Return a range of an unbuffered file, whose reads may return fewer bytes than requested."""
    file.seek(offset)
    pieces, rest = list[bytes](), length
    while rest and (piece := file.read(rest)):
        pieces.append(piece)
        rest -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _write(path: Path, parts: Iterable[bytes]) -> None:
    with path.open("xb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
