"""Concatenate small Arrow batches into tables that are large enough for a kernel call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

#: Bytes of a table that are enough, however few its rows are.
ENOUGH_BYTES = 1 << 27


def gather(
    batches: Iterable[pa.RecordBatch],
    rows: int,
    enough: int = ENOUGH_BYTES,
    *,
    in_pieces: bool = False,
) -> Iterator[pa.Table]:
    """Yield tables of at least ``rows`` rows (the last may be shorter), in order, none empty.

    A table of ``enough`` bytes may have fewer rows. Its columns are one chunk each, or with
    ``in_pieces`` a chunk for each batch, which are not copied here.
    """
    pending: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        pending.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= rows or size >= enough:
            yield _concat(pending, in_pieces=in_pieces)
            pending, count, size = [], 0, 0
    if pending:
        yield _concat(pending, in_pieces=in_pieces)


def _concat(batches: list[pa.RecordBatch], *, in_pieces: bool) -> pa.Table:
    first = batches[0].schema
    if all(batch.schema.equals(first) for batch in batches):
        table = pa.Table.from_batches(batches)
    else:  # batches of several starts of a query may differ in nullability
        tables = [pa.Table.from_batches([batch]) for batch in batches]
        table = pa.concat_tables(tables, promote_options="default")
    return table if in_pieces or len(batches) == 1 else table.combine_chunks()
