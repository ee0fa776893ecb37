"""Interface of the storage of state files, and an implementation in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from errno import ENOENT
from typing import Protocol


class StateFiles(Protocol):
    """Storage of files by name; a file is written once and never changes."""

    @abstractmethod
    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file under a name that no other attempt uses.

        Raises
        ------
        OSError
        """

    @property
    def is_remote(self) -> bool:
        """Whether requests are so slow that ranges should be fetched together."""

    @abstractmethod
    def prefetch(self, ranges: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        """Fetch ranges of several files that will be read next.

        Raises
        ------
        OSError
            `FileNotFoundError` if one of the files does not exist.
        """

    @abstractmethod
    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return ranges of a file, given by their offsets and lengths in bytes.

        Raises
        ------
        OSError
            `FileNotFoundError` if there is no such file.
        """

    @abstractmethod
    def read_end(self, name: str, length: int) -> bytes:
        """Return the last bytes of a file, or all of a shorter one.

        Raises
        ------
        OSError
            `FileNotFoundError` if there is no such file.
        """


class MemoryFiles:
    """Files in memory.

    Parameters
    ----------
    files : dict of str to bytes, optional
        The existing files; changed in place.
    """

    is_remote = False

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = {} if files is None else files

    def prefetch(self, ranges: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        """Do nothing: files are in memory."""

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file."""
        data = b"".join(parts)
        if name in self.files:
            raise FileExistsError(name)
        self.files[name] = data

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return ranges of a file."""
        data = self._data(name)
        return [data[offset : offset + length] for offset, length in ranges]

    def read_end(self, name: str, length: int) -> bytes:
        """Return the last bytes of a file."""
        return self._data(name)[-length:]

    def _data(self, name: str) -> bytes:
        if name not in self.files:
            raise FileNotFoundError(ENOENT, "there is no such file", name)
        return self.files[name]
