"""Assignment of the rows of a batch to non-merging windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.numeric import NumericColumn, to_numeric
from gpu_windows.operators.columns.row_status import status_of_rows
from gpu_windows.operators.columns.units import drop_repeated, limits_of, units_on_device
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN, Grid
from gpu_windows.vocabulary.windows import SlicedAssigner

Ints = NDArray[np.int64]

#: All rows in one slice, which is the window of number 0.
_ONE_SLICE = rules.sliding_grid(1, 1, 0)


@dataclass(frozen=True)
class Found:
    """Windows of some rows, sorted by (code, number).

    Parameters
    ----------
    codes, numbers : int64[w]
        Key code and number of every window, each pair once.
    order : int64[n]
        The rows by key and slice.
    firsts, counts : int64[w]
        The rows of every window as a range of ``order``.
    """

    codes: Ints
    numbers: Ints
    order: Ints
    firsts: Ints
    counts: Ints


class PaneFinder:
    """Finds the windows of rows.

    Parameters
    ----------
    plan : WindowPlan
        Of windows that do not merge.
    """

    def __init__(self, plan: WindowPlan) -> None:
        query = plan.query
        self._query: WindowQuery = query
        self._grid: Grid = _ONE_SLICE
        self._units = query.units
        self._sliced = isinstance(query.assigner, SlicedAssigner)
        if isinstance(query.assigner, SlicedAssigner):
            self._grid = query.assigner.grid()
        elif not query.is_global:
            name = type(query.assigner).__name__
            raise NotImplementedError(f"{name}: windows are slices, merge, or are global")
        self._lateness = query.allowed_lateness if query.assigner.is_event_time else 0

    def classify(
        self, backend: Backend, table: pa.Table, watermark: int, processing_time: int
    ) -> tuple[Ints, NDArray[np.int8]]:
        """Return slice and status (`gpu_windows.rules`) of every row."""
        of_event_time = self._query.assigner.is_event_time
        if self._sliced and of_event_time:
            return self._assign_slices(
                backend, to_numeric(table.column(self._query.time)), watermark
            )
        usable = status_of_rows(self._query, table, processing_time)
        if not self._sliced:
            return np.zeros(len(table), np.int64), usable
        now = NumericColumn(np.full(len(table), processing_time), np.empty(0, np.bool_))
        slices, status = self._assign_slices(backend, now, LONG_MIN)
        return slices, np.where(usable == rules.ACCEPTED, status, usable)

    def _assign_slices(
        self, backend: Backend, times: NumericColumn, watermark: int
    ) -> tuple[Ints, NDArray[np.int8]]:
        on_device = units_on_device(backend, times, self._units)
        limits = limits_of(self._grid, self._units, watermark, self._lateness)
        assigned = backend.assign.assign_slices(*on_device, self._grid, limits)
        return backend.to_host(assigned.slices), backend.to_host(assigned.status)

    def find(
        self,
        backend: Backend,
        codes: Ints,
        slices: Ints,
        key_count: int,
        first: int,
        last: int = LONG_MAX,
    ) -> Found:
        """Return the windows of accepted rows, those with numbers from ``first`` to ``last``."""
        none = np.empty(0, np.int64)
        if len(codes) == 0:
            return Found(none, none, none, none, none)
        groups = backend.grouping.group(
            backend.to_device(codes), backend.to_device(slices), key_count
        )
        group_codes, group_slices = backend.to_host(groups.codes), backend.to_host(groups.slices)
        low = rules.first_window(int(group_slices.min()), self._grid)
        high = rules.last_window(int(group_slices.max()), self._grid)
        windows = backend.combine.windows(
            groups.codes, groups.slices, self._grid, max(low, first), min(high, last)
        )
        if self._units.length > 1:
            windows = drop_repeated(backend, windows, self._grid, self._units)
        begin, end = backend.to_host(windows.first), backend.to_host(windows.last)
        counts = backend.to_host(groups.rows)
        ends = np.cumsum(counts)
        firsts = ends[begin] - counts[begin]
        return Found(
            group_codes[end],
            backend.to_host(windows.numbers),
            backend.to_host(backend.grouping.order_of(groups)),
            firsts,
            ends[end] - firsts,
        )

    def first_open(self, watermark: int) -> int:
        """Return the number of the first window that has not expired."""
        if not (self._sliced and self._query.assigner.is_event_time):
            return LONG_MIN
        if watermark == LONG_MAX:
            return LONG_MAX
        complete = rules.last_complete_unit(watermark - self._lateness, self._units)
        return _clamp(rules.last_window_fired(complete, self._grid) + 1)

    def last_due(self, watermark: int) -> int:
        """Return the number of the last window of event time that ends up to ``watermark``."""
        if watermark == LONG_MAX:
            return LONG_MAX
        complete = rules.last_complete_unit(watermark, self._units)
        return max(rules.last_window_fired(complete, self._grid), LONG_MIN)

    def are_in(self, slices: Ints, first: int, last: int) -> NDArray[np.bool_]:
        """Return which slices are in a window with a number from ``first`` to ``last``."""
        earliest, latest = (
            of(slices, self._grid) for of in (rules.first_window, rules.last_window)
        )
        found: NDArray[np.bool_] = (earliest <= last) & (latest >= first)
        return found

    def first_slice(self, watermark: int) -> int:
        """Return a slice before which all windows have expired."""
        return _clamp(rules.first_slice(self.first_open(watermark), self._grid))

    def last_slice(self, window: int) -> int:
        """Return the last slice of a window, given by its number."""
        return _clamp(rules.last_slice(window, self._grid))

    def slice_bounds(self, first: int, last: int) -> tuple[int, int]:
        """Return the first tick of a slice, and the end of a later one."""
        begin, end = (rules.slice_start(each, self._grid) for each in (first, last + 1))
        return rules.tick_within(begin, self._units), rules.tick_within(end, self._units)

    def first_window(self, index: int) -> int:
        """Return the number of the first window that holds a slice."""
        return int(rules.first_window(index, self._grid))

    def bounds(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return first and last tick of windows."""
        if not self._sliced:
            return np.full(len(numbers), LONG_MIN), np.full(len(numbers), LONG_MAX)
        starts, ends = rules.start_of(numbers, self._grid), rules.end_of(numbers, self._grid)
        return rules.tick_of(starts, self._units), rules.tick_of(ends, self._units) - 1


def _clamp(number: int) -> int:
    """Return the number of a window or slice within the range of int64."""
    return min(max(number, LONG_MIN), LONG_MAX)
