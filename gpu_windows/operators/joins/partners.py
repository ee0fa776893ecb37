"""Which rows in a store have had a partner: a column says it, and notes of rows written before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.joins.rows import Flags

Ints = NDArray[np.int64]

#: The columns of the number of a row, and of what is known of it.
NUMBER, STATUS = "__number", "__status"
#: What is known: it waits for its first partner; it has had one; this is no row but a note that the
#: row with this number, which was written before, has had one.
WAITS, MET, NOTE = 0, 1, 2


def numbered(rows: pa.Table, met: Flags, first: int) -> pa.Table:
    """Return rows with their numbers, from ``first`` on, and what is known of them."""
    numbers = pa.array(first + np.arange(len(rows)))
    return rows.append_column(NUMBER, numbers).append_column(
        STATUS, _array(np.where(met, MET, WAITS))
    )


def notes_of(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return notes of numbered rows that have had a partner; ``names``: columns that they have."""
    known = {*names, NUMBER}
    arrays = [
        rows.column(field.name) if field.name in known else pa.nulls(len(rows), field.type)
        for field in rows.schema
    ]
    notes = pa.Table.from_arrays(arrays, names=rows.column_names)
    place = rows.column_names.index(STATUS)
    return notes.set_column(place, STATUS, _array(np.full(len(rows), NOTE)))


def settled(rows: pa.Table) -> pa.Table:
    """Return rows with what notes among them tell, and the notes of other rows."""
    numbers, status = _known(rows)
    is_note = status == NOTE
    if not is_note.any():
        return rows
    is_noted = np.isin(numbers, numbers[is_note])
    has_row = np.isin(numbers, numbers[~is_note])
    status = np.where(is_noted & ~is_note, MET, status)
    place = rows.column_names.index(STATUS)
    return rows.set_column(place, STATUS, _array(status)).filter(pa.array(~is_note | ~has_row))


def waiting(rows: pa.Table) -> pa.Table:
    """Return settled rows that wait for their first partner, and the notes of other rows."""
    _, status = _known(rows)
    return rows.filter(pa.array(status != MET)) if (status == MET).any() else rows


def without_notes(rows: pa.Table) -> pa.Table:
    """Return settled rows without notes."""
    flags = are_notes(rows)
    return rows.filter(pa.array(~flags)) if flags.any() else rows


def are_notes(rows: pa.Table) -> Flags:
    """Return which are notes."""
    if STATUS not in rows.column_names:
        return np.zeros(len(rows), np.bool_)
    flags: Flags = rows.column(STATUS).to_numpy() == NOTE
    return flags


def have_met(rows: pa.Table, noted: Ints) -> Flags:
    """Return which rows have had a partner; ``noted``: numbers of rows that have besides."""
    numbers, status = _known(rows)
    flags: Flags = (status == MET) | np.isin(numbers, noted)
    return flags


def _known(rows: pa.Table) -> tuple[Ints, Ints]:
    return rows.column(NUMBER).to_numpy(), rows.column(STATUS).to_numpy()


def _array(status: NDArray[np.int64]) -> pa.Array:
    return pa.array(status.astype(np.int8))
