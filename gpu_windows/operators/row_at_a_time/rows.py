"""The rows of a batch as Python values for the reference operator."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import pyarrow as pa

from gpu_windows.column_types.time_units import python_values, to_microseconds
from gpu_windows.operators.keyed.values import key_part, stored_values
from gpu_windows.operators.row_at_a_time.functions import StoredRow
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.rules import LONG_MIN
from gpu_windows.vocabulary.triggers import Row


def rows_of(
    query: WindowQuery, batch: pa.Table
) -> Iterator[tuple[tuple[Hashable, ...], StoredRow]]:
    """Yield key and row of a batch, in its order.

    User code gets Python's own values; built-in parts get temporal values as stored integers.
    """
    keys = zip(*(map(key_part, stored_values(batch[name])) for name in query.keys), strict=True)
    times = batch[query.time].to_pylist()
    if not query.needs_time:  # as Flink's records without a timestamp
        times = [LONG_MIN if time is None else time for time in times]
    rows = _dicts(batch, query.function.read_columns, as_python=query.function.takes_rows)
    seen = _dicts(batch, query.part_columns, as_python=query.has_user_parts)
    for key, ts, row, part in zip(keys, times, rows, seen, strict=True):
        yield key, StoredRow(row, ts, part)


def _dicts(batch: pa.Table, names: Sequence[str], *, as_python: bool) -> Iterator[Row]:
    if not names:
        return ({} for _ in range(batch.num_rows))  # each its own: functions may write into it
    columns = [
        python_values(batch[name], name)
        if as_python
        else stored_values(_in_ticks(batch[name], name))
        for name in names
    ]
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _in_ticks(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return durations in microseconds, other columns as they are."""
    if not pa.types.is_duration(column.type):
        return column
    return to_microseconds(column, name, "a duration").cast(pa.duration("us"))
