"""What the machines of the buffer strategy share: rows that wait, rows that are kept, chunks."""

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
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.columns.partials import entries_within
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.encoding import encoded
from gpu_windows.operators.panes.outcome import Outcome
from gpu_windows.operators.panes.results import PaneResults
from gpu_windows.operators.panes.state import PaneState, timers
from gpu_windows.operators.panes.tables import from_table, to_table
from gpu_windows.operators.panes.trigger_program import delta_columns, program_of
from gpu_windows.operators.rejected import Rejected
from gpu_windows.planning.plan import ARRIVAL, WindowPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.rules.window_operator.layout import ELEMENT, PROCESSING_TIMER, Settings

Ints = NDArray[np.int64]

#: Elements (rows of windows) that a call of a kernel takes, about.
CHUNK_ELEMENTS = 1 << 21
#: About how many bytes the partials of these may take, one for each firing.
_CHUNK_BYTES = 1 << 29
#: What a unit counts besides its elements: it may fire many times without new ones.
_UNIT_ELEMENTS = 8
#: A thread is not worth fewer elements.
_LEAST_ELEMENTS = 1 << 17


@dataclass(frozen=True)
class Work:
    """What one call of a machine is about.

    Parameters
    ----------
    table : pyarrow.Table
        Rows: those that were kept, then new ones.
    ts, lanes : int64[r], float64[l * r]
        Of the rows: timestamps, and the columns that deltas compare.
    panes : PaneState
        The windows that there are and that something may happen to.
    rest : PaneState
        The others.
    elements : int64[u]
        How many elements every unit has.
    special : object
        What the kind of machine needs besides.
    """

    table: pa.Table
    ts: Ints
    lanes: NDArray[np.float64]
    panes: PaneState
    rest: PaneState
    elements: Ints
    special: Any

    def chunks(self, threads: int, most: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of units that are worked at together, in order: some for each thread."""
        ends = np.cumsum(self.elements + _UNIT_ELEMENTS)
        total = int(ends[-1]) if len(ends) else 0
        size = min(max(total // (2 * threads), _LEAST_ELEMENTS), CHUNK_ELEMENTS, most)
        begin = 0
        while begin < len(ends):
            before = ends[begin - 1] if begin else 0
            end = int(np.searchsorted(ends, before + size, side="right"))
            end = max(end, begin + 1)
            yield begin, end
            begin = end


@dataclass(frozen=True)
class Arrived:
    """New rows of a call: key code and place (slice, or first tick) of each."""

    base: int
    codes: Ints
    places: Ints


@dataclass(frozen=True)
class Waiting:
    """Rows that have not reached their windows yet, in order of arrival.

    Parameters
    ----------
    rows : pyarrow.Table
        What windows use of them, and `ARRIVAL`.
    codes, places : int64[n]
        Key code, and slice or first tick.
    is_lent : bool
        Whether a store holds them, so that they are here for one run only.
    """

    rows: pa.Table
    codes: Ints
    places: Ints
    is_lent: bool = False

    def take(self, mask: NDArray[np.bool_]) -> Waiting:
        """Return some of them."""
        if mask.all():
            return self
        rows = self.rows.filter(pa.array(mask))
        return Waiting(rows, self.codes[mask], self.places[mask], self.is_lent)


class Machine(ABC):
    """The windows of some keys, their state, and what runs them.

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
        self._lanes = delta_columns(query)
        self._results = PaneResults(plan, trace=trace)
        self._used = [*dict.fromkeys([query.time, *query.used_columns])]
        # ---- state
        self._keys = KeyEncoder([query.schema.field(name).type for name in query.keys])
        self._state = self._no_panes()
        self._kept: list[pa.Table] = []
        self.seen = 0  # rows
        self._running = False
        self._waiting: list[Waiting] = []

    @property
    def _most_elements(self) -> int:
        return entries_within(self._results.kept_columns, _CHUNK_BYTES)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the results."""
        return self._results.schema

    def size(self) -> dict[str, int]:
        """Return how many entries of each kind are held."""
        return {**self._state.size(), "rows": sum(map(len, self._kept)) + self.waiting}

    @property
    def keeps_rows(self) -> bool:
        """Whether windows keep rows; else partials of them."""
        return self._results.keeps_rows

    @property
    def waiting(self) -> int:
        """Number of rows that have not reached their windows yet."""
        return sum(len(piece.codes) for piece in self._waiting)

    def clear(self) -> None:
        """Drop everything: the input has ended."""
        self._state, self._kept = self._no_panes(), []

    def take(self, batch: pa.Table, watermark: int, processing_time: int) -> Rejected:
        """Have the rows that may be in a window wait for the next run; return the others."""
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
        codes = np.asarray(encoded(self._kernels, self._keys, columns))
        arrival = pa.array(np.arange(self.seen, self.seen + len(batch)))
        self.seen += len(batch)
        rows = batch.select(self._used).append_column(ARRIVAL, arrival)
        self._waiting.append(Waiting(rows, codes, places))
        return rejected

    def run(self, settings: Settings) -> Iterator[Outcome]:
        """Give windows the rows that wait for them, and fire what is due. To be drained.

        Raises
        ------
        OperatorFailedError
            If an earlier run did not end: then the state is incomplete.
        """
        self._check()
        if not self._has_work(settings):
            return
        self._running = True
        work = self._work(settings)
        kept, chunks = [work.rest], [*work.chunks(self._kernels.threads, self._most_elements)]
        together = 2 * max(self._kernels.threads, 2)
        for first in range(0, len(chunks), together):
            now = chunks[first : first + together]

            def step(
                backend: Backend, each: Map, now: list[tuple[int, int]] = now
            ) -> list[tuple[Iterable[Outcome], PaneState]]:
                return [*each(lambda c: self._step(backend, work, *c, settings), now)]

            sizes = work.elements[now[0][0] : now[-1][1]]
            for outcomes, panes in self._kernels.run_units(sizes, step):
                kept.append(panes)
                yield from outcomes
        self._keep(work.table, kept)
        self._running = False

    # ---- between calls, in a store

    @property
    def codes(self) -> Ints:
        """The key codes of the windows."""
        return self._state.codes

    @property
    def waiting_codes(self) -> Ints:
        """The key codes of the rows that wait."""
        return np.concatenate([np.empty(0, np.int64), *(piece.codes for piece in self._waiting)])

    def key_hashes(self) -> Ints:
        """Return the hash of every key code, the same in every process."""
        return self._keys.hashes()

    def next_timers(self, settings: Settings) -> tuple[Ints, Ints]:
        """Return the earliest timer of every window, of event time and of processing time.

        LONG_MAX where there is none; rows must not wait.
        """
        event = self._timers(settings, in_processing_time=False)
        processing = self._timers(settings, in_processing_time=True)
        return np.where(*event, LONG_MAX), np.where(*processing, LONG_MAX)

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the windows and the rows that they keep; no rows may wait."""
        nodes = len(self._program.thresholds)
        state = self._state
        none = pa.table({})
        rows = pa.concat_tables(self._kept, promote_options="default") if self._kept else none
        ordered = np.sort(state.rows, kind="stable")  # it is in runs, which are merged
        held = ordered[np.diff(ordered, prepend=-1) > 0]
        state = replace(state, rows=np.searchsorted(held, state.rows))
        windows = to_table(state, self._keys, self._results.kept_columns, nodes)
        return windows, rows.take(pa.array(held)) if len(held) else rows.slice(0, 0)

    def restore(self, windows: pa.Table, rows: pa.Table | None) -> None:
        """Take what `tables` gave, beside what is there; ``rows``: None if windows keep none."""
        columns, base = self._results.kept_columns, sum(map(len, self._kept))
        state = from_table(windows, self._keys, columns, len(self._query.keys))
        state = replace(state, rows=state.rows + base)
        if rows is not None:
            self._kept.append(rows)
        whole = PaneState.together([self._state, state], columns)
        self._state = self._select(whole, np.lexsort((whole.numbers, whole.codes)))

    def _check(self) -> None:
        if self._running:
            raise OperatorFailedError("an operator whose call failed must not be used again")

    def _due(self, settings: Settings) -> NDArray[np.bool_]:
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

    # ---- what the machines differ in

    @abstractmethod
    def _classify(
        self, backend: Backend, batch: pa.Table, watermark: int, processing_time: int
    ) -> tuple[Ints, NDArray[np.int8]]:
        """Return place and status (`gpu_windows.rules`) of every row."""

    @abstractmethod
    def _work(self, settings: Settings) -> Work:
        """Return what is to be done."""

    @abstractmethod
    def _step(
        self, backend: Backend, work: Work, begin: int, end: int, settings: Settings
    ) -> tuple[Iterable[Outcome], PaneState]:
        """Run some units; return what came of it, and the windows that are still there."""

    # ---- what they share

    def _has_work(self, settings: Settings) -> bool:
        """Return whether rows wait, or a window has something due."""
        return bool(self.waiting or self._due(settings).any())

    def _arrived(self) -> tuple[pa.Table, Arrived]:
        """Return the rows that were kept, then those that waited: they wait no more."""
        waiting, self._waiting = self._waiting, []
        kept = self._kept if self._kept or waiting else [self._no_rows]
        return together(kept, waiting)

    @property
    def _no_rows(self) -> pa.Table:
        """No row, for windows that keep none and have a timer that is due."""
        fields = self._query.in_ticks(self._used)
        return pa.schema([*fields, pa.field(ARRIVAL, pa.int64())]).empty_table()

    def _no_panes(self) -> PaneState:
        none = np.empty(0, np.int64)
        nodes = len(self._program.thresholds)
        return PaneState.fresh(none, none, none, none, self._results.kept_columns, nodes)

    def _select(self, state: PaneState, index: Ints) -> PaneState:
        return state.take(index, self._results.kept_columns)

    def _ts(self, table: pa.Table, room: int = 0) -> Ints:
        """Return timestamps; those without one are the oldest, as in Flink.

        ``room``: how many elements there are besides rows, which have none.
        """
        lane = to_lane(table.column(self._query.time))
        valid = lane.valid if len(lane.valid) else True
        return np.append(np.where(valid, lane.values, LONG_MIN), np.full(room, LONG_MIN))

    def _lanes_of(self, table: pa.Table, room: int = 0) -> NDArray[np.float64]:
        lanes = [np.empty(0)]
        for name in self._lanes:
            lane = to_lane(table.column(name))
            values = lane.values.astype(np.float64)
            lanes.append(values if len(lane.valid) == 0 else np.where(lane.valid, values, np.nan))
            lanes.append(np.full(room, np.nan))
        return np.concatenate(lanes)

    def _keep(self, table: pa.Table, parts: list[PaneState]) -> None:
        """Keep windows, and of the rows those that they hold."""
        whole = PaneState.together(parts, self._results.kept_columns)
        parts.clear()
        state = self._select(whole, np.lexsort((whole.numbers, whole.codes)))
        if not self._results.keeps_rows:
            self._state, self._kept = state, [table.schema.empty_table()]
            return
        held = np.zeros(len(table), np.bool_)
        held[state.rows] = True
        self._kept = [table.filter(pa.array(held))]
        self._state = replace(state, rows=(np.cumsum(held) - 1)[state.rows])


def together(kept: Sequence[pa.Table], waiting: Sequence[Waiting]) -> tuple[pa.Table, Arrived]:
    """Return rows as a table: those that were kept, then those that waited."""
    none = np.empty(0, np.int64)
    codes = np.concatenate([none, *(piece.codes for piece in waiting)])
    places = np.concatenate([none, *(piece.places for piece in waiting)])
    tables = [*kept, *(piece.rows for piece in waiting)]  # who may be null may differ
    table = pa.concat_tables(tables, promote_options="default").combine_chunks()
    return table, Arrived(sum(map(len, kept)), codes, places)
