"""Headers of a checkpoint's binary files, and errors for damaged ones."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.errors import StateCorruptedError, StateVersionError

_HEADER = struct.Struct("<4sI")


@dataclass(frozen=True)
class FileFormat:
    """A kind of file.

    Parameters
    ----------
    kind : str
        Name in error messages: "a state file".
    magic : bytes
        Its first four bytes.
    version : int
        The one that is written and read.
    """

    kind: str
    magic: bytes
    version: int

    @property
    def header(self) -> bytes:
        """First bytes of a file: magic and version."""
        return _HEADER.pack(self.magic, self.version)

    @contextmanager
    def open(self, files: CheckpointFiles, name: str) -> Iterator[BinaryIO]:
        """Open a file and read its header.

        A `struct.error` while it is open is reported as damage.

        Raises
        ------
        StateCorruptedError
            If the file is missing or damaged.
        StateVersionError
            If it has another version.
        """
        try:
            with files.open(name) as file:
                magic, version = _HEADER.unpack(file.read(_HEADER.size))
                if magic != self.magic:
                    raise self.damage_error(name)
                if version != self.version:
                    rule = f"{self.kind} of version {self.version} can be read: {name} is another"
                    raise StateVersionError(rule, value=version)
                yield file
        except FileNotFoundError as error:
            rule = f"{self.kind} that the last commit needs must be there"
            raise StateCorruptedError(rule, value=name) from error
        except struct.error as error:
            raise self.damage_error(name) from error

    def damage_error(self, name: str) -> StateCorruptedError:
        """Return the error of a file that is not as it was written."""
        rule = f"{self.kind} is damaged"
        return StateCorruptedError(rule, value=name)
