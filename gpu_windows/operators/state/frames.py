"""Frames: compressed bytes with a checksum, and the Arrow batches within."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import pyarrow as pa

from gpu_windows.errors import StateCorruptedError

#: CRC-32 of the length of the plain bytes and of the compressed ones, and that length.
_HEADER = struct.Struct("<IQ")
#: State is mostly small numbers and zeros. Most blocks are of some kilobytes.
_CODEC, _CODEC_OF_SMALL = (pa.Codec("zstd", compression_level=level) for level in (1, 3))
#: Bytes up to which the higher level is worth its time.
_SMALL = 1 << 16
#: Without options a writer looks for some in the environment, which takes as long as to write.
_PLAIN = pa.ipc.IpcWriteOptions()
_IN_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)


def pack_frame(plain: bytes | pa.Buffer) -> bytes:
    """Return a frame of some bytes."""
    codec = _CODEC_OF_SMALL if len(plain) <= _SMALL else _CODEC
    data: bytes = codec.compress(plain, asbytes=True)
    return _HEADER.pack(_checksum(data, len(plain)), len(plain)) + data


def unpack_frame(frame: bytes | memoryview, where: str) -> pa.Buffer:
    """Return the bytes of a frame; ``where`` names it in errors.

    Raises
    ------
    StateCorruptedError
        If these are not the bytes that were written.
    """
    view = memoryview(frame)
    if len(view) >= _HEADER.size:
        crc, plain = _HEADER.unpack_from(view)
        data = view[_HEADER.size :]
        if _checksum(data, plain) == crc:
            return _CODEC.decompress(pa.py_buffer(data), plain)
    raise StateCorruptedError("state must be as it was written: it is damaged", value=where)


def _checksum(data: bytes | memoryview, length: int) -> int:
    return zlib.crc32(data, zlib.crc32(length.to_bytes(8, "little")))


def pack_batches(tables: Sequence[pa.Table]) -> bytes:
    """Return a frame of tables, a record batch each, without their schemas."""
    sink = pa.BufferOutputStream()
    for table in tables:
        sink.write(_to_batch(table).serialize())
    return pack_frame(sink.getvalue())


def unpack_batches(
    frame: bytes | memoryview, schemas: Sequence[pa.Schema], where: str
) -> tuple[pa.Table, ...]:
    """Return the tables of a frame, given their schemas; ``where`` names it in errors.

    Raises
    ------
    StateCorruptedError
        If these are not the bytes that were written.
    """
    reader = pa.BufferReader(unpack_frame(frame, where))
    messages = (pa.ipc.read_message(reader) for _ in schemas)
    return tuple(
        pa.Table.from_batches([pa.ipc.read_record_batch(message, schema)])
        for message, schema in zip(messages, schemas, strict=True)
    )


def pack_table(table: pa.Table) -> bytes:
    """Return a frame of a table, with its schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_PLAIN) as writer:
        writer.write_table(table)
    return pack_frame(sink.getvalue())


def unpack_table(frame: bytes | memoryview, where: str) -> pa.Table:
    """Return the table of a frame; ``where`` names it in errors.

    Raises
    ------
    StateCorruptedError
        If these are not the bytes that were written.
    """
    with pa.ipc.open_stream(unpack_frame(frame, where), options=_IN_ONE_THREAD) as reader:
        return reader.read_all()


def _to_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        return batches[0]
    if len(table) == 0:
        columns = [pa.array([], field.type) for field in table.schema]
        return pa.RecordBatch.from_arrays(columns, schema=table.schema)
    raise ValueError("a block of state must be one record batch: its strings are too long")
