"""Tables of partials as a few Arrow IPC blobs: a shuffle then moves blobs instead of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.two_inputs import COPY, SIDE
from gpu_windows.operators.columns.key_groups import groups_of_rows, shards_of_groups
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.planning.plan import Plan

Item = TypeVar("Item")

#: Names of the shard column and of the blob column.
SHARD, BLOB = "__shard", "__blob"

PACKED = pa.schema([pa.field(SHARD, pa.int64()), pa.field(BLOB, pa.binary())])

#: Rows in one blob at most, and about how many bytes in those that are sent at once.
_BLOB_ROWS, _BATCH_BYTES = 1 << 17, 1 << 26
#: Bytes of a large blob.
LARGE_BLOB = 1 << 18
#: Without options a writer looks for some in the environment, which takes as long as to write.
_PLAIN = pa.ipc.IpcWriteOptions()
#: Bytes of a blob where nothing is known of how many Spark sends to Python at once.
BLOB_BYTES = 1 << 16


def shards_of(plan: Plan, table: pa.Table) -> NDArray[np.int64]:
    """Return the shard of every row, by the key group of its key: the same in every process."""
    keys = [table.column(name) for name in plan.query.shard_keys]
    if not keys:
        return np.zeros(len(table), np.int64)
    return shards_of_groups(groups_of_rows(keys), shard_count(plan))


def dealt(plan: Plan, table: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return rows and the shard of each; those that are broadcast come once for every shard.

    The one that counts is in the shard of its key, which is null; the others are copies.
    """
    shards = shards_of(plan, table)
    if not plan.query.broadcasts:
        return table, shards
    of_keys, count = table.column(SIDE).to_numpy(), shard_count(plan)
    own, everywhere = np.flatnonzero(of_keys), np.flatnonzero(~of_keys)
    every = np.tile(np.arange(count), len(everywhere))
    is_copy = every != np.repeat(shards[everywhere], count)
    rows = table.take(pa.array(np.concatenate([np.repeat(everywhere, count), own])))
    copies = pa.array(np.concatenate([is_copy, np.zeros(len(own), np.bool_)]))
    rows = rows.set_column(table.schema.get_field_index(COPY), table.schema.field(COPY), copies)
    return rows, np.concatenate([every, shards[own]])


def shard_count(plan: Plan) -> int:
    """Return the number of shards; the runner has set it if the user did not."""
    return plan.query.options.shards or 1


