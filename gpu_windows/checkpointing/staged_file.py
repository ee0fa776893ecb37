"""Staged files: blobs of results of a micro-batch, until a sink has them, and to be read again.

A magic and a version, then of each blob its kind, its length, its CRC-32 and its bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.errors import StateCorruptedError, StateVersionError

#: Version of the format.
VERSION = 1
_MAGIC = b"gpsr"
_HEADER, _FRAME = struct.Struct("<4sI"), struct.Struct("<iQI")

#: A kind of rows, and an Arrow IPC stream of some.
Blob = tuple[int, bytes]


def write_staged_file(files: CheckpointFiles, name: str, blobs: Iterable[Blob]) -> dict[int, int]:
    """Write blobs as they come; return the bytes of each kind.

    ``name``: one that no other attempt uses.

    Raises
    ------
    OSError
    """
    sizes: dict[int, int] = {}

    def parts() -> Iterator[bytes]:
        yield _HEADER.pack(_MAGIC, VERSION)
        for kind, blob in blobs:
            sizes[kind] = sizes.get(kind, 0) + len(blob)
            yield _FRAME.pack(kind, len(blob), zlib.crc32(blob))
            yield blob

    files.write(name, parts())
    return sizes


def read_staged_file(files: CheckpointFiles, name: str, kind: int) -> Iterator[bytes]:
    """Yield the blobs of a kind; others are skipped, not read.

    Raises
    ------
    StateCorruptedError
        If the file is missing or is not as it was written.
    StateVersionError
        If it has another format.
    """
    try:
        with files.open(name) as file:
            magic, version = _HEADER.unpack(file.read(_HEADER.size))
            if magic != _MAGIC:
                raise _damaged(name)
            if version != VERSION:
                rule = f"staged files of version {VERSION} can be read: {name} is of another one"
                raise StateVersionError(rule, value=version)
            while frame := file.read(_FRAME.size):
                found, length, crc = _FRAME.unpack(frame)
                if found != kind:
                    file.seek(length, 1)
                    continue
                blob = file.read(length)
                if len(blob) != length or zlib.crc32(blob) != crc:
                    raise _damaged(name)
                yield blob
    except FileNotFoundError as error:
        rule = "a staged file that the last commit names must be there"
        raise StateCorruptedError(rule, value=name) from error
    except struct.error as error:
        raise _damaged(name) from error


def _damaged(name: str) -> StateCorruptedError:
    return StateCorruptedError("a staged file must be as it was written: it is damaged", value=name)
