"""Results and remaining state, made from the events of panes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.vector_results import Piece
from gpu_windows.functions.vectorised import BatchFunction
from gpu_windows.functions.window import Collect
from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.cpu.machine import Run
from gpu_windows.operators.batch_functions import evaluator_of
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.partial_columns import partial_columns
from gpu_windows.operators.columns.partials import PartialColumn, State, entries_within
from gpu_windows.operators.columns.picked_rows import PickedColumn
from gpu_windows.operators.columns.ranges import ranges, split
from gpu_windows.operators.columns.reducing import reduce_lists, reduce_states
from gpu_windows.operators.panes.changes import StepChanges, Windows
from gpu_windows.operators.panes.function_results import (
    call_function,
    collect_lists,
    renumber_arrival,
    result_columns,
    run_lists,
)
from gpu_windows.operators.panes.outcome import FiredRows, Outcome
from gpu_windows.operators.panes.state import PaneState, keep_lists
from gpu_windows.operators.results import TRACE, Fired, result_table
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.own_columns import DELETE
from gpu_windows.planning.plan import ARRIVAL
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

#: Maximum number of list rows that are processed at once, and about how many bytes.
PIECE_ELEMENTS, PIECE_BYTES = 1 << 22, 1 << 29

_CAUSES = np.array(["element", "event_time", "processing_time"])
assert (ELEMENT, EVENT_TIMER, PROCESSING_TIMER) == (0, 1, 2)


@dataclass(frozen=True)
class Call:
    """Inputs that all steps of a call of a machine share.

    Parameters
    ----------
    keys : KeyEncoder
    table : pyarrow.Table
        The rows that elements refer to.
    partials : tuple of State
        Earlier partials of sessions; elements refer to them by the numbers after those of rows.
    settings : Settings
    """

    keys: KeyEncoder
    table: pa.Table
    partials: tuple[State, ...]
    settings: Settings


@dataclass(frozen=True)
class _Step:
    """Events of one step, and the rows that they refer to.

    Parameters
    ----------
    rows : int64[t]
        The rows of all events, one event after the other.
    lengths : int64[e]
        Number of rows of every event.
    changes : StepChanges, optional
        Changes of a result table; None if not asked for, or if windows keep their bounds.
    """

    backend: Backend
    call: Call
    codes: Ints
    elements: Elements
    events: Events
    rows: Ints
    lengths: Ints
    changes: StepChanges | None

    def take_rows(self, at: Ints) -> tuple[Ints, Ints]:
        """Return the rows of some events, and the number of each."""
        begins, lengths = np.cumsum(self.lengths) - self.lengths, self.lengths[at]
        return self.rows[ranges(begins[at], lengths)], lengths


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
        #: Schema of the results.
        self.schema = pa.schema([*plan.result_schema, *(TRACE if trace else ())])
        # in here, the order of arrival is the order in which rows came
        aggregated = query.function.built_in
        self._columns = partial_columns(replace(plan, order=(ARRIVAL,))) if aggregated else []
        picks = any(isinstance(column, PickedColumn) for column in self._columns)
        self._read = [*query.function.read_columns, *([ARRIVAL] if picks else [])]
        function = query.function if isinstance(query.function, BatchFunction) else None
        self._in_pieces = function is not None and function.in_pieces
        self._evaluator = None if function is None else evaluator_of(function)
        #: Whether windows keep rows; else partials.
        self.keeps_rows = query.why_rows is not None
        #: The partials of every window; empty if windows retain rows.
        self.stored_columns: Sequence[PartialColumn] = [] if self.keeps_rows else self._columns

    def make(
        self, backend: Backend, call: Call, before: PaneState, elements: Elements, done: Run,
        emitted: Windows | None = None,
    ) -> tuple[Iterable[Outcome], PaneState]:  # fmt: skip
        """Return the results of a call of a machine, and the panes that remain.

        The results of a function that returns them in pieces are computed lazily.

        Parameters
        ----------
        backend : Backend
        call : Call
        before : PaneState
            The panes before the call.
        elements : Elements
        done : Run
        emitted : Windows, optional
            Windows with a row in the result table, of sessions that emit changes.
        """
        events = done.events
        rows = elements.rows[events.elements]
        lengths = np.diff(events.begin, append=len(events.elements))
        codes = before.codes[events.pane]
        changes = None if emitted is None else StepChanges.of(emitted, codes, events)
        step = _Step(backend, call, codes, elements, events, rows, lengths, changes)
        outcomes, live = self._make_outcomes(step, before, done.panes)
        return outcomes, live if changes is None else changes.keep(live)

    def _make_outcomes(
        self, step: _Step, before: PaneState, after: Panes
    ) -> tuple[Iterable[Outcome], PaneState]:
        """Return the results, and the panes that remain, without their emitted windows."""
        events, lengths = step.events, step.lengths
        at = np.flatnonzero(events.cause != REST)
        if not (self.keeps_rows or self._query.merges):
            states, live = self._fold_partials(step, before, after)
            return [self._make_outcome(step, at, self._result_columns(states))], live
        table, max_count = step.call.table, entries_within(self.stored_columns, PIECE_BYTES)
        bytes_a_row = max(table.nbytes // max(len(table), 1), 1)
        limit = min(PIECE_ELEMENTS, max(PIECE_BYTES // bytes_a_row, 1))
        pieces = (at[slice(*part)] for part in split(lengths[at], limit, max_count))
        if not self.keeps_rows:
            outcomes = (
                self._make_outcome(
                    step, piece, self._result_columns(self._fold_merged(step, piece))
                )
                for piece in pieces
            )
            return list(outcomes), self._keep_merged(step, before, after)
        live = keep_lists(before, after, events, step.rows, lengths)
        outcomes = (each for piece in pieces for each in self._evaluate_lists(step, piece))
        return outcomes if self._in_pieces else list(outcomes), live

    def _result_columns(self, states: Sequence[State]) -> list[Any]:
        return result_columns(self._query, self._columns, states)

    def _evaluate_lists(self, step: _Step, at: Ints) -> Iterator[Outcome]:
        """Yield the results of the events ``at``, which need whole lists."""
        query = self._query
        lists, lengths = self._take_lists(step, at)
        if self._evaluator is not None:
            windows = [*step.call.keys.decode(step.codes[at]), *self._bounds(step.events, at)]
            for piece in call_function(query, self._evaluator, windows, lists, lengths):
                columns = piece.rows.combine_chunks().columns
                outcome = self._make_outcome(step, at[piece.places], columns)
                yield replace(
                    outcome,
                    sides=self._make_side_outputs(step, at, piece),
                    counts=Counter(piece.counts),
                )
        elif isinstance(query.function, Collect):
            yield self._make_outcome(step, at, collect_lists(query, lists, lengths))
        else:
            states = reduce_lists(step.backend, self._columns, lists, lengths)
            whole = lists, lengths
            yield self._make_outcome(step, at, result_columns(query, self._columns, states, whole))

    def _make_outcome(self, step: _Step, at: Ints, columns: list[Any]) -> Outcome:
        """Return the results of the events ``at``; each has any number of them."""
        fired = self._describe_firings(step.events, at, _now(step.call.settings))
        keys = step.call.keys.decode(step.codes[at])
        none = np.empty(0, np.int64)
        if step.changes is None:
            results = result_table(self.schema, keys, len(at), fired, columns)
            return Outcome(_to_fired_rows(step, at, results), none)
        fired = replace(fired, change=step.changes.words(at))
        results = result_table(self.schema, keys, len(at), fired, columns)
        gone, by = self._make_deletions(step, step.changes, at)
        order = np.argsort(np.concatenate([by, at]), kind="stable")  # deletions come first
        rows = pa.concat_tables([gone, results]).take(pa.array(order))
        return Outcome(_to_fired_rows(step, np.concatenate([by, at])[order], rows), none)

    def _make_deletions(self, step: _Step, changes: StepChanges, at: Ints) -> tuple[pa.Table, Ints]:
        """Return a deletion for each row that the events ``at`` remove, and its event."""
        windows, by = changes.find_deleted(at)
        fired = replace(
            self._describe_firings(step.events, by, _now(step.call.settings)),
            start=windows.start,
            end=windows.last + 1,
            change=DELETE,
        )
        fields = self._query.function.output_fields(self._query.schema)
        columns = [pa.nulls(len(by), field.type) for field in fields]
        keys = step.call.keys.decode(windows.codes)
        return result_table(self.schema, keys, len(by), fired, columns), by

    def _make_side_outputs(self, step: _Step, at: Ints, piece: Piece) -> dict[str, FiredRows]:
        """Return the side outputs of a function for the events ``at``."""
        found = {}
        for tag, (rows, places) in piece.sides.items():
            keys = step.call.keys.decode(step.codes[at[places]])
            schema = self._query.side_outputs[tag]
            table = pa.Table.from_arrays([*keys, *rows.columns], schema=schema)
            found[tag] = _to_fired_rows(step, at[places], table)
        return found

    def _take_lists(self, step: _Step, at: Ints) -> tuple[pa.Table, Ints]:
        """Return the rows of the events ``at``, one list after the other, and their lengths."""
        rows, lengths = step.take_rows(at)
        if self._query.rows_in_time_order:
            firing = np.repeat(np.arange(len(lengths)), lengths)
            rows = rows[np.lexsort((step.elements.ts[rows], firing))]
        return renumber_arrival(self._take_rows(step, rows)), lengths

    def _take_rows(self, step: _Step, rows: Ints) -> pa.Table:
        return step.call.table.select(self._read).take(pa.array(rows))

    def _bounds(self, events: Events, at: Ints) -> tuple[Any, Any]:
        """Return starts and ends of the windows of the events ``at``."""
        if self._query.assigner.has_bounds:
            return events.start[at], events.last[at] + 1
        return None, None

    def _fold_partials(
        self, step: _Step, before: PaneState, after: Panes
    ) -> tuple[tuple[State, ...], PaneState]:
        """Return the partials of every firing, and the panes that remain.

        An entry is the partial of a pane before the call, or of the rows of an event. A run is the
        entries of a pane from one that starts with empty contents to the next such one.
        """
        events = step.events
        new = reduce_lists(
            step.backend, self._columns, self._take_rows(step, step.rows), step.lengths
        )
        count, total = len(before), len(before) + len(step.lengths)
        pane = np.concatenate([np.arange(count), events.pane])
        order = np.argsort(pane, kind="stable")
        fresh = np.concatenate([np.ones(count, np.bool_), events.fresh != 0])[order]
        begins = np.flatnonzero(fresh)
        pairs = zip(self._columns, before.partials, new, strict=True)
        states = [c.take(c.concat([old, each]), order) for c, old, each in pairs]
        states = list(run_lists(self._columns, states, begins))
        place = np.empty(total, np.int64)
        place[order] = np.arange(total)
        lasts = np.searchsorted(pane[order], np.arange(count), side="right") - 1
        fired = place[count:][events.cause != REST]
        found = tuple(c.take(s, fired) for c, s in zip(self._columns, states, strict=True))
        return found, self._keep(before, after, states, np.where(after.row_count > 0, lasts, total))

    def _fold_merged(self, step: _Step, at: Ints) -> tuple[State, ...]:
        """Return the partials of the events ``at``: earlier ones of sessions combined with rows."""
        numbers, lengths = step.take_rows(at)
        event, count = np.repeat(np.arange(len(at)), lengths), len(step.call.table)
        is_row = numbers < count
        rows = np.bincount(event[is_row], minlength=len(at))
        new_rows = self._take_rows(step, numbers[is_row])
        new = reduce_lists(step.backend, self._columns, new_rows, rows)
        if is_row.all():
            return new
        stored, of = numbers[~is_row] - count, np.append(event[~is_row], np.arange(len(at)))
        order = np.argsort(of, kind="stable")
        entries = [
            column.take(column.concat([column.take(states, stored), each]), order)
            for column, states, each in zip(self._columns, step.call.partials, new, strict=True)
        ]
        return reduce_states(step.backend, self._columns, entries, lengths - rows + 1)

    def _keep_merged(self, step: _Step, before: PaneState, after: Panes) -> PaneState:
        """Return the sessions that are still alive, each with its partials."""
        rest = np.flatnonzero(step.events.cause == REST)
        entries = np.full(len(before), len(rest))
        entries[step.events.pane[rest]] = np.arange(len(rest))
        return self._keep(before, after, self._fold_merged(step, rest), entries)

    def _keep(
        self, before: PaneState, after: Panes, states: Sequence[State], entries: Ints
    ) -> PaneState:
        """Return the panes that are still alive, with their partials from ``states[entries]``."""
        none = np.empty(0, np.int64)
        begins = np.zeros(len(before) + 1, np.int64)
        partials = self._take_entries(states, entries)
        state = PaneState(before.codes, before.numbers, after, begins, none, partials)
        return state.take(np.flatnonzero(after.alive), self._columns)

    def _take_entries(self, states: Sequence[State], entries: Ints) -> tuple[State, ...]:
        """Return some entries; the index after the last stands for an empty partial."""
        pairs = zip(self._columns, states, strict=True)
        return tuple(c.take(c.concat([state, c.nothing()]), entries) for c, state in pairs)

    def _describe_firings(self, events: Events, at: Ints, now: int) -> Fired:
        """Return the metadata of every firing."""
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


def _to_fired_rows(step: _Step, at: Ints, rows: pa.Table) -> FiredRows:
    """Return rows of the events ``at`` with their sort keys."""
    element = step.events.element[at]
    when, window = step.events.time[at], step.events.last[at]
    by_row = element >= 0
    when[by_row] = step.elements.rows[element[by_row]]
    window[by_row] = ~window[by_row]  # a row's windows fire from the latest to the earliest
    return FiredRows(rows, when, window)


def _now(settings: Settings) -> int:
    """Return the time after the call, in the time domain of the windows, that decides lateness."""
    if settings.advance == (EVENT_TIMER if settings.is_event_time else PROCESSING_TIMER):
        return int(settings.until)
    return int(settings.watermark if settings.is_event_time else settings.processing_time)
