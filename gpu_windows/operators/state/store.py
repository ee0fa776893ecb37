"""Where operators keep their state between calls: buckets of Arrow tables, never pickles.

A blob is a header (magic, version of the format, CRC-32 of the rest) and an Arrow IPC stream, which
is compressed as a whole, after its length.
"""

from __future__ import annotations

import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from gpu_windows.errors import StateCorruptedError, StateVersionError

#: Version of the format of blobs and of what they hold: what is written, and what is read. In 1
#: sessions kept rows where they keep partials now; until 2 what was touched was written whole;
#: until 3 each column of a blob was compressed by itself.
VERSION, READ_VERSIONS = 4, (1, 2, 3, 4)
#: The last version in which the stream itself had its columns compressed.
_BY_COLUMN = 3

_HEADER, _LENGTH = struct.Struct("<4sII"), struct.Struct("<Q")
_MAGIC = b"gpuw"
#: State is mostly small numbers and zeros, and every blob goes through a socket. Most blobs are of
#: some kilobytes: to compress and read them column by column takes twice as long.
_CODEC, _CODEC_OF_SMALL = (pa.Codec("zstd", compression_level=level) for level in (1, 3))
#: Bytes of a stream up to which the higher level is worth its time.
_SMALL = 1 << 16
#: A task has a core: to hand small columns to other threads takes longer than to read them.
_IN_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)


@dataclass(frozen=True)
class Contents:
    """What a table in a store holds, for those who only look.

    Parameters
    ----------
    counts : dict of str to int
        What is counted ("rows", "windows", "slices") to how many of it there are.
    keys : sequence of arrays
        The key columns, a value an entry; none if the table does not tell keys.
    start, end : int, optional
        The time that the entries are of, in ticks, ``end`` exclusive; None if the table does not
        tell, or if there is no such time.
    bucket : int, optional
        The bucket that the table is a part of, where there may be several; else the store tells it.
    identity : sequence of arrays
        Where several tables of a bucket may hold one entry, the columns that say which it is, a
        value an entry: such entries count once, by the name of their kind.
    """

    counts: Mapping[str, int]
    keys: Sequence[pa.Array | pa.ChunkedArray] = ()
    start: int | None = None
    end: int | None = None
    bucket: int | None = None
    identity: Sequence[pa.Array | pa.ChunkedArray] = ()


class Store(ABC):
    """Holds tables by kind and bucket."""

    #: Whether an operator has saved here before; None where nobody knows.
    has_saved: bool | None = None

    @abstractmethod
    def read(self, kind: str, bucket: int) -> bytes | None:
        """Return a blob, or None if there is none."""

    @abstractmethod
    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        """Keep a blob, in place of the one that is there, if there is one.

        Parameters
        ----------
        kind, bucket
            Which.
        blob : bytes
        held : int, optional
            How many bytes the one that is there has, 0 if there is none; None if the caller does
            not know: who counts bytes then has to read it.
        """

    @abstractmethod
    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        """Forget a blob; there is one. ``held``: see `write`."""

    def load(self, kind: str, bucket: int) -> pa.Table | None:
        """Return a table, or None if there is none.

        Raises
        ------
        StateCorruptedError, StateVersionError
        """
        blob = self.read(kind, bucket)
        return None if blob is None else from_blob(blob, f"{kind}/{bucket}")

    def load_first(self, kind: str, bucket: int, *older: tuple[str, int]) -> pa.Table | None:
        """Return the table that an operator saves whenever it saves; None if it never did.

        ``older``: kind and bucket of those that older versions saved in its place.

        Raises
        ------
        StateCorruptedError, StateVersionError
            Also if it is missing though the operator has saved.
        """
        tables = (self.load(*where) for where in ((kind, bucket), *older))
        found = next((table for table in tables if table is not None), None)
        if found is None and self.has_saved:
            raise missing(kind, bucket)
        return found

    def load_listed(self, kind: str, bucket: int) -> pa.Table:
        """Return a table that an index names.

        Raises
        ------
        StateCorruptedError, StateVersionError
            Also if it is missing.
        """
        found = self.load(kind, bucket)
        if found is None:
            raise missing(kind, bucket)
        return found

    def save(self, kind: str, bucket: int, table: pa.Table, *, held: int | None = None) -> int:
        """Keep a table; return how many bytes it takes. ``held``: see `write`."""
        blob = to_blob(table)
        self.write(kind, bucket, blob, held=held)
        return len(blob)


class MemoryStore(Store):
    """A store in memory.

    Parameters
    ----------
    blobs : dict of (kind, bucket) to bytes, optional
        What it begins with; it is changed in place.
    """

    def __init__(self, blobs: dict[tuple[str, int], bytes] | None = None) -> None:
        self.blobs = {} if blobs is None else blobs

    def read(self, kind: str, bucket: int) -> bytes | None:
        """Return a blob, or None."""
        return self.blobs.get((kind, bucket))

    def write(self, kind: str, bucket: int, blob: bytes, *, held: int | None = None) -> None:
        """Keep a blob."""
        del held
        self.blobs[kind, bucket] = blob

    def remove(self, kind: str, bucket: int, *, held: int | None = None) -> None:
        """Forget a blob."""
        del held
        del self.blobs[kind, bucket]


def missing(kind: str, bucket: int) -> StateCorruptedError:
    """Return the error for state of which a part is not there."""
    rule = "state must be whole: the first table and all that an index names"
    return StateCorruptedError(rule, value=f"{kind}/{bucket}")


def to_blob(table: pa.Table) -> bytes:
    """Serialise a table."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    stream = sink.getvalue()
    codec = _CODEC_OF_SMALL if stream.size <= _SMALL else _CODEC
    data: bytes = _LENGTH.pack(stream.size) + codec.compress(stream, asbytes=True)
    return _HEADER.pack(_MAGIC, VERSION, zlib.crc32(data)) + data


def version_of(blob: bytes) -> int:
    """Return the version of the format of a blob that `from_blob` reads."""
    version: int = _HEADER.unpack_from(blob)[1]
    return version


def from_blob(blob: bytes, where: str) -> pa.Table:
    """Read a table; ``where`` names it in errors.

    Raises
    ------
    StateCorruptedError
        If these are not the bytes that were written.
    StateVersionError
        If another version wrote them.
    """
    rest = memoryview(blob)[_HEADER.size :]
    if len(blob) < _HEADER.size or blob[:4] != _MAGIC:
        raise StateCorruptedError("state must be what gpu_windows wrote", value=where)
    _, version, crc = _HEADER.unpack_from(blob)
    if version not in READ_VERSIONS:
        known = f"{READ_VERSIONS[0]} to {READ_VERSIONS[-1]}"
        rule = f"state of versions {known} can be read: {where} was written by another gpu_windows"
        raise StateVersionError(rule, value=version)
    if zlib.crc32(rest) != crc:
        raise StateCorruptedError("state must be as it was written: it is damaged", value=where)
    with pa.ipc.open_stream(_stream(rest, version), options=_IN_ONE_THREAD) as reader:
        return reader.read_all()


def _stream(rest: memoryview, version: int) -> pa.Buffer:
    """Return the stream of a blob of some version, given what comes after its header."""
    if version <= _BY_COLUMN:
        return pa.py_buffer(rest)
    (length,) = _LENGTH.unpack_from(rest)
    return _CODEC.decompress(rest[_LENGTH.size :], length)
