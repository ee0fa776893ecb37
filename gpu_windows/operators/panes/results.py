"""Events of panes to results and to what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.built_in import Collect
from gpu_windows.functions.vectorised import BatchFunction
from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.machine import Run
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.partial_columns import partial_columns
from gpu_windows.operators.columns.partials import PartialColumn, PickedColumn, State
from gpu_windows.operators.columns.ranges import offsets, ranges
from gpu_windows.operators.panes.function_results import (
    called,
    collected,
    in_list_order,
    reduce_lists,
    result_columns,
    run_lists,
)
from gpu_windows.operators.panes.state import PaneState
from gpu_windows.operators.results import TRACE, Fired, result_table
from gpu_windows.planning.plan import ARRIVAL, WindowPlan
from gpu_windows.rules.window_operator.layout import (
    ELEMENT,
    EVENT_TIMER,
    PROCESSING_TIMER,
    REST,
    Elements,
    Events,
    Panes,
    Settings,
)

Ints = NDArray[np.int64]

#: Rows of lists that are taken at once, and about how many bytes.
PIECE_ELEMENTS, PIECE_BYTES = 1 << 22, 1 << 29

_CAUSES = np.array(["element", "event_time", "processing_time"])
assert (ELEMENT, EVENT_TIMER, PROCESSING_TIMER) == (0, 1, 2)


@dataclass(frozen=True)
class Outcome:
    """What some panes gave in a call.

    Parameters
    ----------
    results : pyarrow.Table
    when : int64[n]
        Row or time that made each of them fire.
    window : int64[n]
        What orders the windows that one row or time makes fire.
    late : int64[m]
        Rows that came too late for their session: their numbers among the new ones.
    """

    results: pa.Table
    when: Ints
    window: Ints
    late: Ints

    @classmethod
    def only_late(cls, schema: pa.Schema, late: Ints) -> Self:
        """Return no results, but rows that came too late."""
        none = np.empty(0, np.int64)
        return cls(schema.empty_table(), none, none, late)


@dataclass(frozen=True)
class _Step:
    """What was run: the events, and what they speak of."""

    backend: Backend
    keys: KeyEncoder
    table: pa.Table
    codes: Ints
    elements: Elements
    events: Events
    settings: Settings


class PaneResults:
    """Makes results of events.

    Parameters
    ----------
    plan : WindowPlan
    trace : bool
        Whether results carry `TRACE`.
    """

    def __init__(self, plan: WindowPlan, *, trace: bool) -> None:
        query = plan.query
        self._query = query
        self._trace = trace
        self._schema = plan.result_schema
        if trace:
            self._schema = pa.schema([*self._schema, *TRACE])
        # inside, the order of arrival is the order in which rows came
        aggregated = query.function.built_in
        self._columns = partial_columns(replace(plan, order=(ARRIVAL,))) if aggregated else []
        picks = any(isinstance(column, PickedColumn) for column in self._columns)
        self._read = [*query.function.read_columns, *([ARRIVAL] if picks else [])]
        self._in_pieces = isinstance(query.function, BatchFunction) and query.function.in_pieces
        #: Whether a firing takes all rows of its window.
        self.keeps_rows = query.keeps_rows or query.merges

    @property
    def schema(self) -> pa.Schema:
        """Schema of the results."""
        return self._schema

    @property
    def kept_columns(self) -> Sequence[PartialColumn]:
        """The partials that are kept for every window, where rows are not."""
        return [] if self.keeps_rows else self._columns

    def make(
        self, backend: Backend, keys: KeyEncoder, table: pa.Table, before: PaneState,
        elements: Elements, done: Run, settings: Settings,
    ) -> tuple[Iterable[Outcome], PaneState]:  # fmt: skip
        """Return the results of a call of a machine, and what is kept.

        The results of a function that gives them piece by piece are made when they are asked for.

        Parameters
        ----------
        backend : Backend
        keys : KeyEncoder
        table : pyarrow.Table
            The rows that elements name.
        before : PaneState
            The panes as they were.
        elements : Elements
        done : Run
        settings : Settings
        """
        events, after = done.events, done.panes
        lengths = np.diff(events.begin, append=len(events.taken))
        rows, at = elements.rows[events.taken], np.flatnonzero(events.cause != REST)
        step = _Step(backend, keys, table, before.codes[events.pane], elements, events, settings)
        if not self.keeps_rows:
            states, kept = self._of_partials(backend, table, before, after, events, rows, lengths)
            columns = result_columns(self._query, self._columns, states)
            return [self._outcome(step, at, columns)], kept
        kept = _keep_lists(before, after, events, rows, lengths)
        pieces = _pieces(at, lengths, table)
        outcomes = (each for piece in pieces for each in self._of_lists(step, rows, lengths, piece))
        return outcomes if self._in_pieces else list(outcomes), kept

    def _of_lists(self, step: _Step, rows: Ints, lengths: Ints, at: Ints) -> Iterator[Outcome]:
        """Yield the results of the events ``at``, which take whole lists."""
        query, ts = self._query, step.elements.ts
        lists = self._lists(step.table, rows, lengths, at, ts)
        if isinstance(query.function, BatchFunction):
            windows = [*step.keys.decode(step.codes[at]), *self._bounds(step.events, at)]
            for columns, places in called(query, windows, lists, lengths[at]):
                yield self._outcome(step, at[places], columns)
        elif isinstance(query.function, Collect):
            yield self._outcome(step, at, collected(query, lists, lengths[at]))
        else:
            states = reduce_lists(step.backend, self._columns, lists, lengths[at])
            whole = lists, lengths[at]
            yield self._outcome(step, at, result_columns(query, self._columns, states, whole))

    def _outcome(self, step: _Step, at: Ints, columns: list[Any]) -> Outcome:
        """Return the results of the events ``at``, one or none or many of each."""
        events = step.events
        fired = self._fired(events, at, _now(step.settings))
        keys = step.keys.decode(step.codes[at])
        results = result_table(self._schema, keys, len(at), fired, columns)
        element = events.element[at]
        when, window = events.time[at], events.last[at]
        by_row = element >= 0
        when[by_row] = step.elements.rows[element[by_row]]
        window[by_row] = ~window[by_row]  # a row's windows fire from the latest to the earliest
        return Outcome(results, when, window, np.empty(0, np.int64))

    def _lists(self, table: pa.Table, rows: Ints, lengths: Ints, at: Ints, ts: Ints) -> pa.Table:
        """Return the rows of the events ``at``, one list after the other."""
        begins = np.cumsum(lengths) - lengths
        rows, lengths = rows[ranges(begins[at], lengths[at])], lengths[at]
        if self._query.rows_in_time_order:
            firing = np.repeat(np.arange(len(lengths)), lengths)
            rows = rows[np.lexsort((ts[rows], firing))]
        return in_list_order(table.select(self._read).take(pa.array(rows)))

    def _bounds(self, events: Events, at: Ints) -> tuple[Any, Any]:
        """Return starts and ends of the windows of the events ``at``."""
        if self._query.assigner.has_bounds:
            return events.start[at], events.last[at] + 1
        return None, None

    def _of_partials(
        self, backend: Backend, table: pa.Table, before: PaneState, after: Panes,
        events: Events, rows: Ints, lengths: Ints,
    ) -> tuple[tuple[State, ...], PaneState]:  # fmt: skip
        """Return the partials of every firing, and what is kept.

        An entry is what a pane held before the call, or what an event took. The entries of a pane
        from one with which its contents began anew to the next such one are a run.
        """
        taken = table.select(self._read).take(pa.array(rows))
        new = reduce_lists(backend, self._columns, taken, lengths)
        count, total = len(before), len(before) + len(lengths)
        pane = np.concatenate([np.arange(count), events.pane])
        order = np.argsort(pane, kind="stable")
        fresh = np.concatenate([np.ones(count, np.bool_), events.fresh != 0])[order]
        begins = np.flatnonzero(fresh)
        pairs = zip(self._columns, before.partials, new, strict=True)
        states = [c.take(c.concat([old, each]), order) for c, old, each in pairs]
        states = list(run_lists(backend, self._columns, states, begins))
        place = np.empty(total, np.int64)
        place[order] = np.arange(total)
        lasts = np.searchsorted(pane[order], np.arange(count), side="right") - 1
        fired = place[count:][events.cause != REST]
        alive = np.flatnonzero(after.alive)
        kept = PaneState(
            before.codes,
            before.numbers,
            after,
            np.zeros(count + 1, np.int64),
            np.empty(0, np.int64),
            self._emptied(states, np.where(after.held > 0, lasts, total)),
        )
        found = tuple(c.take(s, fired) for c, s in zip(self._columns, states, strict=True))
        return found, kept.take(alive, self._columns)

    def _emptied(self, states: Sequence[State], entries: Ints) -> tuple[State, ...]:
        """Return some entries; the one after the last is that of nothing."""
        pairs = zip(self._columns, states, strict=True)
        return tuple(c.take(c.concat([state, c.nothing()]), entries) for c, state in pairs)

    def _fired(self, events: Events, at: Ints, now: int) -> Fired:
        """Return what is said of every firing."""
        fired = Fired(*self._bounds(events, at), 0, "", "", None)
        if not (self._trace or self._query.firing_columns):
            return fired
        cause, time, last = events.cause[at], events.time[at], events.last[at]
        by_row = cause == ELEMENT
        late = (now >= last) & (by_row | (time > last))
        timing = np.where(late, "late", np.where(~by_row & (time == last), "on_time", "early"))
        when = pa.array(time, mask=by_row)
        number, causes = events.fired[at], _CAUSES[cause]
        return replace(fired, number=number, timing=timing, cause=causes, time=when)


def _pieces(at: Ints, lengths: Ints, table: pa.Table) -> Iterator[Ints]:
    """Cut events into pieces whose lists can be taken at once: by rows, and by their bytes."""
    bytes_a_row = max(table.nbytes // max(len(table), 1), 1)
    most = min(PIECE_ELEMENTS, max(PIECE_BYTES // bytes_a_row, 1))
    ends = np.cumsum(lengths[at])
    begin = 0
    while begin < len(at):
        before = ends[begin - 1] if begin else 0
        end = max(int(np.searchsorted(ends, before + most, side="right")), begin + 1)
        yield at[begin:end]
        begin = end


def _now(settings: Settings) -> int:
    """Return the time by which a firing is late: of the windows' own time, after the call."""
    if settings.advance == (EVENT_TIMER if settings.is_event_time else PROCESSING_TIMER):
        return int(settings.until)
    return int(settings.watermark if settings.is_event_time else settings.processing_time)


def _keep_lists(
    before: PaneState, after: Panes, events: Events, rows: Ints, lengths: Ints
) -> PaneState:
    """Return the panes that are still there, with the rows that were handed over."""
    rest = events.cause == REST
    of_pane = np.zeros(len(before), np.int64)
    of_pane[events.pane[rest]] = lengths[rest]
    whole = PaneState(
        before.codes, before.numbers, after, offsets(of_pane), rows[np.repeat(rest, lengths)], ()
    )
    return whole.take(np.flatnonzero(after.alive), ())
