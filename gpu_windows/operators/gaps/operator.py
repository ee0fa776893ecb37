"""Fills the windows in which a key has no rows, after the operator of the windows with rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.errors import GapError
from gpu_windows.operators.base import (
    Emission,
    MergesPartials,
    Operator,
    StatefulOperator,
    TakesKeys,
    Timers,
)
from gpu_windows.operators.columns.keys import KeyEncoder, order_by_code, present
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.gaps.filling import FilledResults
from gpu_windows.operators.gaps.gaps import NONE, Gaps
from gpu_windows.operators.gaps.key_states import KeyStates, StoredKeyStates
from gpu_windows.operators.gaps.numbering import WindowNumbers
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.gap_filling import MAX_GAP_WINDOWS, GapFilling
from gpu_windows.vocabulary.windows import SlicedAssigner

Ints = NDArray[np.int64]

#: Windows in one emission, at most.
EMISSION_WINDOWS = 1 << 20
#: Owner and name of the number saved in the log: whether the given keys are in it.
_OWNER, _SEEDED = "gaps", "seeded"


class GapsOperator(StatefulOperator[StoredKeyStates], MergesPartials, TakesKeys):
    """Operator of windows whose gaps are filled.

    Windows with rows are those of another operator, which fires each once, those of a key in order.

    Parameters
    ----------
    plan : WindowPlan
        Of a query with gap filling.
    windows : Operator
        Of the windows with rows.
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether the results of one emission come in order of the ends of windows.
    """

    def __init__(
        self, plan: WindowPlan, windows: Operator, *, trace: bool = False, in_order: bool = True
    ) -> None:
        query = plan.query
        assert query.gaps is not None, "a query with gap filling"
        assert isinstance(query.assigner, SlicedAssigner), "windows are numbered"
        self._filling: GapFilling = query.gaps
        self._names, self._windows, self._in_order = query.keys, windows, in_order
        self._display_names = [query.display_name(name) for name in query.keys]
        self._keys = KeyEncoder([query.schema.field(name).type for name in query.keys])
        self._numbers = WindowNumbers(query.assigner)
        self._results = FilledResults(plan, self._filling, self._keys, self._numbers, trace=trace)
        fields = [plan.result_schema.field(name) for name in self._filling.carried_results]
        self._states = KeyStates(self._keys, pa.schema(fields))
        given = self._filling.given
        self._first = 0 if given is None else self._numbers.first_from(given.start)
        self._is_seeded = given is None
        self._watermark = LONG_MIN

    # ---- interface of an operator

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Process rows."""
        yield from self._fill(self._windows.process(batch))

    def merge(self, partials: pa.Table) -> None:
        """Add partials that another task made to the state of the windows with rows."""
        assert isinstance(self._windows, MergesPartials), "only windows of slices have partials"
        self._windows.merge(partials)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Emit the windows that end up to ``watermark``, with and without rows."""
        yield from self._fill(self._windows.advance_watermark(watermark))
        if watermark > self._watermark:
            self._watermark = watermark
            yield from self._fill_ended()

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Set processing time; windows of event time do not depend on it."""
        yield from self._fill(self._windows.advance_processing_time(time))

    def end_rows(self) -> Iterator[Emission]:
        """Emit what the operator of the windows emits."""
        yield from self._fill(self._windows.end_rows())

    def state_size(self) -> dict[str, int]:
        """Return the number of entries of the windows, and of filled keys."""
        stored = 0 if self._stored is None else self._stored.table.not_loaded["entries"]
        keys = len(self._states.known_codes) + stored
        return {**self._windows.state_size(), "filled keys": keys}

    def close(self) -> None:
        """Close the user functions of the query."""
        self._windows.close()

    # ---- in a log

    @property
    def _stateful_windows(self) -> StatefulOperator[Any]:
        assert isinstance(self._windows, StatefulOperator), "windows have state"
        return self._windows

    def _restore_state(self, log: StateLog) -> StoredKeyStates:
        self._stateful_windows.restore(log)
        self._is_seeded = self._is_seeded or bool(log.all_numbers(_OWNER).get(_SEEDED, 0))
        return StoredKeyStates(self._states, log)

    def _save(self, stored: StoredKeyStates) -> None:
        self._stateful_windows.save()
        self._seed()
        stored.save(self._due_times(self._states.known_codes))
        stored.log.set_numbers(_OWNER, {_SEEDED: 1})

    def _next_timers(self, stored: StoredKeyStates) -> Timers:
        event, processing = self._stateful_windows.next_timers()
        own, _ = stored.table.next_timers()
        times = [time for time in (event, own) if time is not None and time != LONG_MAX]
        return min(times, default=None), processing

    # ---- windows with rows, and the gaps before them

    def _fill(self, emissions: Iterator[Emission]) -> Iterator[Emission]:
        """Yield the emissions of the windows with rows, the gaps before these filled."""
        for emission in emissions:
            if not len(emission.results):
                yield replace(emission, results=self._results.empty)
                continue
            counters = replace(emission.counters, fired=0)
            yield replace(emission, results=self._results.empty, counters=counters)
            yield from self._fill_before(emission.results)

    def _fill_before(self, results: pa.Table) -> Iterator[Emission]:
        """Yield results, with the gaps before them filled."""
        self._seed()
        codes = self._keys.encode([results.column(name) for name in self._names])
        starts, ends = (to_numeric(results.column(n)).values for n in (WINDOW_START, WINDOW_END))
        numbers = self._numbers.of_bounds(starts, ends)
        self._load(codes)
        order = self._order(codes, numbers)
        gaps = self._gaps_before(codes[order], numbers[order], order)
        yield from self._emit(gaps, results)
        is_last = np.append(np.diff(gaps.codes) != 0, True)
        self._note_rows(gaps, is_last, results.take(pa.array(order[is_last])))

    def _load(self, codes: Ints) -> None:
        self._states.grow()
        if self._stored is not None:
            self._stored.load(present(codes, self._keys.count))

    def _order(self, codes: Ints, numbers: Ints) -> Ints:
        """Return the order of results by key, and of a key by window."""
        if (np.diff(numbers) >= 0).all():
            return order_by_code(codes, self._keys.count)
        return np.lexsort((numbers, codes))

    def _gaps_before(self, codes: Ints, numbers: Ints, rows: Ints) -> Gaps:
        """Return the gaps before windows with rows, which are sorted by key and number."""
        states, count = self._states, len(rows)
        is_first = np.diff(codes, prepend=-1) != 0
        emitted_before = states.emitted[codes]
        value_at = states.value_at[codes]
        stored_value = np.where(value_at == NONE, NONE, value_at + count)
        before = np.where(is_first, stored_value, np.roll(rows, 1))
        before_numbers = np.where(is_first, states.with_rows[codes], np.roll(numbers, 1))
        emitted = np.where(is_first, emitted_before, np.roll(numbers, 1))
        if self._filling.given:
            emitted = np.maximum(emitted, self._first - 1)
        is_filled = (emitted_before if self._filling.given else emitted) != LONG_MIN
        last = self._last_filled(before_numbers)
        is_reached = last >= numbers - 1
        lengths = np.where(is_filled, np.minimum(last, numbers - 1) - emitted, 0)
        lengths = np.maximum(lengths, 0)
        self._check_lengths(codes, lengths)
        after = np.where(is_reached, rows, NONE)
        return Gaps(codes, emitted + 1, lengths, rows, numbers, before, before_numbers, after)

    def _last_filled(self, with_rows: Ints) -> Ints:
        """Return the last window to fill after windows with rows."""
        given, until = self._filling.given, self._filling.until
        if given is not None:
            last = LONG_MAX if given.end is None else self._numbers.last_ended(given.end - 1)
            return np.full(len(with_rows), last)
        if until is None:
            return np.full(len(with_rows), LONG_MAX)
        return self._numbers.last_within(with_rows, until)

    def _note_rows(self, gaps: Gaps, is_last: NDArray[np.bool_], results: pa.Table) -> None:
        """Store the last windows with rows of keys."""
        codes, numbers = gaps.codes[is_last], gaps.numbers[is_last]
        states = self._states
        if self._filling.given is not None:
            is_given = states.emitted[codes] != LONG_MIN
            codes, numbers = codes[is_given], numbers[is_given]
            results = results.filter(pa.array(is_given))
        states.emitted[codes] = np.maximum(states.emitted[codes], numbers)
        states.with_rows[codes] = numbers
        states.set_values(codes, results)

    # ---- windows that have ended without rows

    def _fill_ended(self) -> Iterator[Emission]:
        """Yield the windows without rows that have ended after the last ones of their keys."""
        self._seed()
        if self._stored is not None:
            self._stored.load_due(self._watermark)
        states, codes = self._states, self._states.known_codes
        last, through = self._fill_through(codes)
        yield from self._emit(self._gaps_after(codes, through), self._results.empty)
        states.emitted[codes] = through
        is_over = (through >= last) | (self._watermark == LONG_MAX)
        states.forget(codes[is_over])

    def _fill_through(self, codes: Ints) -> tuple[Ints, Ints]:
        """Return the last windows of keys to fill at all, and now."""
        emitted = self._states.emitted[codes]
        last = self._last_filled(self._states.with_rows[codes])
        if not self._fills_after_rows:
            return last, emitted
        ended = self._numbers.last_ended(self._watermark)
        if self._filling.waits:
            return last, np.where(last < ended, np.maximum(last, emitted), emitted)
        if ended == LONG_MAX:  # without an end nothing is left to fill
            ended = LONG_MIN if self._filling.has_no_end else LONG_MAX
        return last, np.maximum(np.minimum(last, ended), emitted)

    @property
    def _fills_after_rows(self) -> bool:
        """Whether windows after the last one with rows are filled, too."""
        return self._filling.given is not None or self._filling.until is not None

    def _gaps_after(self, codes: Ints, through: Ints) -> Gaps:
        """Return the gaps up to some windows, after which no result follows."""
        states = self._states
        emitted, none = states.emitted[codes], np.full(len(codes), NONE)
        self._check_lengths(codes, through - emitted)
        before, with_rows = states.value_at[codes], states.with_rows[codes]
        return Gaps(codes, emitted + 1, through - emitted, none, none, before, with_rows, none)

    def _due_times(self, codes: Ints) -> Ints:
        """Return the watermarks at which keys are filled next: int64[k] ticks."""
        never = np.full(len(codes), LONG_MAX)
        if not self._fills_after_rows:
            return never
        last = self._last_filled(self._states.with_rows[codes])
        following = last if self._filling.waits else self._states.emitted[codes]
        is_due = following < LONG_MAX
        times = self._numbers.ends(np.where(is_due, following, 0) + 1) - 1
        return np.where(is_due, times, never)

    def _seed(self) -> None:
        """Make the given keys known, once."""
        given = self._filling.given
        if given is None or self._is_seeded:
            return
        self._is_seeded = True
        self.add_keys(given.table)

    def add_keys(self, keys: pa.Table) -> None:
        """Add given keys, a column for each key column."""
        codes = self._keys.encode(keys.columns)
        self._load(codes)
        self._states.emitted[codes] = self._first - 1

    # ---- emissions

    def _check_lengths(self, codes: Ints, lengths: Ints) -> None:
        """Refuse a gap of too many windows.

        Raises
        ------
        GapError
        """
        longest = int(np.argmax(lengths)) if len(lengths) else 0
        if not len(lengths) or lengths[longest] <= MAX_GAP_WINDOWS:
            return
        values = self._keys.decode(codes[longest : longest + 1])
        key = ", ".join(
            f"{name}={value[0].as_py()!r}"
            for name, value in zip(self._display_names, values, strict=True)
        )
        rule = (
            f"a gap that is filled has up to {MAX_GAP_WINDOWS:,} windows: bound it by until=, "
            "take longer windows, or drop rows with wrong times"
        )
        raise GapError(rule, value=f"{int(lengths[longest]):,} windows of {key}")

    def _emit(self, gaps: Gaps, results: pa.Table) -> Iterator[Emission]:
        """Yield the windows of gaps, and the results after them."""
        for windows in gaps.windows(EMISSION_WINDOWS):
            if self._numbers.has_void:
                is_void = windows.is_filled & self._numbers.are_void(windows.numbers)
                windows = windows.take(np.flatnonzero(~is_void))
            if self._in_order:
                windows = windows.take(np.argsort(windows.numbers, kind="stable"))
            table = self._results.make_table(windows, results, self._states.values)
            yield Emission.of_results(table)
