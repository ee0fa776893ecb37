"""State machine of windows that do not merge: every window is a unit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.cpu import panes
from gpu_windows.operators.columns.ranges import join_ranges
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.panes.assign import Found, PaneFinder
from gpu_windows.operators.panes.outcome import Outcome
from gpu_windows.operators.panes.results import Call
from gpu_windows.operators.panes.runner import Ints, Machine, NewRows, Work
from gpu_windows.operators.panes.state import PaneState
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.window_operator.layout import Elements, Settings


@dataclass(frozen=True)
class _New:
    """Which rows are new in every window: the range [first, first + count) of ``order``."""

    order: Ints
    firsts: Ints
    counts: Ints


class PaneMachine(Machine):
    """Windows that do not merge; a unit is a window of a key."""

    def __init__(self, plan: WindowPlan, kernels: Kernels, *, trace: bool) -> None:
        super().__init__(plan, kernels, trace=trace)
        self.finder = PaneFinder(plan)

    def _classify(
        self, backend: Backend, batch: pa.Table, watermark: int, processing_time: int
    ) -> tuple[Ints, NDArray[np.int8]]:
        return self.finder.classify(backend, batch, watermark, processing_time)

    def _prepare_work(self, settings: Settings) -> Work:
        table, arrived = self._drain_buffer()
        found = self._find_windows(arrived, self.finder.first_open(settings.watermark))
        return self._on_new(table, arrived, found, settings)

    def _on_new(self, table: pa.Table, arrived: NewRows, found: Found, settings: Settings) -> Work:
        """Return the inputs of a run: windows with new rows, and windows that are due."""
        places, self._state = self._add_panes(found)
        state, touched = self._state, self._find_due(settings)
        touched[places] = True
        self._state = self._no_panes()  # until the run has ended
        index = np.flatnonzero(touched)
        firsts, counts = np.zeros((2, len(state)), np.int64)
        firsts[places], counts[places] = found.firsts, found.counts
        panes = self._select(state, index)
        new = _New(arrived.base + found.order, firsts[index], counts[index])
        return Work(
            table,
            self._timestamps_of(table),
            self._delta_values_of(table),
            panes,
            self._select(state, np.flatnonzero(~touched)),
            panes.lengths + new.counts,
            new,
        )

    def _find_windows(self, arrived: NewRows, first: int, last: int = LONG_MAX) -> Found:
        """Return the windows of rows whose numbers are from ``first`` to ``last``."""
        codes, places, count = arrived.codes, arrived.places, self.keys.count
        return self._kernels.run(
            len(codes),
            lambda backend, _: self.finder.find(backend, codes, places, count, first, last),
        )

    def _add_panes(self, found: Found) -> tuple[Ints, PaneState]:
        """Add windows to the existing ones; return the index of each found one, and all."""
        old, count = self._state, len(self._state)
        codes = np.concatenate([old.codes, found.codes])
        numbers = np.concatenate([old.numbers, found.numbers])
        order = np.lexsort((numbers, codes))
        first = np.ones(len(order), np.bool_)
        first[1:] = (np.diff(codes[order]) != 0) | (np.diff(numbers[order]) != 0)
        place = np.empty(len(order), np.int64)
        place[order] = np.cumsum(first) - 1
        which = order[first]  # the existing one of two equals, because it comes first
        is_new = which >= count
        fresh = which[is_new] - count
        if len(fresh) == 0:
            return place[count:], old
        numbers = found.numbers[fresh]
        new = self._create_panes(found.codes[fresh], numbers, *self.finder.bounds(numbers))
        whole = PaneState.concat([old, new], self._results.stored_columns)
        which[is_new] = count + np.arange(len(fresh))
        return place[count:], self._select(whole, which)

    def _run_units(
        self, backend: Backend, work: Work, begin: int, end: int, settings: Settings
    ) -> tuple[Iterable[Outcome], PaneState]:
        state, new = self._select(work.panes, np.arange(begin, end)), work.special
        counts = new.counts[begin:end]
        fresh = panes.members(new.order, new.firsts[begin:end], counts)
        begins, news, rows = join_ranges(state.rows, state.lengths, fresh, counts)
        elements = Elements(rows, np.empty_like(rows), work.ts, work.delta_values)
        done = panes.run(self._program, settings, state.panes, elements, begins, news)
        call = Call(self.keys, work.table, (), settings)
        return self._results.make(backend, call, state, elements, done)
