"""The rows of a side of a join in a store: by key, and again by time where the end tells them.

Rows are appended, and never written again because they meet a partner: of that notes are appended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.two_inputs import TIME
from gpu_windows.operators.joins import partners
from gpu_windows.operators.joins.arrangement import Arrangement, are_keys
from gpu_windows.operators.joins.rows import JoinRows
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.operators.state.row_kind import RowKind, one_place

Ints = NDArray[np.int64]

#: What a log calls the rows of a side by key, and those by time.
KINDS, ENDS = ("left", "right"), ("left at end", "right at end")


@dataclass(frozen=True)
class Needs:
    """What a join needs of a side.

    Parameters
    ----------
    tracks : bool
        To know which rows have had a partner.
    tells_at_end : bool
        The rows that are over; where it tracks, those that have had none.
    finds : bool
        The rows of a key.
    """

    tracks: bool
    tells_at_end: bool
    finds: bool


class StoredSide:
    """The rows of a side that a log has.

    Parameters
    ----------
    log : StateLog
    side : int
        0: left, 1: right.
    needs : Needs
    arrangement : Arrangement
    next_number : int
        The number of the next row.

    Attributes
    ----------
    next_number : int
    """

    def __init__(
        self, log: StateLog, side: int, needs: Needs, arrangement: Arrangement, next_number: int
    ) -> None:
        self._needs, self._arrangement, self.next_number = needs, arrangement, next_number
        numbers = (partners.NUMBER,) if needs.tracks else ()
        by_key = row_kind(arrangement.places, keeps_met=True, numbers=numbers)
        by_time = row_kind(one_place, keeps_met=False, numbers=numbers)
        self._of_key = RowBuffer(log, KINDS[side], by_key, arrangement.lacking)
        self._at_end = RowBuffer(log, ENDS[side], by_time, arrangement.lacking)
        self._noted: list[JoinRows] = []  # rows of the log that have met their first partner

    def __len__(self) -> int:
        """Return the number of rows, some that are over too."""
        return len(self._of_key if self._needs.finds else self._at_end)

    @property
    def ends(self) -> list[int]:
        """The times up to which there is something to tell, or a run to forget."""
        return [*self._of_key.last_times, *self._at_end.first_times]

    # ---- what a call needs

    def partners(self, rows: JoinRows, lower: int, upper: int) -> Iterator[JoinRows]:
        """Yield what the store has of the keys of some rows, and near them in time.

        Which of it have met their first partner is noted afterwards.
        """
        mine = are_keys(rows.codes)
        codes, ts = rows.codes[mine], rows.ts[mine]
        found = self._of_key.find(self._arrangement.places_of(codes), ts + lower, ts + upper)
        if found is None:
            return
        met = np.zeros(len(found), np.bool_)
        if self._needs.tracks:
            found = partners.without_notes(partners.settled(found))
            met = partners.have_met(found, self._numbers_noted())
        kept = self._arrangement.rows(found, met, among=codes)
        if not len(kept):
            return
        before = kept.met.copy()
        yield kept
        first_met = np.flatnonzero(kept.met & ~before)
        if self._needs.tracks and len(first_met):
            self._noted.append(kept.take(first_met))

    def cut(self, limit: int) -> Iterator[JoinRows]:
        """Take the rows up to a time as over; yield those that are to be told."""
        for rows in self._at_end.take_due(limit):
            told = rows
            if self._needs.tracks:
                told = partners.without_notes(partners.settled(rows))
                met = partners.have_met(told, self._numbers_noted())
                told = told.filter(pa.array(~met))
            yield self._arrangement.rows(told, np.zeros(len(told), np.bool_))
        self._of_key.forget(limit)
        self._noted = [rows.take(np.flatnonzero(rows.ts > limit)) for rows in self._noted]

    def _numbers_noted(self) -> Ints:
        numbers = [rows.table.column(partners.NUMBER).to_numpy() for rows in self._noted]
        return np.concatenate([np.empty(0, np.int64), *numbers])

    # ---- what a call leaves

    def append(self, runs: Iterable[JoinRows]) -> None:
        """Write the rows that came, and what has come of those that were there."""
        parts = [*runs]
        tables = [rows.table for rows in parts]
        if self._needs.tracks:
            tables = [self._numbered(rows) for rows in parts]
            keys = self._arrangement.keys
            notes = [partners.notes_of(rows.table, (*keys, TIME)) for rows in self._noted]
            tables, self._noted = [*tables, *notes], []
        if not tables:
            return
        rows = pa.concat_tables(tables, promote_options="default")
        if self._needs.finds:
            self._of_key.append(rows)
        if self._needs.tells_at_end:
            self._at_end.append(partners.waiting(rows) if self._needs.tracks else rows)

    def _numbered(self, rows: JoinRows) -> pa.Table:
        first = self.next_number
        self.next_number += len(rows)
        return partners.numbered(rows.table, rows.met, first)


def row_kind(
    places: Callable[[pa.Table], Ints], *, keeps_met: bool, numbers: Sequence[str] = ()
) -> RowKind:
    """Return what is to be known of the rows of a side.

    Parameters
    ----------
    places : callable
        Tells the places of rows: int64[n].
    keeps_met : bool
        Whether rows stay that have had a partner, where that is known of them.
    """
    settle = partial(_settled, keeps_met=keeps_met)
    return RowKind(TIME, places, settle, partners.are_notes, numbers=numbers)


def _settled(rows: pa.Table, *, are_oldest: bool, keeps_met: bool) -> pa.Table:
    """Return what there is to keep of rows that are merged."""
    if partners.STATUS not in rows.column_names:
        return rows
    rows = partners.settled(rows)
    rows = partners.without_notes(rows) if are_oldest else rows
    return rows if keeps_met else partners.waiting(rows)
