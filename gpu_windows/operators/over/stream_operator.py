"""The over strategy on input without an end: rows wait for the watermark, others are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.partials import Partial
from gpu_windows.frames import Frame
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.columns.keys import KeyEncoder, present
from gpu_windows.operators.columns.partials import State
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.over.admission import Arrived
from gpu_windows.operators.over.framing import FramedRows, Framing
from gpu_windows.operators.over.key_memory import Known
from gpu_windows.operators.over.operator import OverResults, judged
from gpu_windows.operators.over.stored import StoredOver, kept_schema
from gpu_windows.operators.over.stored_rows import UNTIL, among, codes_of
from gpu_windows.operators.rejected import Rejected, given_back
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.operators.state.pending_rows import NUMBER
from gpu_windows.planning.plan import OverPlan
from gpu_windows.rules import ACCEPTED, LONG_MAX, LONG_MIN, shifted

Ints = NDArray[np.int64]
#: What partials over frames are of some rows.
Found = dict[tuple[Frame, Partial], State]


@dataclass(frozen=True)
class _Due:
    """Rows that are given.

    Parameters
    ----------
    rows : pyarrow.Table
    codes : int64[n]
        Their keys.
    keys : int64[k]
        These, each once, ascending.
    ahead : pyarrow.Table, optional
        Rows of these keys that are not due and may be in frames of those that are.
    of_ahead : int64[m]
        The keys of these.
    """

    rows: pa.Table
    codes: Ints
    keys: Ints
    ahead: pa.Table | None
    of_ahead: Ints


class OverOperator(StatefulOperator[StoredOver]):
    """Aggregates over frames; a row is given when the watermark has passed them.

    Parameters
    ----------
    plan : OverPlan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether results come in order of time.
    """

    def __init__(
        self, plan: OverPlan, kernels: Kernels, *, trace: bool = False, in_order: bool = True
    ) -> None:
        # configuration
        self._plan, self._over, self._kernels = plan, plan.over, kernels
        self._in_order = in_order
        self._names, self._time = plan.query.keys, plan.query.time
        self._results = OverResults(plan, trace=trace)
        in_time = plan.over.arguments_of(plan.over.in_time)
        self._kept = kept_schema(plan, (*self._names, *in_time))
        # state
        self._keys = KeyEncoder([plan.query.schema.field(name).type for name in self._names])

    def _restore_state(self, log: StateLog) -> StoredOver:
        return StoredOver(self._plan, self._kernels, self._keys, log)

    @property
    def _state(self) -> StoredOver:
        if self._stored is None:
            self.restore(MemoryLog())
        return self._in_store

    # ---- the face of an operator

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows, which wait for the watermark."""
        state, query = self._state, self._plan.query
        ts, status = judged(batch, self._time, query.usable_ticks)
        codes = codes_of(self._keys, self._names, batch)
        arrived = Arrived(batch.select(self._names), codes, ts, state.watermark)
        until = state.admission.judge(arrived, status)
        rejected = Rejected.of(status)
        rows = state.waiting.number(batch).append_column(UNTIL, pa.array(until))
        if len(rejected):
            rows = rows.filter(pa.array(status == ACCEPTED))
        state.waiting.append(rows)
        counters = rejected.counts() + self._kernels.counted()
        yield Emission(self._results.schema.empty_table(), given_back(batch, rejected), counters)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Give the rows whose frames the watermark has passed."""
        state = self._state
        if watermark <= state.watermark:
            return
        before, state.watermark = state.watermark, watermark
        after = self._over.ticks_after
        until = watermark if watermark == LONG_MAX else shifted(watermark, -after)
        due = [*state.waiting.take_due(until)]
        if due:
            rows = pa.concat_tables(due, promote_options="default").sort_by(NUMBER)
            rows = rows.combine_chunks()
            results = self._given(rows, self._ahead(until, after), before)
            counters = Counters(fired=len(results)) + self._kernels.counted()
            yield Emission(results, pa.table({}), counters)
        state.forget()

    def _save(self, stored: StoredOver) -> None:
        stored.save()

    def _next_timers(self, stored: StoredOver) -> Timers:
        due = stored.next_due
        return (None if due == LONG_MAX else due), None

    def state_size(self) -> dict[str, int]:
        """Return how many rows, clean-ups and keys are kept."""
        return self._state.sizes()

    # ---- rows and their frames

    def _ahead(self, until: int, after: int) -> pa.Table | None:
        """Return the rows that are not due and may be in frames of those that are."""
        if after == 0 or until == LONG_MAX:
            return None
        found = self._state.waiting.between(until + 1, shifted(until, after))
        return None if found is None else found.sort_by(NUMBER)

    def _given(self, rows: pa.Table, ahead: pa.Table | None, before: int) -> pa.Table:
        """Return the results of rows that are due, and keep what frames to come need.

        ``before``: the watermark until now; what that has ended is in no frame.
        """
        if self._in_order:
            times = rows.column(self._time).to_numpy()
            rows = rows.take(pa.array(np.argsort(times, kind="stable")))
        state, over = self._state, self._over
        codes = codes_of(self._keys, self._names, rows)
        touched = present(codes, self._keys.count)
        due = _Due(rows, codes, touched, *self._of_keys(ahead, touched))
        known = self._recalled(touched)
        states: Found = {}
        if over.in_time:
            states |= self._combined(state.in_time, state.given.find(touched, before), due)
        if over.in_rows:
            alone = replace(due, ahead=None)
            states |= self._combined(state.in_rows, (known.rows, known.of_rows), alone)
        totals = known.totals
        if over.unbounded:
            found, totals = self._from_the_first(known, due)
            states |= found
        if state.knows_keys:
            state.memory.put(self._remembered(known, due, totals))
        if over.in_time:
            needed = rows.column(UNTIL).to_numpy() > state.watermark
            if needed.any():
                kept = rows.filter(pa.array(needed)).select(self._kept.names)
                state.given.buffer.append(kept.cast(self._kept))
        return self._results.table(rows, states)

    def _of_keys(self, rows: pa.Table | None, some: Ints) -> tuple[pa.Table | None, Ints]:
        """Return the rows that are of some keys, and their keys."""
        if rows is None:
            return None, some[:0]
        codes = codes_of(self._keys, self._names, rows)
        mine = among(codes, some, self._keys.count)
        return rows.filter(pa.array(mine)), codes[mine]

    def _recalled(self, touched: Ints) -> Known:
        memory = self._state.memory
        if self._state.knows_keys:
            memory.load(touched)
        return memory.of(touched)

    def _combined(self, framing: Framing, base: tuple[pa.Table, Ints] | None, due: _Due) -> Found:
        """Return the partials over the frames of rows, among others that are there besides."""
        parts, of_parts = [], []
        if base is not None and len(base[1]):
            order = np.argsort(base[0].column(NUMBER).to_numpy())
            parts.append(self._needed(framing, base[0].take(pa.array(order))))
            of_parts.append(base[1][order])
        first = len(of_parts[0]) if of_parts else 0
        whole, codes = self._with_ahead(framing, due, parts, of_parts)
        ts = whole.column(self._time).to_numpy()
        wanted = None if len(ts) == len(due.rows) else np.arange(first, first + len(due.rows))
        return framing.combined(FramedRows(codes, ts, framing.lift(whole)), wanted)

    def _with_ahead(
        self, framing: Framing, due: _Due, parts: list[pa.Table], of_parts: list[Ints]
    ) -> tuple[pa.Table, Ints]:
        """Return what is there before, the rows that are due and those ahead, and their keys."""
        parts, of_parts = [*parts, self._needed(framing, due.rows)], [*of_parts, due.codes]
        if due.ahead is not None:
            parts, of_parts = [*parts, self._needed(framing, due.ahead)], [*of_parts, due.of_ahead]
        return pa.concat_tables(parts, promote_options="default"), np.concatenate(of_parts)

    def _needed(self, framing: Framing, rows: pa.Table) -> pa.Table:
        """Return the times of rows, and what aggregates over some frames read of them."""
        schema = self._plan.query.in_ticks((self._time, *framing.arguments))
        return rows.select(schema.names).cast(schema)

    def _from_the_first(self, known: Known, due: _Due) -> tuple[Found, Mapping[Partial, State]]:
        """Return the partials over frames from the first row on, and what keys come to now.

        All rows that were given are as one before the others.
        """
        framing = self._state.unbounded
        whole, codes = self._with_ahead(framing, due, [], [])
        lifted = framing.lift(whole, as_one=False)
        begin, end = len(known), len(known) + len(due.rows)
        before_all = np.full(begin, LONG_MIN + 1)
        framed = FramedRows(
            np.concatenate([known.codes, codes]),
            np.concatenate([before_all, whole.column(self._time).to_numpy()]),
            {p: c.concat([known.totals[p], lifted[p]]) for p, c in framing.columns.items()},
        )
        wanted = None if len(framed) == len(due.rows) else np.arange(begin, end)
        states = framing.combined(framed, wanted)
        given = slice(0, end)
        so_far = {p: c.take(framed.states[p], np.arange(end)) for p, c in framing.columns.items()}
        _, totals = framing.totals(FramedRows(framed.codes[given], framed.ts[given], so_far))
        return states, totals

    def _remembered(self, known: Known, due: _Due, totals: Mapping[Partial, State]) -> Known:
        """Return what is known of keys after rows of them were given."""
        rows, codes = due.rows, due.codes
        last = np.full(self._keys.count, LONG_MIN)
        last[known.codes] = known.last
        np.maximum.at(last, codes, rows.column(self._time).to_numpy())
        last_rows, of_rows = known.rows, known.of_rows
        if self._over.rows_before:
            mine = rows.select(last_rows.schema.names).cast(last_rows.schema)
            last_rows = pa.concat_tables([last_rows, mine])
            of_rows = np.concatenate([of_rows, codes])
            last_rows, of_rows = self._last_rows(last_rows, of_rows)
        return Known(due.keys, last[due.keys], totals, last_rows, of_rows)

    def _last_rows(self, rows: pa.Table, codes: Ints) -> tuple[pa.Table, Ints]:
        """Return the last rows of every key, as many as frames reach back, in order."""
        ts, numbers = (rows.column(name).to_numpy() for name in (self._time, NUMBER))
        order = np.lexsort((numbers, ts, codes))
        sorted_codes = codes[order]
        ends = np.searchsorted(sorted_codes, sorted_codes, "right")
        kept = order[ends - np.arange(len(order)) <= self._over.rows_before]
        return rows.take(pa.array(kept)), codes[kept]
