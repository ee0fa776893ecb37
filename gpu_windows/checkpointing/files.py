"""Files of a checkpoint on a disk, local or shared (NFS): whole or absent, never changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit
from urllib.request import url2pathname
from uuid import uuid4

from gpu_windows.errors import CheckpointError

#: The folder of this package in a checkpoint.
FOLDER = "gpu_windows"
#: What a draft is called before it has its name; readers and sweeps know it by this.
_DRAFT = ".draft-"


@dataclass(frozen=True)
class CheckpointFiles:
    """The files below a folder, by their names relative to it (``state/0003/17-ab``).

    Parameters
    ----------
    root : str
        Path of the folder.
    """

    root: str

    def create(self, name: str, data: bytes) -> bool:
        """Create a file where none is; return whether it has this content.

        Of several processes that create one name at once one succeeds: a draft is linked to the
        name. NFS may answer that the name exists though it was this call that made it, so what is
        there is compared. Once this returns, the file survives a power failure.

        Raises
        ------
        OSError
            If the disk is full, or has no links. No file of this name is there then.
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
        """Write a file under a name that no other attempt uses.

        Once this returns, the file survives a power failure. If it raises, an incomplete file may
        remain: nothing may refer to it.

        Raises
        ------
        OSError
            Also if there is a file of this name.
        """
        path = self._path(name)
        self._make_folder(path.parent)
        _write(path, parts)
        _sync_folder(path.parent)

    def read(self, name: str) -> bytes:
        """Return a file.

        Raises
        ------
        OSError
            `FileNotFoundError` if there is none.
        """
        return self._path(name).read_bytes()

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a file to read ranges of it."""
        with self._path(name).open("rb", buffering=0) as file:
            yield file

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return self._path(name).exists()

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, in order; none if there is no such folder.

        A name has the folder in it, as for `read`. Drafts are left out.
        """
        found = self._list(folder)
        return [f"{folder}/{name}" for name in found if not name.startswith(_DRAFT)]

    def drafts(self, folder: str) -> dict[str, str]:
        """Return the drafts in a folder, whose creators have died or are at work.

        Names of the drafts to those of the files that they were to be.
        """
        found = (name for name in self._list(folder) if name.startswith(_DRAFT))
        return {f"{folder}/{name}": name.removeprefix(_DRAFT).rpartition("-")[0] for name in found}

    def _list(self, folder: str) -> list[str]:
        try:
            return sorted(each.name for each in self._path(folder).iterdir())
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return Path(self.root, name)

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for each in missing:
            _sync_folder(each.parent)


def local_path(checkpoint: str | PathLike[str]) -> Path:
    """Return the folder of a checkpoint.

    Parameters
    ----------
    checkpoint : str or os.PathLike
        A path, or a URI with the scheme ``file``.

    Raises
    ------
    CheckpointError
        If it has another scheme.
    """
    text = os.fspath(checkpoint)
    parts = urlsplit(text)
    if parts.scheme not in ("", "file"):
        rule = "a checkpoint is on a disk that the driver and all executors reach by its path"
        raise CheckpointError(rule, value=text)
    return Path(url2pathname(parts.path) if parts.scheme else text).absolute()


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
