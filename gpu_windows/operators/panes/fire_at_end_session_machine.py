"""State machine of sessions that fire once, at their end: a store has their rows until then.

A session refers to its rows by *pieces*. A piece is a run of its rows that came one after the
other. Its name is the arrival number of its first row, which distinguishes it from rows of an
earlier session at the same times. When sessions merge, the pieces of one follow those of the other,
in the order in which Flink concatenates their contents; new rows belong to the last piece.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.key_groups import GROUP, groups_of
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.ranges import join_ranges, offsets, ranges
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.panes.merging import SessionMachine, list_as_elements
from gpu_windows.operators.panes.runner import Ints
from gpu_windows.operators.panes.state import PaneState
from gpu_windows.operators.panes.tables import to_table
from gpu_windows.operators.state.buffer_spec import hash_prefixes
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import ARRIVAL
from gpu_windows.rules.window_operator.layout import EVENT_TIMER, Settings

#: Columns of the rows in a store: the piece of a row, and the place of its key.
PIECE, PLACE = "__piece", "__place"


class Ending(NamedTuple):
    """Sessions that end; s of them, p pieces.

    Parameters
    ----------
    places, first, last : int64[s]
        The places of their keys, their first and their last tick.
    pieces : int64[p]
        Their pieces.
    rows : int
        Number of their rows.
    """

    places: Ints
    first: Ints
    last: Ints
    pieces: Ints
    rows: int


class FireAtEndSessionMachine(SessionMachine):
    """State machine of event-time sessions that fire once, at their end; it keeps their pieces."""

    def __init__(self, plan: WindowPlan, kernels: Kernels, *, trace: bool) -> None:
        super().__init__(plan, kernels, trace=trace)
        self._new: list[pa.Table] = []  # rows that are not yet in the store
        self._before = self._state  # the sessions that a call touches, with their pieces

    def size(self) -> dict[str, int]:
        """Return the number of entries of each kind; rows are those of the sessions in memory."""
        return {
            **super().size(),
            "rows": int(self._state.panes.row_count.sum()) + self.buffered_count,
        }

    # ---- between calls, in a store

    def to_tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the sessions, without rows."""
        return to_table(self._state, self.keys, (), self._nodes), pa.table({})

    def drain_rows(self) -> pa.Table | None:
        """Return the new rows, and empty their list; None if there are none.

        They have the columns `PIECE`, `PLACE` and `GROUP` in addition to their own.
        """
        new, self._new = self._new, []
        return pa.concat_tables(new, promote_options="default") if new else None

    def find_ending(self, until: int) -> Ending:
        """Return the sessions that end up to some time."""
        state = self._select(self._state, np.flatnonzero(self._state.panes.last <= until))
        places = hash_prefixes(self.keys.hashes())[state.codes]
        count = int(state.panes.row_count.sum())
        return Ending(places, state.panes.start, state.panes.last, state.rows, count)

    def load_stored_rows(self, rows: pa.Table, until: int) -> None:
        """Add stored rows to their sessions, which end up to ``until``, before these fire."""
        state, ends = self._state, self._state.panes.last <= until
        lengths = np.where(ends, state.lengths, 0)
        pieces = state.rows[ranges(state.begins[:-1], lengths)]
        by_name = np.argsort(pieces)
        found = np.searchsorted(pieces, to_numeric(rows.column(PIECE)).values, sorter=by_name)
        rank = by_name[found]
        order = np.lexsort((to_numeric(rows.column(ARRIVAL)).values, rank))
        session = np.repeat(np.arange(len(state)), lengths)[rank]
        counts = np.bincount(session, minlength=len(state))
        self._retained = [rows.take(pa.array(order)).combine_chunks()]
        others = np.where(ends, 0, state.lengths)
        other_pieces = state.rows[ranges(state.begins[:-1], others)]
        begins, _, lists = join_ranges(np.arange(len(rows)), counts, other_pieces, others)
        self._state = replace(state, begins=begins, rows=lists)

    # ---- a call

    def _select_touched(self, codes: Ints, settings: Settings) -> NDArray[np.bool_]:
        return np.isin(self._state.codes, codes) | self._find_due(settings)

    def _list_elements(
        self, panes: PaneState, first: int, settings: Settings
    ) -> tuple[PaneState, int]:
        """Return sessions with their rows if they fire, otherwise each as one element."""
        self._before = panes
        if settings.advance == EVENT_TIMER:
            return panes, 0
        return list_as_elements(panes, first), len(panes)

    def _keep(self, table: pa.Table, parts: list[PaneState]) -> None:
        """Store the sessions of a run, and its new rows until they are drained."""
        rest, *touched = parts
        parts.clear()
        state = PaneState.concat([self._no_panes(), *touched], ())
        stored, pieces = _split_into_pieces(
            to_numeric(table.column(ARRIVAL)).values, state, self._before
        )
        is_row = state.rows < len(table)
        if is_row.any():
            hashes = self.keys.hashes()[np.repeat(state.codes, state.lengths)[is_row]]
            rows = table.take(pa.array(state.rows[is_row]))
            rows = rows.append_column(PIECE, pa.array(pieces[is_row]))
            rows = rows.append_column(PLACE, pa.array(hash_prefixes(hashes), pa.int32()))
            self._new.append(rows.append_column(GROUP, pa.array(groups_of(hashes), pa.uint16())))
        self._state = self._concat([rest, stored])
        self._retained, self._before = [], self._no_panes()


def _split_into_pieces(
    arrival: Ints, state: PaneState, before: PaneState
) -> tuple[PaneState, Ints]:
    """Return sessions that refer to pieces, and the piece of each of their elements.

    Parameters
    ----------
    arrival : int64[n]
        Arrival numbers of the rows of a call.
    state : PaneState
        Sessions whose lists have numbers of these rows, and from n on numbers of earlier sessions.
    before : PaneState
        The earlier sessions, with their pieces.
    """
    is_row = state.rows < len(arrival)
    came = np.full(len(state.rows), -1)
    came[is_row] = arrival[state.rows[is_row]]
    session = np.repeat(np.arange(len(state)), state.lengths)
    begins_one = np.ones(len(came), np.bool_)  # a piece, or the pieces of a session
    begins_one[1:] = (np.diff(session) != 0) | (np.diff(came) <= 0)
    first = np.flatnonzero(begins_one)
    names = np.concatenate([before.rows, came[first]])
    begins, lengths = len(before.rows) + np.arange(len(first)), np.ones(len(first), np.int64)
    were = np.flatnonzero(~is_row[first])
    of = state.rows[first[were]] - len(arrival)
    begins[were], lengths[were] = before.begins[of], before.lengths[of]
    last = names[begins + lengths - 1]
    total = offsets(lengths)
    edges = np.searchsorted(session[first], np.arange(len(state) + 1))
    pieces = replace(state, begins=total[edges], rows=names[ranges(begins, lengths)])
    return pieces, last[np.cumsum(begins_one) - 1]
