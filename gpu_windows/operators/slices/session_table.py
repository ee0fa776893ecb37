"""In-memory state of the sessions strategy: the partials of each session of each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.columns.partials import State
from gpu_windows.operators.columns.row_status import status_of_rows
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.rejected import Rejected
from gpu_windows.operators.slices.table import KeyedRows, Placed, SliceTable
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import Strategy


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
        return backend.sessions.group(codes, placed.slices, ends, key_count)


def new_table(plan: WindowPlan, kernels: Kernels) -> SliceTable:
    """Return an empty table for the plan's strategy."""
    return (SessionTable if plan.strategy is Strategy.SESSIONS else SliceTable)(plan, kernels)
