"""The over strategy on unbounded input: rows are buffered until the watermark passes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.partials import Partial
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.columns.keys import KeyEncoder, mask_of, present
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.partials import State
from gpu_windows.operators.columns.row_status import status_of_times
from gpu_windows.operators.counters import Rejected
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.over.admission import NewRows
from gpu_windows.operators.over.expiring_rows import UNTIL, codes_of
from gpu_windows.operators.over.framing import FramedRows, Framing
from gpu_windows.operators.over.key_state import KeyState
from gpu_windows.operators.over.operator import OverResults
from gpu_windows.operators.over.stored import StoredOver, retained_schema
from gpu_windows.operators.state.large_strings import take_rows
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.operators.state.pending_rows import NUMBER
from gpu_windows.planning.kinds.over import OverPlan
from gpu_windows.rules import ACCEPTED, LONG_MAX, LONG_MIN, add_saturating
from gpu_windows.vocabulary.frames import Frame

Ints = NDArray[np.int64]
#: Partials over the frames of some rows.
Found = dict[tuple[Frame, Partial], State]


@dataclass(frozen=True)
class _Due:
    """Rows that are due.

    Parameters
    ----------
    rows : pyarrow.Table
    codes : int64[n]
        Their keys.
    keys : int64[k]
        The same keys, each once, ascending.
    ahead : pyarrow.Table, optional
        Rows of these keys that are not due, but may be in frames of rows that are.
    of_ahead : int64[m]
        The keys of ``ahead``.
    """

    rows: pa.Table
    codes: Ints
    keys: Ints
    ahead: pa.Table | None
    of_ahead: Ints


class OverOperator(StatefulOperator[StoredOver]):
    """Aggregates over frames; a row is emitted when the watermark has passed its frames.

    Rows that are due together are emitted in order of time, and of arrival if times are equal.

    Parameters
    ----------
    plan : OverPlan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(self, plan: OverPlan, kernels: Kernels, *, trace: bool = False) -> None:
        # configuration
        self._plan, self._over, self._kernels = plan, plan.query.over, kernels
        self._names, self._time = plan.query.keys, plan.query.time
        self._results = OverResults(plan, trace=trace)
        in_time = plan.query.over.arguments_of(plan.query.over.in_time)
        self._retained_schema = retained_schema(plan, (*self._names, *in_time))
        # state
        self._keys = KeyEncoder([plan.query.schema.field(name).type for name in self._names])

    def _restore_state(self, log: StateLog) -> StoredOver:
        return StoredOver(self._plan, self._kernels, self._keys, log)

    @property
    def _state(self) -> StoredOver:
        if self._stored is None:
            self.restore(MemoryLog())
        return self._in_store

    # ---- interface of an operator

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Buffer rows until the watermark passes them."""
        state, query = self._state, self._plan.query
        times = to_numeric(batch.column(self._time))
        status = status_of_times(times, query.usable_ticks)
        codes = codes_of(self._keys, self._names, batch)
        new_rows = NewRows(batch.select(self._names), codes, times.values, state.watermark)
        until = state.admission.judge(new_rows, status)
        rejected = Rejected.of(status)
        rows = state.buffered.number(batch).append_column(UNTIL, pa.array(until))
        if len(rejected):
            rows = rows.filter(pa.array(status == ACCEPTED))
        state.buffered.append(rows)
        calls = self._kernels.take_counters()
        yield Emission.without_results(self._results.schema, batch, rejected, calls)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Emit the rows whose frames the watermark has passed."""
        state = self._state
        if watermark <= state.watermark:
            return
        before, state.watermark = state.watermark, watermark
        after = self._over.ticks_after
        until = watermark if watermark == LONG_MAX else add_saturating(watermark, -after)
        due = [*state.buffered.take_due(until)]
        if due:
            rows = pa.concat_tables(due, promote_options="default").combine_chunks()
            times, numbers = (rows.column(name).to_numpy() for name in (self._time, NUMBER))
            rows = take_rows(rows, np.lexsort((numbers, times)))
            results = self._make_results(rows, self._find_ahead(until, after), before)
            yield Emission.of_results(results, self._kernels.take_counters())
        state.expire()

    def _save(self, stored: StoredOver) -> None:
        stored.save()

    def _next_timers(self, stored: StoredOver) -> Timers:
        due = stored.next_due
        return (None if due == LONG_MAX else due), None

    def state_size(self) -> dict[str, int]:
        """Return the number of stored rows, clean-ups and keys."""
        return self._state.sizes()

    # ---- rows and their frames

    def _find_ahead(self, until: int, after: int) -> pa.Table | None:
        """Return the rows that are not due, but may be in frames of rows that are."""
        if after == 0 or until == LONG_MAX:
            return None
        found = self._state.buffered.between(until + 1, add_saturating(until, after))
        return None if found is None else found.sort_by(NUMBER)

    def _make_results(self, rows: pa.Table, ahead: pa.Table | None, before: int) -> pa.Table:
        """Return the results of rows that are due, and store the state that later frames need.

        ``before``: the previous watermark; rows that it expired are in no frame.
        """
        state, over = self._state, self._over
        codes = codes_of(self._keys, self._names, rows)
        touched = present(codes, self._keys.count)
        due = _Due(rows, codes, touched, *self._select_keys(ahead, touched))
        key_state = self._load_key_state(touched)
        states: Found = {}
        if over.in_time:
            states |= self._combine(state.in_time, state.emitted.find(touched, before), due)
        if over.in_rows:
            alone = replace(due, ahead=None)
            states |= self._combine(state.in_rows, (key_state.rows, key_state.of_rows), alone)
        totals = key_state.totals
        if over.unbounded_frames:
            found, totals = self._combine_unbounded(key_state, due)
            states |= found
        if state.has_key_state:
            state.key_states.put(self._update_key_state(key_state, due, totals))
        if over.in_time:
            needed = rows.column(UNTIL).to_numpy() > state.watermark
            if needed.any():
                retained = rows.filter(pa.array(needed)).select(self._retained_schema.names)
                state.emitted.buffer.append(retained.cast(self._retained_schema))
        return self._results.table(rows, states)

    def _select_keys(self, rows: pa.Table | None, some: Ints) -> tuple[pa.Table | None, Ints]:
        """Return the rows of some keys, and their keys."""
        if rows is None:
            return None, some[:0]
        codes = codes_of(self._keys, self._names, rows)
        is_one = mask_of(some, self._keys.count)[codes]
        return rows.filter(pa.array(is_one)), codes[is_one]

    def _load_key_state(self, touched: Ints) -> KeyState:
        key_states = self._state.key_states
        if self._state.has_key_state:
            key_states.load(touched)
        return key_states.select(touched)

    def _combine(self, framing: Framing, base: tuple[pa.Table, Ints] | None, due: _Due) -> Found:
        """Return the partials over the frames of due rows, among earlier rows and those ahead."""
        parts, of_parts = [], []
        if base is not None and len(base[1]):
            order = np.argsort(base[0].column(NUMBER).to_numpy())
            parts.append(self._select_needed(framing, base[0].take(pa.array(order))))
            of_parts.append(base[1][order])
        first = len(of_parts[0]) if of_parts else 0
        whole, codes = self._concat_ahead(framing, due, parts, of_parts)
        ts = whole.column(self._time).to_numpy()
        selected = None if len(ts) == len(due.rows) else np.arange(first, first + len(due.rows))
        return framing.combine(FramedRows(codes, ts, framing.lift(whole)), selected)

    def _concat_ahead(
        self, framing: Framing, due: _Due, parts: list[pa.Table], of_parts: list[Ints]
    ) -> tuple[pa.Table, Ints]:
        """Concatenate earlier rows, due rows and rows ahead; return them and their keys."""
        parts, of_parts = [*parts, self._select_needed(framing, due.rows)], [*of_parts, due.codes]
        if due.ahead is not None:
            parts, of_parts = (
                [*parts, self._select_needed(framing, due.ahead)],
                [*of_parts, due.of_ahead],
            )
        return pa.concat_tables(parts, promote_options="default"), np.concatenate(of_parts)

    def _select_needed(self, framing: Framing, rows: pa.Table) -> pa.Table:
        """Return the time column of rows, and the columns that some frames aggregate."""
        schema = self._plan.query.in_ticks((self._time, *framing.arguments))
        return rows.select(schema.names).cast(schema)

    def _combine_unbounded(
        self, key_state: KeyState, due: _Due
    ) -> tuple[Found, Mapping[Partial, State]]:
        """Return the partials over frames from the first row on, and the new totals of keys.

        The totals so far count as one row before all others.
        """
        framing = self._state.unbounded
        whole, codes = self._concat_ahead(framing, due, [], [])
        lifted = framing.lift(whole, as_one=False)
        begin, end = len(key_state), len(key_state) + len(due.rows)
        before_all = np.full(begin, LONG_MIN + 1)
        framed = FramedRows(
            np.concatenate([key_state.codes, codes]),
            np.concatenate([before_all, whole.column(self._time).to_numpy()]),
            {p: c.concat([key_state.totals[p], lifted[p]]) for p, c in framing.columns.items()},
        )
        selected = None if len(framed) == len(due.rows) else np.arange(begin, end)
        states = framing.combine(framed, selected)
        given = slice(0, end)
        so_far = {p: c.take(framed.states[p], np.arange(end)) for p, c in framing.columns.items()}
        _, totals = framing.totals(FramedRows(framed.codes[given], framed.ts[given], so_far))
        return states, totals

    def _update_key_state(
        self, key_state: KeyState, due: _Due, totals: Mapping[Partial, State]
    ) -> KeyState:
        """Return the state of keys after their due rows were emitted."""
        rows, codes = due.rows, due.codes
        last = np.full(self._keys.count, LONG_MIN)
        last[key_state.codes] = key_state.last
        np.maximum.at(last, codes, rows.column(self._time).to_numpy())
        last_rows, of_rows = key_state.rows, key_state.of_rows
        if self._over.rows_before:
            new = rows.select(last_rows.schema.names).cast(last_rows.schema)
            last_rows = pa.concat_tables([last_rows, new])
            of_rows = np.concatenate([of_rows, codes])
            last_rows, of_rows = self._select_last_rows(last_rows, of_rows)
        return KeyState(due.keys, last[due.keys], totals, last_rows, of_rows)

    def _select_last_rows(self, rows: pa.Table, codes: Ints) -> tuple[pa.Table, Ints]:
        """Return the last ``rows_before`` rows of every key, in order."""
        ts, numbers = (rows.column(name).to_numpy() for name in (self._time, NUMBER))
        order = np.lexsort((numbers, ts, codes))
        sorted_codes = codes[order]
        ends = np.searchsorted(sorted_codes, sorted_codes, "right")
        index = order[ends - np.arange(len(order)) <= self._over.rows_before]
        return rows.take(pa.array(index)), codes[index]
