"""Staged files: blobs of results of a micro-batch, until they are delivered to the sink.

Format: a magic and a version, then kind, length, CRC-32 and bytes of each blob.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.errors import StateCorruptedError, StateVersionError

_MAGIC, _VERSION = b"gpsr", 1
_HEADER, _FRAME = struct.Struct("<4sI"), struct.Struct("<iQI")

#: A kind of rows, and an Arrow IPC stream of them.
Blob = tuple[int, bytes]


def write_staged_file(files: CheckpointFiles, name: str, blobs: Iterable[Blob]) -> dict[int, int]:
    """Write blobs as they come; return the bytes of each kind.

    ``name``: unique to this attempt.

    Raises
    ------
    OSError
    """
    sizes: dict[int, int] = {}

    def parts() -> Iterator[bytes]:
        yield _HEADER.pack(_MAGIC, _VERSION)
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
        If the file is missing or damaged.
    StateVersionError
        If it has another format.
    """
    damage = StateCorruptedError("a file of staged results is damaged", value=name)
    try:
        with files.open(name) as file:
            magic, version = _HEADER.unpack(file.read(_HEADER.size))
            if magic != _MAGIC:
                raise damage
            if version != _VERSION:
                rule = f"a file of staged results of version {_VERSION} can be read: "
                raise StateVersionError(f"{rule}{name} is another", value=version)
            while frame := file.read(_FRAME.size):
                found, length, crc = _FRAME.unpack(frame)
                if found != kind:
                    file.seek(length, 1)
                    continue
                blob = file.read(length)
                if len(blob) != length or zlib.crc32(blob) != crc:
                    raise damage
                yield blob
    except FileNotFoundError as error:
        rule = "a file of staged results that the last commit needs must be there"
        raise StateCorruptedError(rule, value=name) from error
    except struct.error as error:
        raise damage from error
