"""Gather small Arrow batches until a kernel call is worth it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


def gather(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Yield tables of at least ``rows`` rows (the last may be shorter), in order, none empty."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        waiting.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield _together(waiting)
            waiting, count = [], 0
    if waiting:
        yield _together(waiting)


def _together(batches: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(batches)
    return table if len(batches) == 1 else table.combine_chunks()
