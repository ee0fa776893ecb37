"""The sessions strategy: rows become partial sessions, which are merged where they touch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.base import Emission
from gpu_windows.operators.columns.lowering import lower
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.partials import State
from gpu_windows.operators.columns.row_status import status_of_rows
from gpu_windows.operators.counters import Rejected
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.slices.firing import FiringOperator
from gpu_windows.operators.slices.table import Entries, KeyedRows, Placed, SliceTable
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import Strategy

#: Sessions in one emission.
EMISSION_SESSIONS = 1 << 21


class SessionTable(SliceTable):
    """The sessions of some keys: entries are numbered by their first tick.

    The end of a session is a partial like any other
    (`gpu_windows.operators.columns.partial_columns.EndColumn`), the first of the table's columns;
    entries that intersect or touch become one.
    """

    _is_of_times = False

    def classify(
        self, backend: Backend, piece: KeyedRows, watermark: int
    ) -> tuple[Placed, Rejected]:
        """Return the time of every row; no row is late, because the input is bounded."""
        del watermark
        times = to_numeric(piece.rows.column(self._plan.query.time))
        status = status_of_rows(self._plan.query, piece.rows)
        return Placed(backend.to_device(times.values)), Rejected.of(status)

    def _group(
        self, backend: Backend, codes: Any, placed: Placed, states: Sequence[State], key_count: int
    ) -> Any:
        ends = backend.to_device(states[0][0])
        return backend.grouping.group_sessions(codes, placed.slices, ends, key_count)


class SessionsOperator(FiringOperator):
    """Sessions of mergeable aggregates, fired when the input has ended.

    Parameters
    ----------
    plan : WindowPlan
        On bounded input: whether a row is late depends on the rows before it.
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether the sessions of one advance come in order of their end.
    """

    def __init__(
        self, plan: WindowPlan, kernels: Kernels, *, trace: bool = False, in_order: bool = True
    ) -> None:
        super().__init__(plan, kernels, SessionTable(plan, kernels), trace=trace)
        self._in_order = in_order

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire every session whose last tick the watermark has passed."""
        if watermark <= self._watermark:
            return
        self._watermark = watermark
        entries = self._table.entries()
        due = entries.states[0][0] - 1 <= watermark
        if due.all() and not self._in_order and 0 < len(entries) <= EMISSION_SESSIONS:
            yield self._emit(entries)
            self._table.retain(~due)
            return
        index = np.flatnonzero(due)
        if self._in_order:
            index = index[np.argsort(entries.states[0][0][index], kind="stable")]
        for begin in range(0, len(index), EMISSION_SESSIONS):
            yield self._emit(self._table.select(entries, index[begin : begin + EMISSION_SESSIONS]))
        self._table.retain(~due)

    def _emit(self, entries: Entries) -> Emission:
        def work(_: Backend, each: Map) -> pa.Table:
            columns = zip(self._table.columns, entries.states, strict=True)
            states = {column.partial: state for column, state in columns}
            keys = self._table.keys.decode(entries.codes)
            aggregates = self._plan.query.function.built_in
            results = [*each(lambda bound: lower(bound, states), aggregates)]
            return self._results(keys, [entries.slices, entries.states[0][0]], results)

        results = self._kernels.run(len(entries), work)
        return Emission.of_results(results, self._kernels.take_counters())


def new_table(plan: WindowPlan, kernels: Kernels) -> SliceTable:
    """Return an empty table for the plan's strategy."""
    return (SessionTable if plan.strategy is Strategy.SESSIONS else SliceTable)(plan, kernels)
