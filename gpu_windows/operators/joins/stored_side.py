"""Rows of a join side in a store: by key, and also by time if they emit results when they expire.

Rows are appended and not written again when they are matched; match markers are appended instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.two_inputs import TIME
from gpu_windows.operators.joins import match_flags
from gpu_windows.operators.joins.join_index import JoinIndex, are_keys
from gpu_windows.operators.joins.rows import Flags, JoinRows
from gpu_windows.operators.state.buffer_spec import BufferSpec, no_prefix
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer

Ints = NDArray[np.int64]

#: Table names of the rows of a side by key, and by time.
KINDS, ENDS = ("left", "right"), ("left at end", "right at end")


@dataclass(frozen=True)
class Needs:
    """Requirements of a join on the stored rows of a side.

    Parameters
    ----------
    tracks : bool
        Whether match flags are needed.
    emits_at_end : bool
        Whether expired rows emit results; if ``tracks``, only unmatched ones do.
    is_probed : bool
        Whether rows are looked up by key.
    """

    tracks: bool
    emits_at_end: bool
    is_probed: bool


class StoredSide:
    """Rows of a side in a log.

    Parameters
    ----------
    log : StateLog
    side : int
        0: left, 1: right.
    needs : Needs
    index : JoinIndex
    next_number : int
        The number of the next row.

    Attributes
    ----------
    next_number : int
    """

    def __init__(
        self, log: StateLog, side: int, needs: Needs, index: JoinIndex, next_number: int
    ) -> None:
        self._needs, self._index, self.next_number = needs, index, next_number
        numbers = (match_flags.NUMBER,) if needs.tracks else ()
        by_key = buffer_spec(index.prefixes_of_rows, keeps_matched=True, numbers=numbers)
        by_time = buffer_spec(no_prefix, keeps_matched=False, numbers=numbers)
        self._by_key = RowBuffer(log, KINDS[side], by_key, index.lacking)
        self._by_time = RowBuffer(log, ENDS[side], by_time, index.lacking)
        self._newly_matched: list[JoinRows] = []  # stored rows without a marker yet

    def __len__(self) -> int:
        """Return the number of rows; some of them may have expired."""
        return len(self._by_key if self._needs.is_probed else self._by_time)

    @property
    def ends(self) -> list[int]:
        """The times up to which rows emit results, or a run is dropped."""
        return [*self._by_key.last_times, *self._by_time.first_times]

    # ---- during a call

    def find_candidates(self, rows: JoinRows, lower: int, upper: int) -> Iterator[JoinRows]:
        """Yield the stored rows with the keys of some rows, and near them in time.

        The caller sets their match flags, which are read afterwards.
        """
        has_key = are_keys(rows.codes)
        codes, ts = rows.codes[has_key], rows.ts[has_key]
        found = self._by_key.find(self._index.hash_prefixes(codes), ts + lower, ts + upper)
        if found is None:
            return
        candidates = self._index.make_rows(*self._resolve(found), among=codes)
        if not len(candidates):
            return
        before = candidates.matched.copy()
        yield candidates
        first_matched = np.flatnonzero(candidates.matched & ~before)
        if self._needs.tracks and len(first_matched):
            self._newly_matched.append(candidates.take(first_matched))

    def expire(self, limit: int) -> Iterator[JoinRows]:
        """Expire the rows up to a time; yield those that emit results then."""
        for rows in self._by_time.take_due(limit):
            resolved, matched = self._resolve(rows)
            unmatched = resolved.filter(pa.array(~matched)) if matched.any() else resolved
            yield self._index.make_rows(unmatched, np.zeros(len(unmatched), np.bool_))
        self._by_key.forget(limit)
        self._newly_matched = [
            rows.take(np.flatnonzero(rows.ts > limit)) for rows in self._newly_matched
        ]

    def _resolve(self, rows: pa.Table) -> tuple[pa.Table, Flags]:
        """Return stored rows without match markers, and whether they have been matched."""
        if not self._needs.tracks:
            return rows, np.zeros(len(rows), np.bool_)
        rows = match_flags.drop_markers(match_flags.resolve_markers(rows))
        numbers = [each.table.column(match_flags.NUMBER).to_numpy() for each in self._newly_matched]
        newly_matched = np.concatenate([np.empty(0, np.int64), *numbers])
        return rows, match_flags.are_matched(rows, newly_matched)

    # ---- after a call

    def append(self, runs: Iterable[JoinRows]) -> None:
        """Write new rows, and match markers of stored rows that were matched in this call."""
        parts = [*runs]
        tables = [rows.table for rows in parts]
        if self._needs.tracks:
            tables = [self._number_rows(rows) for rows in parts]
            keys = self._index.keys
            markers = [
                match_flags.make_markers(rows.table, (*keys, TIME)) for rows in self._newly_matched
            ]
            tables, self._newly_matched = [*tables, *markers], []
        if not tables:
            return
        rows = pa.concat_tables(tables, promote_options="default")
        if self._needs.is_probed:
            self._by_key.append(rows)
        if self._needs.emits_at_end:
            self._by_time.append(match_flags.drop_matched(rows) if self._needs.tracks else rows)

    def _number_rows(self, rows: JoinRows) -> pa.Table:
        first = self.next_number
        self.next_number += len(rows)
        return match_flags.number_rows(rows.table, rows.matched, first)


def buffer_spec(
    prefixes: Callable[[pa.Table], Ints], *, keeps_matched: bool, numbers: Sequence[str] = ()
) -> BufferSpec:
    """Return the `BufferSpec` of the rows of a side.

    Parameters
    ----------
    prefixes : callable
        Returns the prefixes of rows: int64[n].
    keeps_matched : bool
        Whether matched rows are retained, if they have match flags.
    """
    compact = partial(_compact_rows, keeps_matched=keeps_matched)
    return BufferSpec(TIME, prefixes, compact, match_flags.are_markers, numbers=numbers)


def _compact_rows(rows: pa.Table, *, are_oldest: bool, keeps_matched: bool) -> pa.Table:
    """Return the rows of merged runs that are still needed: a `Compact`."""
    if match_flags.STATUS not in rows.column_names:
        return rows
    rows = match_flags.resolve_markers(rows)
    rows = match_flags.drop_markers(rows) if are_oldest else rows
    return rows if keeps_matched else match_flags.drop_matched(rows)
