"""Tables of partials as a few Arrow IPC blobs: a shuffle then moves blobs instead of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.planning.plan import Plan

#: Names of the shard column and of the blob column.
SHARD, BLOB = "__shard", "__blob"

PACKED = pa.schema([pa.field(SHARD, pa.int64()), pa.field(BLOB, pa.binary())])

#: Rows in one blob at most, and about how many bytes in those that are sent at once.
_BLOB_ROWS, _BATCH_BYTES = 1 << 17, 1 << 26
#: Bytes of a blob where nothing is known of how many Spark sends to Python at once.
BLOB_BYTES = 1 << 16


def shards_of(plan: Plan, table: pa.Table) -> NDArray[np.int64]:
    """Return the shard of every row: a hash of the key's values, the same in every process."""
    keys = [table.column(name) for name in plan.query.keys]
    encoder = KeyEncoder([column.type for column in keys])
    codes = encoder.encode(keys)
    return (encoder.hashes() % shard_count(plan))[codes]


def shard_count(plan: Plan) -> int:
    """Return the number of shards; the runner has set it if the user did not."""
    return plan.query.options.shards or 1


def pack(
    plan: Plan,
    tables: Iterable[pa.Table],
    ids: Sequence[int] | None = None,
    most: int = BLOB_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Yield rows (shard, blob) for the shards that a table has rows of.

    Parameters
    ----------
    plan : Plan
    tables : iterable of pyarrow.Table
    ids : sequence of int, optional
        What to call shard 0, 1 and so on, if not that.
    most : int
        Bytes of a blob, unless it is of one row.
    """
    for table in tables:
        shards = shards_of(plan, table)
        order = np.argsort(shards.astype(np.uint16), kind="stable")
        shards, table = shards[order], table.take(pa.array(order)).combine_chunks()
        edges = [0, *(np.flatnonzero(np.diff(shards)) + 1).tolist(), len(shards)]
        found: list[int] = []
        blobs: list[bytes] = []
        size = 0
        for begin, end in pairwise(edges):
            shard = int(shards[begin])
            for blob in to_blobs(table.slice(begin, end - begin), most):
                found.append(shard if ids is None else ids[shard])
                blobs.append(blob)
                size += len(blob)
                if size > _BATCH_BYTES:
                    yield _packed(found, blobs)
                    found, blobs, size = [], [], 0
        if found:
            yield _packed(found, blobs)


def _packed(ids: list[int], blobs: list[bytes]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(ids, pa.int64()), pa.array(blobs, pa.binary())], schema=PACKED)


@dataclass(frozen=True)
class Piece:
    """Rows of one shard, or of several: all of those after the first, but maybe not the last."""

    first: int
    last: int
    rows: pa.Table


def unpack(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[Piece]:
    """Yield what `pack` packed, some ``rows`` rows at a time, cut where a shard begins."""
    waiting: list[pa.Table] = []
    first = last = -1
    for shard, table in _blobs(batches):
        if shard != last and sum(map(len, waiting)) >= rows:
            yield Piece(first, last, pa.concat_tables(waiting))
            waiting = []
        first, last = (first if waiting else shard), shard
        waiting.append(table)
    if waiting:
        yield Piece(first, last, pa.concat_tables(waiting))


def _blobs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    for batch in batches:
        blobs = batch.column(1)
        for row, shard in enumerate(batch.column(0).to_pylist()):
            yield shard, from_ipc(blobs[row].as_buffer())


def cut(tables: Iterable[pa.Table]) -> Iterator[Piece]:
    """Yield tables that are sorted by their column `SHARD`, cut where the first shard ends."""
    for table in tables:
        shards = to_lane(table.column(SHARD)).values
        data = table.drop_columns([SHARD])
        edge = int(np.searchsorted(shards, shards[0], side="right"))
        yield Piece(int(shards[0]), int(shards[0]), data.slice(0, edge))
        if edge < len(data):
            yield Piece(int(shards[edge]), int(shards[-1]), data.slice(edge))


def to_blobs(table: pa.Table, most: int) -> Iterator[bytes]:
    """Yield a table as Arrow IPC streams of at most ``most`` bytes, but for those of one row."""
    room = most - most // 8  # for the schema
    rows = min(_BLOB_ROWS, max(1, room * len(table) // max(table.nbytes, 1)))
    for begin in range(0, len(table), rows):
        part = table.slice(begin, min(rows, len(table) - begin))
        blob = to_ipc(part)
        if len(blob) <= most or len(part) == 1:
            yield blob
        else:  # its rows are wider than most
            half = len(part) // 2
            yield from to_blobs(part.slice(0, half), most)
            yield from to_blobs(part.slice(half), most)


def to_ipc(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_ipc(blob: bytes | pa.Buffer) -> pa.Table:
    """Read an Arrow IPC stream."""
    with pa.ipc.open_stream(blob) as reader:
        return reader.read_all()
