"""Patterns in the rows of keys: rows are buffered until the watermark, then run by an automaton."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.errors import ExpressionError, SkipError
from gpu_windows.kernels.backend import select
from gpu_windows.kernels.cpu import matching
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.columns.keys import KeyEncoder, present
from gpu_windows.operators.columns.numeric import sortable, to_numeric
from gpu_windows.operators.columns.ranges import offsets, ranges
from gpu_windows.operators.columns.row_status import status_of_times
from gpu_windows.operators.counters import Counters, Rejected, rejected_rows
from gpu_windows.operators.matching.arrays import automaton_of, program_of, rows_of, settings_of
from gpu_windows.operators.matching.match_state import MatchState, read_remaining
from gpu_windows.operators.matching.results import Matches, MatchResults, SortedRows
from gpu_windows.operators.matching.stored import StoredMatches, rows_schema
from gpu_windows.operators.state.large_strings import take_rows
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.operators.state.pending_rows import NUMBER
from gpu_windows.planning.kinds.match import MatchPlan
from gpu_windows.rules import ACCEPTED, LATE, LONG_MAX
from gpu_windows.rules.pattern_matching import layout
from gpu_windows.rules.pattern_matching.layout import Found

Ints = NDArray[np.int64]


class MatchOperator(StatefulOperator[StoredMatches]):
    """Matches of a pattern; a match is emitted when the watermark has passed its rows.

    If matches that begin before it are still open, it is pending until they end.

    Parameters
    ----------
    plan : MatchPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether results come in the order of the rows that made them complete.
    compiled : bool
        Whether the automaton is a kernel; otherwise it runs in Python, as the reference.

    Notes
    -----
    Source: org.apache.flink.cep.operator.CepOperator.
    """

    def __init__(
        self,
        plan: MatchPlan,
        *,
        trace: bool = False,
        in_order: bool = True,
        compiled: bool = True,
    ) -> None:
        # configuration
        self._plan, self._match, self._in_order = plan, plan.query.match, in_order
        self._compiled = compiled
        self._names, self._time = plan.query.keys, plan.query.time
        self._row_schema = rows_schema(plan)
        self._automaton = automaton_of(self._match)
        self._program = program_of(self._match.conditions)
        self._results = MatchResults(plan, trace=trace)
        # state
        self._keys = KeyEncoder([plan.query.schema.field(name).type for name in self._names])

    def _restore_state(self, log: StateLog) -> StoredMatches:
        settings = settings_of(self._match, LONG_MAX)
        return StoredMatches(self._plan, settings, self._keys, log)

    @property
    def _state(self) -> StoredMatches:
        if self._stored is None:
            self.restore(MemoryLog())
        return self._in_store

    # ---- interface of an operator

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Buffer rows until the watermark passes them."""
        state = self._state
        times = to_numeric(batch.column(self._time))
        status = status_of_times(times, self._plan.query.usable_ticks)
        status[(status == ACCEPTED) & (times.values <= state.watermark)] = LATE
        rejected = Rejected.of(status)
        then = (name for name, _ in self._match.then)
        names = dict.fromkeys((*self._names, *self._row_schema.names, *then))
        rows = state.buffered.number(batch.select([*names]))
        if len(rejected):
            rows = rows.filter(pa.array(status == ACCEPTED))
        state.buffered.append(rows)
        yield Emission(self._results.nothing, rejected_rows(batch, rejected), rejected.counts())

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Run the rows that the watermark has reached; emit complete matches."""
        state = self._state
        if watermark <= state.watermark:
            return
        due = self._take_due(watermark)
        state.watermark = watermark
        codes = self._keys.encode([due.column(name) for name in self._names])
        touched = present(codes, self._keys.count)
        state.load(touched, watermark)
        match_state, state.match_state = state.match_state.split(state.are_due(touched, watermark))
        if len(due) or len(match_state):
            matches = self._run_automaton(match_state, due, codes, watermark)
            if len(matches):
                results = self._results.table(matches, self._keys, in_order=self._in_order)
                yield Emission(results, pa.table({}), Counters(fired=len(results), cpu_batches=1))
        if watermark == LONG_MAX:
            state.clear()

    def _take_due(self, watermark: int) -> pa.Table:
        """Remove the rows up to a watermark from the buffer; return them in order of arrival."""
        parts = [*self._state.buffered.take_due(watermark)]
        if not parts:
            return self._nothing_due
        due = pa.concat_tables(parts, promote_options="default").combine_chunks()
        numbers = due.column(NUMBER).to_numpy()
        if self._match.then:
            ranks = [_ranks(due.column(name), down=down) for name, down in self._match.then]
            return take_rows(due, np.lexsort((numbers, *reversed(ranks))))
        if len(parts) > 1 and (np.diff(numbers) < 0).any():
            due = take_rows(due, np.argsort(numbers))
        return due

    @property
    def _nothing_due(self) -> pa.Table:
        """No rows."""
        schema = self._plan.query.schema
        own = {name: schema.field(name) for name in (*self._names, *dict(self._match.then))}
        own |= {each.name: each for each in self._row_schema}
        return pa.schema([*own.values(), pa.field(NUMBER, pa.int64())]).empty_table()

    def _save(self, stored: StoredMatches) -> None:
        stored.save()

    def _next_timers(self, stored: StoredMatches) -> Timers:
        due = stored.next_due
        return (None if due == LONG_MAX else max(due, stored.watermark + 1)), None

    def state_size(self) -> dict[str, int]:
        """Return the number of stored rows and keys."""
        return self._state.sizes()

    # ---- the automaton

    def _run_automaton(
        self, match_state: MatchState, due: pa.Table, codes: Ints, watermark: int
    ) -> Matches:
        """Run the automaton over the state of some keys and rows that are due.

        Store the remaining state.
        """
        rows = self._sort_rows(match_state, due, codes)
        settings = settings_of(self._match, watermark)
        keys = np.searchsorted(rows.codes, match_state.codes)
        before = match_state.expand_to(keys, matching.nothing(settings, len(rows.codes)), settings)
        conditions = self._match.conditions
        read = rows.table.select(conditions.columns)
        if conditions.columns:
            read = take_rows(read, rows.order)
        lanes = rows_of(conditions, read, rows.ts, rows.begins, rows.stored_counts)
        ended, variable, found = matching.run(
            before, self._automaton, self._program, settings, lanes, conditions.depth,
            compiled=self._compiled,
        )  # fmt: skip
        self._check(ended, variable)
        self._store_remaining(rows, found)
        places = found.start, found.ends.reshape(-1, settings.variables), found.cause
        return Matches(rows, rows.codes[found.key], *places)

    def _sort_rows(self, match_state: MatchState, due: pa.Table, codes: Ints) -> SortedRows:
        """Return stored and due rows, by key and time."""
        new = due.select(self._row_schema.names).cast(self._row_schema)
        rows = pa.concat_tables([match_state.rows, new]) if len(match_state.rows) else new
        of_rows = np.concatenate([np.repeat(match_state.codes, match_state.lengths), codes])
        before = np.full(len(match_state.rows), -1)
        numbers = np.concatenate([before, np.arange(len(due))])
        ts = rows.column(self._time).to_numpy()
        order = select("cpu").joins.sort(of_rows, ts).numbers
        keys = present(np.concatenate([match_state.codes, codes]), self._keys.count)
        counts = np.bincount(of_rows, minlength=self._keys.count)[keys]
        stored_counts = np.zeros(self._keys.count, np.int64)
        stored_counts[match_state.codes] = match_state.lengths
        return SortedRows(
            rows.combine_chunks(), order, keys, offsets(counts), stored_counts[keys],
            ts[order], numbers[order],  # a copy: compiled code takes no array of Arrow's
        )  # fmt: skip

    def _store_remaining(self, rows: SortedRows, found: Found) -> None:
        """Store the state after a run, and the rows that it refers to."""
        counts = np.diff(rows.begins)
        match_state, expired = read_remaining(
            found, rows.codes, counts, settings_of(self._match, 0)
        )
        begins = rows.begins[np.searchsorted(rows.codes, match_state.codes)]
        places = rows.order[ranges(begins + expired, match_state.lengths)]
        match_state = replace(match_state, rows=take_rows(rows.table, places))
        others = self._state.match_state
        self._state.match_state = (
            MatchState.concat([others, match_state]) if len(others) else match_state
        )

    def _check(self, ended: int, variable: int) -> None:
        """Raise the error that a run ended with."""
        if ended == layout.DONE:
            return
        names = self._match.pattern.names
        if ended == layout.NO_VALUE:
            rule = f"the condition of {names[variable]} has a value: it overflows, or divides by 0"
            raise ExpressionError(rule, value=self._match.conditions.texts[variable])
        rule = "after a match there is a row to skip to: its variable has none"
        if ended == layout.FOR_EVER:
            rule = "after a match the search goes on after its first row, or finds it for ever"
        raise SkipError(rule, value=self._match.after.describe(names))


def _ranks(column: pa.ChunkedArray, *, down: bool) -> Ints:
    """Return numbers in the order of values."""
    ranks = sortable(column)
    return ~ranks if down else ranks
