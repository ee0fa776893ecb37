"""Staged files: blobs of results of a micro-batch, until they are delivered to the sink.

Format: a magic and a version, then kind, length, CRC-32 and bytes of each blob.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

from gpu_windows.checkpointing.file_format import FileFormat
from gpu_windows.checkpointing.files import CheckpointFiles

FORMAT = FileFormat("a file of staged results", b"gpsr", 1)
_FRAME = struct.Struct("<iQI")

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
        yield FORMAT.header
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
    with FORMAT.open(files, name) as file:
        while frame := file.read(_FRAME.size):
            found, length, crc = _FRAME.unpack(frame)
            if found != kind:
                file.seek(length, 1)
                continue
            blob = file.read(length)
            if len(blob) != length or zlib.crc32(blob) != crc:
                raise FORMAT.damage_error(name)
            yield blob
