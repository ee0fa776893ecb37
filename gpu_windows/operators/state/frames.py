"""Frames: compressed bytes with a checksum, and the Arrow batches within; never pickles."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain

import pyarrow as pa

from gpu_windows.errors import StateCorruptedError

#: CRC-32 of the length of the plain bytes and of the compressed ones, and that length.
_HEADER = struct.Struct("<IQ")
#: State is mostly small numbers and zeros. Most blocks are of some kilobytes.
_CODEC, _CODEC_OF_SMALL = (pa.Codec("zstd", compression_level=level) for level in (1, 3))
#: Bytes up to which the higher level is used: beyond, it costs too much time.
_SMALL = 1 << 16
#: Bytes of a record batch, about: offsets of strings have 31 bits, and some rows are larger.
MAX_BATCH_BYTES = 1 << 28
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
        If the bytes are damaged.
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
    """Return a frame of tables without their schemas: batch counts, then record batches.

    A large table has several, because offsets of strings have 31 bits: see `MAX_BATCH_BYTES`.
    """
    parts = [[*_to_batches(table)] for table in tables]
    sink = pa.BufferOutputStream()
    sink.write(struct.pack(f"<{len(parts)}Q", *map(len, parts)))  # what follows stays aligned
    for batch in chain.from_iterable(parts):
        sink.write(batch.serialize())
    return pack_frame(sink.getvalue())


def unpack_batches(
    frame: bytes | memoryview, schemas: Sequence[pa.Schema], where: str
) -> tuple[pa.Table, ...]:
    """Return the tables of a frame, given their schemas; ``where`` names it in errors.

    Raises
    ------
    StateCorruptedError
        If the bytes are damaged.
    """
    reader = pa.BufferReader(unpack_frame(frame, where))
    counts = struct.unpack(f"<{len(schemas)}Q", reader.read(8 * len(schemas)))
    return tuple(
        pa.Table.from_batches(
            [pa.ipc.read_record_batch(pa.ipc.read_message(reader), schema) for _ in range(count)],
            schema,
        )
        for count, schema in zip(counts, schemas, strict=True)
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
        If the bytes are damaged.
    """
    with pa.ipc.open_stream(unpack_frame(frame, where), options=_IN_ONE_THREAD) as reader:
        return reader.read_all()


def _to_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield a table as record batches: usually one, also for an empty table."""
    rows = max(1, len(table) * MAX_BATCH_BYTES // max(table.nbytes, 1))
    for begin in range(0, max(len(table), 1), rows):
        part = table.slice(begin, rows).combine_chunks()
        if len(part) == 0:
            columns = [pa.array([], field.type) for field in table.schema]
            yield pa.RecordBatch.from_arrays(columns, schema=table.schema)
        yield from part.to_batches()