def pack(
    plan: Plan,
    tables: Iterable[pa.Table],
    ids: Sequence[int] | None = None,
    most: int = BLOB_BYTES,
    large: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Yield rows (shard, blob) for the shards that a table has rows of.

    Parameters
    ----------
    plan : Plan
    tables : iterable of pyarrow.Table
        Rows or partials with the key columns.
    ids : sequence of int, optional
        What to call shard 0, 1 and so on, if not that.
    most, large : int
        See `Room`; there is one for each shard.
    """
    rooms: defaultdict[int, Room] = defaultdict(lambda: Room(most, large))
    for table in tables:
        found: list[int] = []
        blobs: list[bytes] = []
        size = 0
        for shard, batch in _by_shard(plan, table):
            for blob in rooms[shard].blobs(batch):
                found.append(shard if ids is None else ids[shard])
                blobs.append(blob)
                size += len(blob)
                if size > _BATCH_BYTES:
                    yield _packed(found, blobs)
                    found, blobs, size = [], [], 0
        if found:
            yield _packed(found, blobs)


def for_all(plan: Plan, blob: bytes, ids: Sequence[int] | None = None) -> pa.RecordBatch:
    """Return rows (shard, blob) that bring every shard a blob. ``ids``: see `pack`."""
    shards = [*range(shard_count(plan))] if ids is None else [*ids]
    return _packed(shards, [blob] * len(shards))


def _by_shard(plan: Plan, table: pa.Table) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of every shard, in order of shards."""
    table, shards = dealt(plan, table)
    narrow = np.min_scalar_type(shard_count(plan))  # NumPy sorts 16 bits by radix
    order = np.argsort(shards.astype(narrow), kind="stable")
    shards = shards[order]
    for batch in table.take(pa.array(order)).combine_chunks().to_batches():
        here, shards = shards[: len(batch)], shards[len(batch) :]
        edges = np.flatnonzero(np.diff(here, prepend=-1)).tolist()
        for begin, end in pairwise([*edges, len(batch)]):
            yield int(here[begin]), batch.slice(begin, end - begin)


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
    count = 0
    for shard, table in _blobs(batches):
        if shard != last and count >= rows:
            yield Piece(first, last, pa.concat_tables(waiting))
            waiting, count = [], 0
        first, last = (first if waiting else shard), shard
        waiting.append(table)
        count += len(table)
    if waiting:
        yield Piece(first, last, pa.concat_tables(waiting))


def _blobs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    for batch in batches:
        blobs = batch.column(1)
        for row, shard in enumerate(batch.column(0).to_pylist()):
            yield shard, from_ipc(blobs[row].as_buffer())


def cut(tables: Iterable[pa.Table], *, everywhere: bool = False) -> Iterator[Piece]:
    """Yield tables that are sorted by their column `SHARD`, cut where the first shard ends.

    ``everywhere``: cut where any shard ends.
    """
    for table in tables:
        shards = to_lane(table.column(SHARD)).values
        data = table.drop_columns([SHARD])
        edges = (np.flatnonzero(np.diff(shards)) + 1).tolist()
        ends = edges if everywhere else edges[:1]
        for begin, end in pairwise([0, *ends, len(data)]):
            piece = data.slice(begin, end - begin)
            yield Piece(int(shards[begin]), int(shards[end - 1]), piece)


class Room:
    """How large the blobs are that a sender makes for a receiver.

    Spark sends so many blobs together as a batch has rows, whatever their size. So each is small,
    but for the first ones of a few senders: a large one costs no more than a small one.

    Parameters
    ----------
    most : int
        Bytes of a blob, unless it is of one row.
    large : int
        Bytes that the large ones may have together.
    """

    def __init__(self, most: int, large: int = 0) -> None:
        self._most = most
        self._left = large

    def blobs(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        """Yield a batch as Arrow IPC streams."""
        size = pa.ipc.get_record_batch_size(batch)
        if self._most < size <= self._left:
            for blob in _batch_blobs(batch, max(self._most, LARGE_BLOB)):
                self._left -= len(blob)
                yield blob
        else:
            yield from _batch_blobs(batch, self._most)


def by_bytes(items: Iterable[Item], size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield items together, so that an array holds them, and a receiver; a large one alone."""
    waiting: list[Item] = []
    total = 0
    for item in items:
        if waiting and total + size(item) > _BATCH_BYTES:
            yield waiting
            waiting, total = [], 0
        waiting.append(item)
        total += size(item)
    if waiting:
        yield waiting


def to_blobs(table: pa.Table, room: Room) -> Iterator[bytes]:
    """Yield a table as Arrow IPC streams."""
    for begin in range(0, len(table), _BLOB_ROWS):
        for batch in table.slice(begin, _BLOB_ROWS).combine_chunks().to_batches():
            yield from room.blobs(batch)


def _batch_blobs(batch: pa.RecordBatch, most: int) -> Iterator[bytes]:
    """Yield streams of at most ``most`` bytes, but for those of one row.

    A slice of a batch costs little, and its size is known at once.
    """
    room = most - most // 8  # for the schema
    size = pa.ipc.get_record_batch_size(batch)
    rows = min(_BLOB_ROWS, max(1, room * len(batch) // size))
    for begin in range(0, len(batch), rows):
        part = batch.slice(begin, min(rows, len(batch) - begin))
        blob = to_ipc(part)
        if len(blob) <= most or len(part) == 1:
            yield blob
        else:  # its rows are wider than most
            half = len(part) // 2
            yield from _batch_blobs(part.slice(0, half), most)
            yield from _batch_blobs(part.slice(half), most)


def to_ipc(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Return rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_PLAIN) as writer:
        writer.write(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_ipc(blob: bytes | pa.Buffer) -> pa.Table:
    """Read an Arrow IPC stream."""
    with pa.ipc.open_stream(blob) as reader:
        return reader.read_all()
