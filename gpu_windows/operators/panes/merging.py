"""State machine of sessions; they merge, so all sessions of a key are one unit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.cpu import merging
from gpu_windows.kernels.cpu.merging import Spans
from gpu_windows.operators.columns.keys import order_by_code, present
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.ranges import join_ranges, offsets, ranges
from gpu_windows.operators.columns.row_status import session_ends, status_of_rows
from gpu_windows.operators.panes.changes import Windows, repeat_codes
from gpu_windows.operators.panes.outcome import FiredRows, Outcome
from gpu_windows.operators.panes.results import Call
from gpu_windows.operators.panes.runner import CHUNK_ELEMENTS, Ints, Machine, Work
from gpu_windows.operators.panes.state import EmittedWindows, PaneState, create_panes
from gpu_windows.rules.window_operator.layout import Elements, Panes, Settings, Units
from gpu_windows.vocabulary.windows import EventTimeSessionWindows

#: Greater than every key code.
_AFTER_ALL = 2**62


@dataclass(frozen=True)
class _Keys:
    """The keys whose sessions may change, in order of their codes.

    Parameters
    ----------
    base : int
        Number of retained rows.
    codes : int64[k]
        Their codes, ascending.
    order : int64[n]
        New rows by key, in order of arrival.
    news : int64[k + 1]
        Where the rows of every key begin in ``order``.
    sessions : int64[k + 1]
        Where its sessions begin in ``Work.panes``.
    spans : Spans
        Spans of all rows; only those of new rows are read.
    """

    base: int
    codes: Ints
    order: Ints
    news: Ints
    sessions: Ints
    spans: Spans


class SessionMachine(Machine):
    """Sessions; a unit is a key."""

    #: Number of elements per kernel call; results come in pieces, so partials do not count.
    _max_elements = CHUNK_ELEMENTS

    def _classify(
        self, backend: Backend, batch: pa.Table, watermark: int, processing_time: int
    ) -> tuple[Ints, NDArray[np.int8]]:
        """Return where the session of every row begins; lateness is decided when sessions merge."""
        status = status_of_rows(self._query, batch, processing_time)
        if self._assigner.is_event_time:
            return to_numeric(batch.column(self._query.time)).values, status
        return np.full(len(batch), processing_time), status

    @property
    def _assigner(self) -> EventTimeSessionWindows:
        assigner = self._query.assigner
        assert isinstance(assigner, EventTimeSessionWindows)
        return assigner

    def _prepare_work(self, settings: Settings) -> Work:
        (table, arrived), state = self._drain_buffer(), self._state
        touched = self._select_touched(arrived.codes, settings)
        self._state = self._no_panes()  # until the run has ended
        panes, extra = self._list_elements(
            self._select(state, np.flatnonzero(touched)), len(table), settings
        )
        codes = present(np.concatenate([arrived.codes, panes.codes]), self.keys.count)
        order = order_by_code(arrived.codes, self.keys.count)
        opens = np.zeros(len(table), np.int64)
        opens[arrived.base :] = arrived.places
        closes = np.zeros(len(table), np.int64)
        closes[arrived.base :] = session_ends(
            self._assigner, arrived.places, table.slice(arrived.base)
        )
        edges = np.append(codes, _AFTER_ALL)
        keys = _Keys(
            arrived.base,
            codes,
            arrived.base + order,
            np.searchsorted(arrived.codes[order], edges),
            np.searchsorted(panes.codes, edges),
            Spans(opens, closes),
        )
        elements = np.diff(keys.news) + np.diff(panes.begins[keys.sessions])
        rest = self._select(state, np.flatnonzero(~touched))
        ts, delta_values = self._timestamps_of(table, extra), self._delta_values_of(table, extra)
        return Work(table, ts, delta_values, panes, rest, elements, keys)

    def _select_touched(self, codes: Ints, settings: Settings) -> NDArray[np.bool_]:
        """Return which sessions may change; ``codes``: keys of new rows."""
        codes_of_sessions = self._state.codes
        is_touched = np.zeros(self.keys.count, np.bool_)
        is_touched[codes] = True
        is_touched[codes_of_sessions[self._find_due(settings)]] = True
        return is_touched[codes_of_sessions]

    def _list_elements(
        self, panes: PaneState, first: int, settings: Settings
    ) -> tuple[PaneState, int]:
        """Return sessions with the elements of their lists, and how many of these are not rows.

        Elements that are not rows have numbers from ``first`` on.
        """
        del settings
        return (panes, 0) if self.keeps_rows else (list_as_elements(panes, first), len(panes))

    def _run_units(
        self, backend: Backend, work: Work, begin: int, end: int, settings: Settings
    ) -> tuple[Iterable[Outcome], PaneState]:
        keys: _Keys = work.special
        sessions = self._select(work.panes, np.arange(keys.sessions[begin], keys.sessions[end]))
        counts, new = np.diff(keys.sessions[begin : end + 1]), np.diff(keys.news[begin : end + 1])
        stored = np.diff(sessions.begins[keys.sessions[begin : end + 1] - keys.sessions[begin]])
        new_rows = keys.order[keys.news[begin] : keys.news[end]]
        begins, news, rows = join_ranges(sessions.rows, stored, new_rows, new)
        elements = Elements(rows, np.empty_like(rows), work.ts, work.delta_values)
        pane_begins = offsets(counts + new)
        places = ranges(pane_begins[:-1], counts)
        panes = _spread_panes(sessions.panes, places, int(pane_begins[-1]), self._nodes)
        firsts, stops = np.zeros((2, int(pane_begins[-1])), np.int64)
        shift = np.repeat(begins[:-1] - (np.cumsum(stored) - stored), counts)
        firsts[places] = sessions.begins[:-1] + shift
        stops[places] = sessions.begins[1:] + shift
        units = Units(pane_begins, counts, news, begins[1:].copy(), firsts, stops)
        done = merging.run(self._program, settings, panes, elements, units, keys.spans)
        before = PaneState(
            np.repeat(keys.codes[begin:end], counts + new),
            done.panes.start,
            panes,
            np.zeros(len(firsts) + 1, np.int64),
            np.empty(0, np.int64),
            (),
        )
        call = Call(self.keys, work.table, work.panes.partials, settings)
        emitted = self._emitted_windows(sessions)
        outcomes, live = self._results.make(backend, call, before, elements, done, emitted)
        none = FiredRows(self.schema.empty_table(), *[np.empty(0, np.int64)] * 2)
        return [*outcomes, Outcome(none, np.flatnonzero(done.late) - keys.base)], live

    def _emitted_windows(self, sessions: PaneState) -> Windows | None:
        """Return the windows with a row in the result table; None if not asked for."""
        if not (self._query.changes and self._query.grows):
            return None
        emitted = sessions.emitted or EmittedWindows.nothing(len(sessions))
        return repeat_codes(sessions.codes, emitted)


def list_as_elements(panes: PaneState, first: int) -> PaneState:
    """Return sessions with a list of one element each, which stands for their contents.

    Empty sessions have no element. The machine merges the lists as it does with rows. The number of
    an element is ``first``, the number of rows of the call, plus the index of its session.
    """
    holds = panes.panes.row_count > 0
    begins = offsets(holds.astype(np.int64))
    return replace(panes, begins=begins, rows=first + np.flatnonzero(holds))


def _spread_panes(existing: Panes, places: Ints, count: int, nodes: int) -> Panes:
    """Return ``count`` panes: the existing ones at ``places``; the others are free."""
    none = np.zeros(count, np.int64)
    panes = create_panes(none, none.copy(), nodes)
    panes.alive[:] = 0
    of_nodes = (places[:, None] * nodes + np.arange(nodes)).reshape(-1)
    for part, values in zip(panes, existing, strict=True):
        part[places if len(part) == count and len(values) == len(places) else of_nodes] = values
    return panes
