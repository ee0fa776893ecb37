"""Crashes: a fuse that burns at every operation of stores, of operators and of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.shard_log import ShardLog


class CrashedError(BaseException):
    """A worker has died: nobody can tell it as an error of a function."""


@dataclass
class Fuse:
    """Dies after so many operations; never if None."""

    left: int | None = None

    def burn(self) -> None:
        """Note an operation."""
        if self.left is not None:
            if self.left == 0:
                raise CrashedError
            self.left -= 1


@dataclass(frozen=True)
class FusedFiles(LocalFiles):
    """Files in which a fuse burns: one that is being written may remain in part."""

    fuse: Fuse = field(default_factory=Fuse)

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file."""
        super().write(name, self._burning(parts))
        self.fuse.burn()

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a file to read ranges of it."""
        self.fuse.burn()
        with super().open(name) as file:
            yield file

    def _burning(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            self.fuse.burn()
            yield part


class FusedLog(ShardLog):
    """The state of a shard, in which a fuse burns.

    Parameters
    ----------
    files : FusedFiles
    newest : str, optional
        See `ShardLog`.
    """

    def __init__(self, files: FusedFiles, newest: str | None) -> None:
        super().__init__(files, newest)
        self._fuse = files.fuse

    def read(self, kind: str, bucket: int) -> bytes | None:
        """Return a blob, or None."""
        self._fuse.burn()
        return super().read(kind, bucket)

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        """Keep a blob."""
        super().write(kind, bucket, blob, held=held)
        self._fuse.burn()

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        """Forget a blob."""
        super().remove(kind, bucket, held=held)
        self._fuse.burn()
