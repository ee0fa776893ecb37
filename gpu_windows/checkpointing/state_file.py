"""State files: blobs one after another, then a directory of all live blobs of a shard.

::

    magic, version      8 bytes
    blobs               as `gpu_windows.operators.state.store.to_blob` makes them, each with its CRC
    directory           an Arrow IPC stream, compressed
    footer              bytes of the directory before and after compression, CRC-32, magic

The directory names the blobs of this file and those of earlier files that are still live, so the
newest file of a shard is all that a commit has to name. A file is never changed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import pyarrow as pa

from gpu_windows.checkpointing.file_format import FileFormat
from gpu_windows.checkpointing.files import CheckpointFiles

FORMAT = FileFormat("a state file", b"gpst", 1)
_FOOTER = struct.Struct("<QQI4s")
_CODEC = pa.Codec("zstd", compression_level=3)
_SCHEMA = pa.schema(
    [
        ("table", pa.dictionary(pa.int32(), pa.string())),
        ("bucket", pa.int64()),
        ("file", pa.int32()),
        ("offset", pa.int64()),
        ("length", pa.int64()),
    ]
)
_FILES, _BYTES = b"files", b"bytes"

#: Table and bucket of a blob.
BlobName = tuple[str, int]


@dataclass(frozen=True)
class BlobPlace:
    """Where a blob is.

    Parameters
    ----------
    file : str
        Name of the state file.
    offset, length : int
        Its bytes in it.
    """

    file: str
    offset: int
    length: int


@dataclass(frozen=True)
class Directory:
    """The live blobs of a shard, and the files that hold them.

    Parameters
    ----------
    places : mapping of (str, int) to BlobPlace
    sizes : mapping of str to int
        Names of the files to the bytes of all blobs in each, live or dead.
    """

    places: Mapping[BlobName, BlobPlace]
    sizes: Mapping[str, int]

    @property
    def live_bytes(self) -> dict[str, int]:
        """Names of the files to the bytes of their live blobs."""
        found = dict.fromkeys(self.sizes, 0)
        for place in self.places.values():
            found[place.file] += place.length
        return found


#: Of a shard without state.
EMPTY = Directory({}, {})


def write_state_file(
    files: CheckpointFiles, name: str, blobs: Mapping[BlobName, bytes], others: Directory
) -> Directory:
    """Write a state file; return the directory that it ends with.

    Parameters
    ----------
    files : CheckpointFiles
    name : str
        A name that no other attempt uses.
    blobs : mapping of (str, int) to bytes
        What the file holds.
    others : Directory
        The live blobs of other files, none of them in ``blobs``.

    Raises
    ------
    OSError
    """
    places = dict(others.places)
    offset = len(FORMAT.header)
    for where, blob in blobs.items():
        places[where] = BlobPlace(name, offset, len(blob))
        offset += len(blob)
    used = {place.file for place in places.values()}
    sizes = {file: size for file, size in others.sizes.items() if file in used}
    found = Directory(places, {**sizes, name: offset - len(FORMAT.header)})
    files.write(name, _parts(blobs, found))
    return found


def read_directory(files: CheckpointFiles, name: str) -> Directory:
    """Return the directory at the end of a state file.

    Raises
    ------
    StateCorruptedError
        If the file is missing or is not as it was written.
    StateVersionError
        If it has another format.
    """
    with FORMAT.open(files, name) as file:
        size = file.seek(0, 2)
        file.seek(max(size - _FOOTER.size, 0))
        plain, packed, crc, magic = _FOOTER.unpack(file.read(_FOOTER.size))
        if magic != FORMAT.magic or packed > size:
            raise FORMAT.damaged(name)
        file.seek(size - _FOOTER.size - packed)
        data = file.read(packed)
    if zlib.crc32(data) != crc:
        raise FORMAT.damaged(name)
    return _from_table(_decompress(data, plain))


def read_blob(files: CheckpointFiles, place: BlobPlace) -> bytes:
    """Return a blob.

    Raises
    ------
    StateCorruptedError
        If the file is missing or too short.
    """
    return next(read_blobs(files, [place]))


def read_blobs(files: CheckpointFiles, places: list[BlobPlace]) -> Iterator[bytes]:
    """Yield blobs in their order; consecutive ones of one file open it once.

    Raises
    ------
    StateCorruptedError
        If a file is missing or too short.
    """
    for name, in_file in groupby(places, key=attrgetter("file")):
        with FORMAT.open(files, name) as file:
            for place in in_file:
                file.seek(place.offset)
                blob = file.read(place.length)
                if len(blob) != place.length:
                    raise FORMAT.damaged(name)
                yield blob


def _parts(blobs: Mapping[BlobName, bytes], directory: Directory) -> Iterator[bytes]:
    yield FORMAT.header
    yield from blobs.values()
    sink = pa.BufferOutputStream()
    table = _to_table(directory)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    stream = sink.getvalue()
    data = _CODEC.compress(stream, asbytes=True)
    yield data
    yield _FOOTER.pack(stream.size, len(data), zlib.crc32(data), FORMAT.magic)


def _to_table(directory: Directory) -> pa.Table:
    numbers = {file: number for number, file in enumerate(directory.sizes)}
    names, places = list(directory.places), list(directory.places.values())
    columns = [
        pa.array([table for table, _ in names], pa.string()).dictionary_encode(),
        pa.array([bucket for _, bucket in names], pa.int64()),
        pa.array([numbers[place.file] for place in places], pa.int32()),
        pa.array([place.offset for place in places], pa.int64()),
        pa.array([place.length for place in places], pa.int64()),
    ]
    metadata = {
        _FILES: "\n".join(directory.sizes),
        _BYTES: " ".join(map(str, directory.sizes.values())),
    }
    return pa.table(columns, schema=_SCHEMA.with_metadata(metadata))


def _from_table(table: pa.Table) -> Directory:
    metadata = table.schema.metadata
    names = metadata[_FILES].decode().splitlines()
    columns = [table[field.name].to_pylist() for field in _SCHEMA]
    places = {
        (kind, bucket): BlobPlace(names[file], offset, length)
        for kind, bucket, file, offset, length in zip(*columns, strict=True)
    }
    return Directory(places, dict(zip(names, map(int, metadata[_BYTES].split()), strict=True)))


def _decompress(data: bytes, plain: int) -> pa.Table:
    with pa.ipc.open_stream(_CODEC.decompress(data, plain)) as reader:
        return reader.read_all()
