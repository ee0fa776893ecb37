"""Tables of rows or partials as a few Arrow IPC streams: a shuffle moves these instead of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.two_inputs import COPY, SIDE
from gpu_windows.operators.columns.key_groups import groups_of_rows, shards_of_groups
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.planning.plan import Plan
from gpu_windows.spark_glue.tasks.fragments import SHARD, Cutter, join_fragments, send_whole

#: Rows in one message at most, and about how many bytes.
_MESSAGE_ROWS, _MESSAGE_BYTES = 1 << 17, 1 << 22
#: About how many bytes of messages are sent at once.
_BATCH_BYTES = 1 << 26
#: Bytes of a message from which on it is compressed: that makes a shuffle and both crossings of it
#: cheaper than it is itself; a smaller one would take its reader twice as long.
_WORTH_COMPRESSING = 1 << 15
#: Without options a writer looks for some in the environment, which takes as long as to write.
_PLAIN = pa.ipc.IpcWriteOptions()
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ = pa.ipc.IpcReadOptions(use_threads=False)
#: Bytes of a fragment where nothing is known of how many Spark sends to Python at once.
FRAGMENT_BYTES = 1 << 16


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
    most: int = FRAGMENT_BYTES,
    sender: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Yield rows of `PACKED` for the shards that a table has rows of.

    Parameters
    ----------
    plan : Plan
    tables : iterable of pyarrow.Table
        Rows or partials with the key columns.
    ids : sequence of int, optional
        What to call shard 0, 1 and so on, if not that.
    most, sender : int
        See `Cutter`.
    """
    cutter = Cutter(most, sender)
    for table in tables:
        found: list[int] = []
        messages: list[bytes] = []
        size = 0
        for shard, batch in _by_shard(plan, table):
            for message in _batch_messages(batch, _MESSAGE_BYTES):
                found.append(shard if ids is None else ids[shard])
                messages.append(message)
                size += len(message)
                if size > _BATCH_BYTES:
                    yield cutter.cut(found, messages)
                    found, messages, size = [], [], 0
        if found:
            yield cutter.cut(found, messages)


def send_to_all(plan: Plan, message: bytes, ids: Sequence[int] | None = None) -> pa.RecordBatch:
    """Return rows of `PACKED` that bring every shard a small message. ``ids``: see `pack`."""
    return send_whole(range(shard_count(plan)) if ids is None else ids, message)


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
    for shard, message in join_fragments(batches):
        table = from_ipc(message)
        if shard != last and count >= rows:
            yield Piece(first, last, pa.concat_tables(waiting))
            waiting, count = [], 0
        first, last = (first if waiting else shard), shard
        waiting.append(table)
        count += len(table)
    if waiting:
        yield Piece(first, last, pa.concat_tables(waiting))


def cut(tables: Iterable[pa.Table], *, everywhere: bool = False) -> Iterator[Piece]:
    """Yield tables that are sorted by their column `SHARD`, cut where the first shard ends.

    ``everywhere``: cut where any shard ends.
    """
    for table in tables:
        shards = to_numeric(table.column(SHARD)).values
        data = table.drop_columns([SHARD])
        edges = (np.flatnonzero(np.diff(shards)) + 1).tolist()
        ends = edges if everywhere else edges[:1]
        for begin, end in pairwise([0, *ends, len(data)]):
            piece = data.slice(begin, end - begin)
            yield Piece(int(shards[begin]), int(shards[end - 1]), piece)


def to_messages(table: pa.Table, most: int = _MESSAGE_BYTES) -> Iterator[bytes]:
    """Yield a table as Arrow IPC streams of at most ``most`` bytes, but for those of one row."""
    for begin in range(0, len(table), _MESSAGE_ROWS):
        for batch in table.slice(begin, _MESSAGE_ROWS).combine_chunks().to_batches():
            yield from _batch_messages(batch, most)


def _batch_messages(batch: pa.RecordBatch, most: int) -> Iterator[bytes]:
    """Yield the streams of a batch. A slice of it costs little, and its size is known at once."""
    room = most - most // 8  # for the schema
    size = pa.ipc.get_record_batch_size(batch)
    rows = min(_MESSAGE_ROWS, max(1, room * len(batch) // size))
    for begin in range(0, len(batch), rows):
        part = batch.slice(begin, min(rows, len(batch) - begin))
        message = to_ipc(part)
        if len(message) <= most or len(part) == 1:
            yield message
        else:  # its rows are wider than most
            half = len(part) // 2
            yield from _batch_messages(part.slice(0, half), most)
            yield from _batch_messages(part.slice(half), most)


def to_ipc(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Return rows as an Arrow IPC stream, a large one compressed."""
    sink = pa.BufferOutputStream()
    options = _PLAIN if rows.nbytes < _WORTH_COMPRESSING else _COMPRESSED
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_ipc(message: bytes | pa.Buffer) -> pa.Table:
    """Read an Arrow IPC stream."""
    with pa.ipc.open_stream(message, options=_READ) as reader:
        return reader.read_all()
