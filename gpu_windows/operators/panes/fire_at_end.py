"""Operator of windows that fire once, at their end: rows are appended to the store by slice.

A call writes its new rows, and reads the rows of the windows that end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gpu_windows.operators.base import Emission, Timers
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.panes.assign import PaneFinder
from gpu_windows.operators.panes.fire_at_end_machine import FireAtEndMachine
from gpu_windows.operators.panes.operator import MachineOperator
from gpu_windows.operators.state.buffer_spec import BufferSpec, no_prefix
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import SLICE
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.window_operator.layout import EVENT_TIMER

#: Table name of the rows in a log.
ROWS = "buffered rows"


@dataclass
class StoredBuffer:
    """The buffered rows in a log.

    Parameters
    ----------
    log : StateLog
    rows : RowBuffer
        The rows by slice.
    """

    log: StateLog
    rows: RowBuffer


class FireAtEndOperator(MachineOperator[StoredBuffer]):
    """Operator of event-time windows that fire once, at their end, and need their rows then.

    Parameters
    ----------
    plan : WindowPlan
    kernels : Kernels
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    in_order : bool
        Whether results come in order of firing.
    """

    _machine: FireAtEndMachine

    def __init__(
        self, plan: WindowPlan, kernels: Kernels, *, trace: bool = False, in_order: bool = True
    ) -> None:
        machine = FireAtEndMachine(plan, kernels, trace=trace)
        super().__init__(plan, kernels, machine, in_order=in_order)
        self._finder = PaneFinder(plan)

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Buffer rows; results come with the watermark."""
        rejected = self._machine.take(batch, self._watermark, self._processing_time)
        yield self._acknowledge(batch, rejected)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire the windows that end up to ``watermark``, in order of their ends."""
        if watermark <= self._watermark:
            return
        last = self._finder.last_due(watermark)
        if self._stored is not None:
            self._load(self._stored.rows, last)
        yield from self._run(EVENT_TIMER, watermark)
        self._watermark = watermark
        if self._stored is not None:
            live = self._finder.first_slice(watermark)
            self._stored.rows.forget(live - 1 if live < LONG_MAX else LONG_MAX)

    def _load(self, buffer: RowBuffer, last: int) -> None:
        """Load the rows of the windows that are due."""
        first = self._finder.first_open(self._watermark)
        rows = buffer.between(
            self._finder.first_slice(self._watermark), self._finder.last_slice(last)
        )
        if rows is None:
            return
        is_due = self._finder.are_in(to_numeric(rows.column(SLICE)).values, first, last)
        if is_due.any():
            self._machine.load_stored_rows(rows.filter(pa.array(is_due)))

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Set processing time; no window depends on it."""
        self._processing_time = time
        yield from ()

    # ---- in a log

    def _restore_state(self, log: StateLog) -> StoredBuffer:
        """Open the stored rows."""
        self._load_numbers(log)
        ticks = self._finder.slice_bounds
        kind = BufferSpec(SLICE, no_prefix, self._compact, in_order=True, to_ticks=ticks)
        return StoredBuffer(log, RowBuffer(log, ROWS, kind, self._plan.lacking))

    def _compact(self, rows: pa.Table, *, are_oldest: bool) -> pa.Table:
        """Return the rows that windows may still need: a `Compact`."""
        del are_oldest
        return self._machine.prune_rows(rows)

    def _save(self, stored: StoredBuffer) -> None:
        """Append the new rows."""
        rows = self._machine.drain_rows()
        if rows is not None:
            stored.rows.append(rows)
        self._save_numbers(stored.log)

    def _next_timers(self, stored: StoredBuffer) -> Timers:
        """Return the last tick of the first window that may have rows and has not fired."""
        times = stored.rows.first_times
        if not times:
            return None, None
        window = max(
            self._finder.first_window(min(times)), self._finder.first_open(self._watermark)
        )
        _, last = self._finder.bounds(np.array([window]))
        return int(last[0]), None

    def state_size(self) -> dict[str, int]:
        """Return the number of buffered rows, in memory and in the log."""
        stored = 0 if self._stored is None else len(self._stored.rows)
        return {"rows": self._machine.buffered_count + stored}
