"""Packs rows or partials by shard into a few Arrow IPC streams, which a shuffle moves."""

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
#: Messages of at least this many bytes are compressed: the shuffle and both transfers to and from
#: the JVM save more than it costs. A smaller message would take its reader twice as long.
_MIN_COMPRESSED_BYTES = 1 << 15
#: Given because a writer without options reads the environment, which takes as long as writing.
_PLAIN = pa.ipc.IpcWriteOptions()
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ = pa.ipc.IpcReadOptions(use_threads=False)
#: Bytes of a fragment by default, if the number of rows that Spark sends at once is unknown.
FRAGMENT_BYTES = 1 << 16


def shards_of(plan: Plan, table: pa.Table) -> NDArray[np.int64]:
    """Return the shard of every row, by the key group of its key: the same in every process."""
    keys = [table.column(name) for name in plan.query.shard_keys]
    if not keys:
        return np.zeros(len(table), np.int64)
    return shards_of_groups(groups_of_rows(keys), shard_count(plan))


def assign_shards(plan: Plan, table: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return rows and the shard of each; broadcast rows are repeated for every shard.

    The original of a broadcast row is in the shard of its key, which is null; others are copies.
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
    max_bytes: int = FRAGMENT_BYTES,
    sender: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Yield rows of `PACKED` for the shards of each table.

    Parameters
    ----------
    plan : Plan
    tables : iterable of pyarrow.Table
        Rows or partials with the key columns.
    ids : sequence of int, optional
        Ids of shard 0, 1 and so on; default: these numbers.
    max_bytes, sender : int
        See `Cutter`.
    """
    cutter = Cutter(max_bytes, sender)
    for table in tables:
        shards: list[int] = []
        messages: list[bytes] = []
        size = 0
        for shard, batch in _by_shard(plan, table):
            for message in _batch_messages(batch, _MESSAGE_BYTES):
                shards.append(shard if ids is None else ids[shard])
                messages.append(message)
                size += len(message)
                if size > _BATCH_BYTES:
                    yield cutter.cut(shards, messages)
                    shards, messages, size = [], [], 0
        if shards:
            yield cutter.cut(shards, messages)


def send_to_all(plan: Plan, message: bytes, ids: Sequence[int] | None = None) -> pa.RecordBatch:
    """Return rows of `PACKED` with a small message for every shard. ``ids``: see `pack`."""
    return send_whole(range(shard_count(plan)) if ids is None else ids, message)


def _by_shard(plan: Plan, table: pa.Table) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of every shard, in order of shards."""
    table, shards = assign_shards(plan, table)
    narrow = np.min_scalar_type(shard_count(plan))  # NumPy sorts 16 bits by radix
    order = np.argsort(shards.astype(narrow), kind="stable")
    shards = shards[order]
    for batch in table.take(pa.array(order)).combine_chunks().to_batches():
        here, shards = shards[: len(batch)], shards[len(batch) :]
        edges = np.flatnonzero(np.diff(here, prepend=-1)).tolist()
        for begin, end in pairwise([*edges, len(batch)]):
            yield int(here[begin]), batch.slice(begin, end - begin)


@dataclass(frozen=True)
class ShardChunk:
    """Rows of shards ``first`` to ``last``; only the last one may have more rows to come."""

    first: int
    last: int
    rows: pa.Table


def unpack(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[ShardChunk]:
    """Yield what `pack` packed, in chunks of at least ``rows`` rows that end with a shard.

    A chunk with fewer rows is followed by tables of other columns.
    """
    tables: list[pa.Table] = []
    first = last = -1
    count = 0
    for shard, message in join_fragments(batches):
        table = from_ipc(message)
        is_other = bool(tables) and table.column_names != tables[0].column_names
        if (shard != last and count >= rows) or is_other:
            yield ShardChunk(first, last, pa.concat_tables(tables))
            tables, count = [], 0
        first, last = (first if tables else shard), shard
        tables.append(table)
        count += len(table)
    if tables:
        yield ShardChunk(first, last, pa.concat_tables(tables))


def split_by_shard(
    tables: Iterable[pa.Table], *, every_shard: bool = False
) -> Iterator[ShardChunk]:
    """Yield tables that are sorted by their column `SHARD`, split after their first shard.

    ``every_shard``: split after every shard.
    """
    for table in tables:
        shards = to_numeric(table.column(SHARD)).values
        data = table.drop_columns([SHARD])
        edges = (np.flatnonzero(np.diff(shards)) + 1).tolist()
        ends = edges if every_shard else edges[:1]
        for begin, end in pairwise([0, *ends, len(data)]):
            rows = data.slice(begin, end - begin)
            yield ShardChunk(int(shards[begin]), int(shards[end - 1]), rows)


def to_messages(table: pa.Table, max_bytes: int = _MESSAGE_BYTES) -> Iterator[bytes]:
    """Yield a table as Arrow IPC streams of up to ``max_bytes``; a wider row has its own."""
    for begin in range(0, len(table), _MESSAGE_ROWS):
        for batch in table.slice(begin, _MESSAGE_ROWS).combine_chunks().to_batches():
            yield from _batch_messages(batch, max_bytes)


def _batch_messages(batch: pa.RecordBatch, max_bytes: int) -> Iterator[bytes]:
    """Yield the streams of a batch, which is sliced by the average size of its rows."""
    data_bytes = max_bytes - max_bytes // 8  # the rest is for the schema
    size = pa.ipc.get_record_batch_size(batch)
    rows = min(_MESSAGE_ROWS, max(1, data_bytes * len(batch) // size))
    for begin in range(0, len(batch), rows):
        part = batch.slice(begin, min(rows, len(batch) - begin))
        message = to_ipc(part)
        if len(message) <= max_bytes or len(part) == 1:
            yield message
        else:  # its rows are wider than the average
            half = len(part) // 2
            yield from _batch_messages(part.slice(0, half), max_bytes)
            yield from _batch_messages(part.slice(half), max_bytes)


def to_ipc(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Return rows as an Arrow IPC stream, a large one compressed."""
    sink = pa.BufferOutputStream()
    options = _PLAIN if rows.nbytes < _MIN_COMPRESSED_BYTES else _COMPRESSED
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_ipc(message: bytes | pa.Buffer) -> pa.Table:
    """Read an Arrow IPC stream."""
    with pa.ipc.open_stream(message, options=_READ) as reader:
        return reader.read_all()
