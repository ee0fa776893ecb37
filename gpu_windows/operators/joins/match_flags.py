"""Match flags of stored rows: a status column, and match markers for earlier rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.joins.rows import Flags

Ints = NDArray[np.int64]

#: The columns of the number of a row, and of its status.
NUMBER, STATUS = "__number", "__status"
#: The status: a row without a match so far; a row with a match; a match marker, which is not a row,
#: but says that the stored row with this number has been matched since.
UNMATCHED, MATCHED, MARKER = 0, 1, 2


def number_rows(rows: pa.Table, matched: Flags, first: int) -> pa.Table:
    """Add numbers, from ``first`` on, and the status to rows."""
    numbers = pa.array(first + np.arange(len(rows)))
    return rows.append_column(NUMBER, numbers).append_column(
        STATUS, _array(np.where(matched, MATCHED, UNMATCHED))
    )


def make_markers(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return match markers of numbered rows; ``names``: the columns that markers copy."""
    copied = {*names, NUMBER}
    arrays = [
        rows.column(field.name) if field.name in copied else pa.nulls(len(rows), field.type)
        for field in rows.schema
    ]
    markers = pa.Table.from_arrays(arrays, names=rows.column_names)
    place = rows.column_names.index(STATUS)
    return markers.set_column(place, STATUS, _array(np.full(len(rows), MARKER)))


def resolve_markers(rows: pa.Table) -> pa.Table:
    """Apply match markers to the rows among them; return rows, and the markers of other rows."""
    numbers, status = _numbers_and_status(rows)
    is_marker = status == MARKER
    if not is_marker.any():
        return rows
    is_marked = np.isin(numbers, numbers[is_marker])
    has_row = np.isin(numbers, numbers[~is_marker])
    status = np.where(is_marked & ~is_marker, MATCHED, status)
    place = rows.column_names.index(STATUS)
    return rows.set_column(place, STATUS, _array(status)).filter(pa.array(~is_marker | ~has_row))


def drop_matched(rows: pa.Table) -> pa.Table:
    """Drop the matched rows of resolved ones; keep markers of other rows."""
    _, status = _numbers_and_status(rows)
    return rows.filter(pa.array(status != MATCHED)) if (status == MATCHED).any() else rows


def drop_markers(rows: pa.Table) -> pa.Table:
    """Drop the match markers of resolved rows."""
    flags = are_markers(rows)
    return rows.filter(pa.array(~flags)) if flags.any() else rows


def are_markers(rows: pa.Table) -> Flags:
    """Return which rows are match markers."""
    if STATUS not in rows.column_names:
        return np.zeros(len(rows), np.bool_)
    flags: Flags = rows.column(STATUS).to_numpy() == MARKER
    return flags


def are_matched(rows: pa.Table, matched_numbers: Ints) -> Flags:
    """Return which rows have been matched; ``matched_numbers``: further ones by number."""
    numbers, status = _numbers_and_status(rows)
    flags: Flags = (status == MATCHED) | np.isin(numbers, matched_numbers)
    return flags


def _numbers_and_status(rows: pa.Table) -> tuple[Ints, Ints]:
    return rows.column(NUMBER).to_numpy(), rows.column(STATUS).to_numpy()


def _array(status: NDArray[np.int64]) -> pa.Array:
    return pa.array(status.astype(np.int8))
