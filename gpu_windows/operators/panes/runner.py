"""Base of the state machines of the buffer strategy: buffered rows, retained rows, chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.errors import OperatorFailedError
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.partials import entries_within
from gpu_windows.operators.columns.ranges import split
from gpu_windows.operators.counters import Rejected
from gpu_windows.operators.device import Kernels, Map, encode_keys
from gpu_windows.operators.panes.outcome import Outcome
from gpu_windows.operators.panes.results import PaneResults
from gpu_windows.operators.panes.state import PaneState, timers
from gpu_windows.operators.panes.tables import from_table, to_table
from gpu_windows.operators.panes.trigger_program import delta_columns, program_of
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import ARRIVAL
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.window_operator.layout import ELEMENT, PROCESSING_TIMER, Settings

Ints = NDArray[np.int64]

#: About how many elements (rows of windows) a call of a kernel gets.
CHUNK_ELEMENTS = 1 << 21
#: About how many bytes their partials may take, one for each firing.
_CHUNK_BYTES = 1 << 29
#: Added to the elements of each unit, because it may fire many times without new ones.
_UNIT_ELEMENTS = 8
#: A thread does not pay off for fewer elements.
_MIN_ELEMENTS = 1 << 17


@dataclass(frozen=True)
class Work:
    """Inputs of one run of the state machine.

    Parameters
    ----------
    table : pyarrow.Table
        The retained rows, then the new ones.
    ts, delta_values : int64[r], float64[l * r]
        Timestamps of the rows, and the columns that deltas compare.
    panes : PaneState
        The windows that may change in this run.
    rest : PaneState
        The other windows.
    elements : int64[u]
        Number of elements of every unit.
    special : object
        Further inputs of the kind of machine.
    """

    table: pa.Table
    ts: Ints
    delta_values: NDArray[np.float64]
    panes: PaneState
    rest: PaneState
    elements: Ints
    special: Any

    def chunks(self, threads: int, max_elements: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of units for one task each, in order; several tasks per thread."""
        lengths = self.elements + _UNIT_ELEMENTS
        size = max(int(lengths.sum()) // (2 * threads), _MIN_ELEMENTS)
        yield from split(lengths, min(size, CHUNK_ELEMENTS, max_elements), len(lengths))


@dataclass(frozen=True)
class NewRows:
    """New rows of a call: key code and place (slice, or first tick) of each, from row ``base``."""

    base: int
    codes: Ints
    places: Ints


@dataclass(frozen=True)
class BufferedRows:
    """Buffered rows: not yet in their windows, in order of arrival.

    Parameters
    ----------
    rows : pyarrow.Table
        The columns that windows use, and `ARRIVAL`.
    codes, places : int64[n]
        Key code, and slice or first tick.
    is_from_store : bool
        Whether they were read from the store for one run, and so are dropped after it.
    """

    rows: pa.Table
    codes: Ints
    places: Ints
    is_from_store: bool = False

    def filter(self, mask: NDArray[np.bool_]) -> BufferedRows:
        """Return the rows of a mask."""
        if mask.all():
            return self
        rows = self.rows.filter(pa.array(mask))
        return BufferedRows(rows, self.codes[mask], self.places[mask], self.is_from_store)


class Machine(ABC):
    """State machine of the windows of some keys, with their state.

    Parameters
    ----------
    plan : WindowPlan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(self, plan: WindowPlan, kernels: Kernels, *, trace: bool) -> None:
        query = plan.query
        # ---- configuration
        self._query = query
        self._kernels = kernels
        self._program = program_of(query)
        self._delta_columns = delta_columns(query)
        self._nodes = len(self._program.thresholds)
        self._results = PaneResults(plan, trace=trace)
        #: Schema of the results.
        self.schema = self._results.schema
        #: Whether windows retain rows, instead of partials.
        self.keeps_rows = self._results.keeps_rows
        self._used = [*dict.fromkeys([query.time, *query.used_columns])]
        # ---- state
        self.keys = KeyEncoder([query.schema.field(name).type for name in query.keys])
        self._state = self._no_panes()
        self._retained: list[pa.Table] = []
        self.seen = 0  # rows
        self._running = False
        self._buffered: list[BufferedRows] = []

    @property
    def _max_elements(self) -> int:
        return entries_within(self._results.stored_columns, _CHUNK_BYTES)

    def size(self) -> dict[str, int]:
        """Return the number of entries of each kind of state."""
        return {**self._state.size(), "rows": sum(map(len, self._retained)) + self.buffered_count}

    @property
    def buffered_count(self) -> int:
        """Number of buffered rows."""
        return sum(len(piece.codes) for piece in self._buffered)

    def clear(self) -> None:
        """Drop everything: the input has ended."""
        self._state, self._retained = self._no_panes(), []

    def take(self, batch: pa.Table, watermark: int, processing_time: int) -> Rejected:
        """Buffer the rows that may be in a window for the next run; return the others."""
        self._check()
        places, status = self._kernels.run(
            len(batch),
            lambda backend, _: self._classify(backend, batch, watermark, processing_time),
        )
        rejected = Rejected.of(status)
        if len(rejected):
            accepted = status == rules.ACCEPTED
            batch, places = batch.filter(pa.array(accepted)), places[accepted]
        if len(batch) == 0:
            return rejected
        columns = [batch.column(name) for name in self._query.keys]
        codes = np.asarray(encode_keys(self._kernels, self.keys, columns))
        arrival = pa.array(np.arange(self.seen, self.seen + len(batch)))
        self.seen += len(batch)
        rows = batch.select(self._used).append_column(ARRIVAL, arrival)
        self._buffered.append(BufferedRows(rows, codes, places))
        return rejected

    def run(self, settings: Settings) -> Iterator[Outcome]:
        """Add the buffered rows to their windows, and fire those that are due. To be drained.

        Raises
        ------
        OperatorFailedError
            If an earlier run did not end: then the state is incomplete.
        """
        self._check()
        if not self._has_work(settings):
            return
        self._running = True
        work = self._prepare_work(settings)
        parts, chunks = [work.rest], [*work.chunks(self._kernels.threads, self._max_elements)]
        chunks_per_call = 2 * max(self._kernels.threads, 2)
        for first in range(0, len(chunks), chunks_per_call):
            now = chunks[first : first + chunks_per_call]

            def step(
                backend: Backend, each: Map, now: list[tuple[int, int]] = now
            ) -> list[tuple[Iterable[Outcome], PaneState]]:
                return [*each(lambda c: self._run_units(backend, work, *c, settings), now)]

            elements = int(work.elements[now[0][0] : now[-1][1]].sum())
            for outcomes, panes in self._kernels.run(elements, step):
                parts.append(panes)
                yield from outcomes
        self._keep(work.table, parts)
        self._running = False

    # ---- between calls, in a store

    @property
    def codes(self) -> Ints:
        """The key codes of the windows."""
        return self._state.codes

    @property
    def buffered_codes(self) -> Ints:
        """The key codes of the buffered rows."""
        return np.concatenate([np.empty(0, np.int64), *(piece.codes for piece in self._buffered)])

    def next_timers(self, settings: Settings) -> tuple[Ints, Ints]:
        """Return the earliest timer of every window, of event time and of processing time.

        LONG_MAX if a window has none; no rows may be buffered.
        """
        event = self._timers(settings, in_processing_time=False)
        processing = self._timers(settings, in_processing_time=True)
        return np.where(*event, LONG_MAX), np.where(*processing, LONG_MAX)

    def to_tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the windows and their retained rows; no rows may be buffered."""
        state, rows = self._state, pa.table({})
        if self._retained:
            rows = pa.concat_tables(self._retained, promote_options="default")
        ordered = np.sort(state.rows, kind="stable")  # it is in runs, which are merged
        used = ordered[np.diff(ordered, prepend=-1) > 0]
        state = replace(state, rows=np.searchsorted(used, state.rows))
        windows = to_table(state, self.keys, self._results.stored_columns, self._nodes)
        return windows, rows.take(pa.array(used)) if len(used) else rows.slice(0, 0)

    def restore(self, windows: pa.Table, rows: pa.Table | None) -> None:
        """Add the windows of `to_tables` to those in memory; ``rows``: None if they keep none."""
        columns, base = self._results.stored_columns, sum(map(len, self._retained))
        state = from_table(windows, self.keys, columns, len(self._query.keys))
        state = replace(state, rows=state.rows + base)
        if rows is not None:
            self._retained.append(rows)
        self._state = self._concat([self._state, state])

    def _check(self) -> None:
        if self._running:
            raise OperatorFailedError("an operator whose call failed must not be used again")

    def _find_due(self, settings: Settings) -> NDArray[np.bool_]:
        """Return which windows have a timer that is due."""
        if settings.advance == ELEMENT:
            return np.zeros(len(self._state), np.bool_)
        found, time = self._timers(
            settings, in_processing_time=settings.advance == PROCESSING_TIMER
        )
        in_time: NDArray[np.bool_] = time <= settings.until
        return found & in_time

    def _timers(
        self, settings: Settings, *, in_processing_time: bool
    ) -> tuple[NDArray[np.bool_], Ints]:
        return timers(
            self._program, self._state.panes, settings, in_processing_time=in_processing_time
        )

    # ---- hooks of the kinds of machines

    @abstractmethod
    def _classify(
        self, backend: Backend, batch: pa.Table, watermark: int, processing_time: int
    ) -> tuple[Ints, NDArray[np.int8]]:
        """Return place and status (`gpu_windows.rules`) of every row."""

    @abstractmethod
    def _prepare_work(self, settings: Settings) -> Work:
        """Return the inputs of a run."""

    @abstractmethod
    def _run_units(
        self, backend: Backend, work: Work, begin: int, end: int, settings: Settings
    ) -> tuple[Iterable[Outcome], PaneState]:
        """Run some units; return their outcomes, and the windows that are still alive."""

    # ---- shared by all kinds

    def _has_work(self, settings: Settings) -> bool:
        """Return whether rows are buffered, or a window has a due timer."""
        return bool(self.buffered_count or self._find_due(settings).any())

    def _drain_buffer(self) -> tuple[pa.Table, NewRows]:
        """Return the retained rows, then the buffered ones, and empty the buffer."""
        buffered, self._buffered = self._buffered, []
        retained = self._retained if self._retained or buffered else [self._no_rows]
        return concat_rows(retained, buffered)

    @property
    def _no_rows(self) -> pa.Table:
        """An empty table, for windows that retain no rows and have a due timer."""
        fields = self._query.in_ticks(self._used)
        return pa.schema([*fields, pa.field(ARRIVAL, pa.int64())]).empty_table()

    def _no_panes(self) -> PaneState:
        return self._create_panes(*[np.empty(0, np.int64)] * 4)

    def _create_panes(self, codes: Ints, numbers: Ints, start: Ints, last: Ints) -> PaneState:
        """Return windows without contents."""
        columns = self._results.stored_columns
        return PaneState.create(codes, numbers, start, last, columns, self._nodes)

    def _concat(self, parts: list[PaneState]) -> PaneState:
        """Return windows, sorted; ``parts`` is emptied."""
        columns = self._results.stored_columns
        whole = PaneState.concat(parts, columns)
        parts.clear()
        return whole.sort(columns)

    def _select(self, state: PaneState, index: Ints) -> PaneState:
        return state.take(index, self._results.stored_columns)

    def _timestamps_of(self, table: pa.Table, extra: int = 0) -> Ints:
        """Return timestamps; rows without one are the oldest, as in Flink.

        ``extra``: number of elements other than rows; they have no timestamp.
        """
        times = to_numeric(table.column(self._query.time))
        valid = times.valid if len(times.valid) else True
        return np.append(np.where(valid, times.values, LONG_MIN), np.full(extra, LONG_MIN))

    def _delta_values_of(self, table: pa.Table, extra: int = 0) -> NDArray[np.float64]:
        parts = [np.empty(0)]
        for name in self._delta_columns:
            numeric = to_numeric(table.column(name))
            values = numeric.values.astype(np.float64)
            parts.append(
                values if len(numeric.valid) == 0 else np.where(numeric.valid, values, np.nan)
            )
            parts.append(np.full(extra, np.nan))
        return np.concatenate(parts)

    def _keep(self, table: pa.Table, parts: list[PaneState]) -> None:
        """Store the windows of a run, and the rows that they retain."""
        state = self._concat(parts)
        if not self.keeps_rows:
            self._state, self._retained = state, [table.schema.empty_table()]
            return
        is_used = np.zeros(len(table), np.bool_)
        is_used[state.rows] = True
        self._retained = [table.filter(pa.array(is_used))]
        self._state = replace(state, rows=(np.cumsum(is_used) - 1)[state.rows])


def concat_rows(
    retained: Sequence[pa.Table], buffered: Sequence[BufferedRows]
) -> tuple[pa.Table, NewRows]:
    """Concatenate rows: the retained ones, then the buffered ones."""
    none = np.empty(0, np.int64)
    codes = np.concatenate([none, *(piece.codes for piece in buffered)])
    places = np.concatenate([none, *(piece.places for piece in buffered)])
    tables = [*retained, *(piece.rows for piece in buffered)]  # nullable columns may differ
    table = pa.concat_tables(tables, promote_options="default").combine_chunks()
    return table, NewRows(sum(map(len, retained)), codes, places)
