"""Gather small Arrow batches until a kernel call is worth it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

#: Bytes of a table from which on it is large enough, however few its rows are.
ENOUGH_BYTES = 1 << 27


def gather(
    batches: Iterable[pa.RecordBatch], rows: int, enough: int = ENOUGH_BYTES
) -> Iterator[pa.Table]:
    """Yield tables of at least ``rows`` rows (the last may be shorter), in order, none empty.

    A table of ``enough`` bytes may have fewer rows.
    """
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        waiting.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= rows or size >= enough:
            yield _together(waiting)
            waiting, count, size = [], 0, 0
    if waiting:
        yield _together(waiting)


#: Bytes of a column of texts up to which its rows are put in another order at once: an array
#: of them has no more than 2 GiB.
_MOST_TEXT = 1 << 30
#: What has larger offsets.
_LARGE = {
    pa.string(): pa.large_string(),
    pa.binary(): pa.large_binary(),
}


def taken(table: pa.Table, order: NDArray[np.int64]) -> pa.Table:
    """Return rows in another order, however large texts are all together."""
    large = [
        name
        for name in table.column_names
        if table.column(name).type in _LARGE and table.column(name).nbytes > _MOST_TEXT
    ]
    if not large:
        return table.take(pa.array(order))
    wide = table
    for name in large:
        at, column = wide.schema.get_field_index(name), wide.column(name)
        wide = wide.set_column(at, name, column.cast(_LARGE[column.type]).combine_chunks())
    rows = max(1, len(table) * _MOST_TEXT // max(table.nbytes, 1))
    pieces = (order[begin : begin + rows] for begin in range(0, len(order), rows))
    return pa.concat_tables([wide.take(pa.array(each)).cast(table.schema) for each in pieces])


def _together(batches: list[pa.RecordBatch]) -> pa.Table:
    first = batches[0].schema
    if all(batch.schema.equals(first) for batch in batches):
        table = pa.Table.from_batches(batches)
    else:  # of several starts of a query, what may be null has changed
        tables = [pa.Table.from_batches([batch]) for batch in batches]
        table = pa.concat_tables(tables, promote_options="default")
    return table if len(batches) == 1 else table.combine_chunks()
