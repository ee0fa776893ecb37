"""Crashes: a fuse that burns at every operation of operators and of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gpu_windows.checkpointing.local_files import LocalFiles


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

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return ranges of a file."""
        self.fuse.burn()
        return super().read_ranges(name, ranges)

    def read_end(self, name: str, length: int) -> bytes:
        """Return the last bytes of a file."""
        self.fuse.burn()
        return super().read_end(name, length)

    def _burning(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            self.fuse.burn()
            yield part
