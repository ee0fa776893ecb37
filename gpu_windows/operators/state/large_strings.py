"""Rows with more string data than an array can have: offsets of strings and binary have 31 bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.errors import ArrayOverflowError

#: Bytes of a string column up to which its rows are reordered at once; larger ones are reordered in
#: pieces of about this size.
MAX_STRING_BYTES = 1 << 30
#: Types with larger offsets.
_LARGE = {
    pa.string(): pa.large_string(),
    pa.binary(): pa.large_binary(),
}
#: Messages of Arrow if strings or lists do not fit an array.
_OVERFLOWS = ("offset overflow", "input array too large", "array cannot contain more than")


def take_rows(table: pa.Table, order: NDArray[Any]) -> pa.Table:
    """Return rows by index, however large their strings are in total; maybe in several chunks.

    Raises
    ------
    pyarrow.ArrowInvalid
        If lists of strings, or strings in structs, are too large: see `naming_overflow`.
    """
    large = [
        name
        for name in table.column_names
        if table.column(name).type in _LARGE and table.column(name).nbytes > MAX_STRING_BYTES
    ]
    if not large:
        return table.take(pa.array(order))
    wide = table
    for name in large:
        at, column = wide.schema.get_field_index(name), wide.column(name)
        wide = wide.set_column(at, name, column.cast(_LARGE[column.type]).combine_chunks())
    rows = max(1, len(table) * MAX_STRING_BYTES // max(table.nbytes, 1))
    pieces = (order[begin : begin + rows] for begin in range(0, len(order), rows))
    parts = [part for piece in pieces for part in _take_narrow(wide, piece, table.schema)]
    return pa.concat_tables([table.slice(0, 0), *parts])


def _take_narrow(wide: pa.Table, order: NDArray[Any], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield rows with small offsets; in halves if they do not fit."""
    try:
        yield wide.take(pa.array(order)).cast(schema)
    except pa.ArrowInvalid:
        if len(order) < 2:
            raise
        for half in np.array_split(order, 2):
            yield from _take_narrow(wide, half, schema)


@contextmanager
def naming_overflow() -> Iterator[None]:
    """Convert errors of Arrow about too large arrays to `ArrayOverflowError`, with the rule."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
        if not any(each in str(error) for each in _OVERFLOWS):
            raise
        rule = (
            "strings, binary and lists of a column that are worked on at once have less than "
            "2 GiB: take more shards, smaller micro-batches (maxFilesPerTrigger, "
            "maxOffsetsPerTrigger), or bound the state of a key"
        )
        raise ArrayOverflowError(rule, value=error) from error
