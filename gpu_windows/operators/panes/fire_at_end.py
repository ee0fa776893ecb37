"""Operator of windows that fire once, at their end: rows are appended to the store by slice.

A call writes its new rows, and reads the rows of the windows that end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.base import Emission, Timers
from gpu_windows.operators.columns.key_groups import groups_of_rows
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.panes.assign import PaneFinder
from gpu_windows.operators.panes.fire_at_end_machine import FireAtEndMachine
from gpu_windows.operators.panes.operator import MachineOperator
from gpu_windows.operators.state.buffer_spec import BufferSpec, no_prefix
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.planning.plan import SLICE
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.window_operator.layout import EVENT_TIMER

Flags = NDArray[np.bool_]

#: Bytes of rows in memory, about, whose windows fire at once; of more, keys fire in parts.
FIRE_BYTES = 1 << 28
#: Maximum number of parts, because each reads all due rows.
MAX_PARTS = 16
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

    Parameters: see `MachineOperator`.
    """

    _machine: FireAtEndMachine

    def _make_machine(self) -> FireAtEndMachine:
        return FireAtEndMachine(self._plan, self._kernels, trace=self._trace)

    @property
    def _finder(self) -> PaneFinder:
        return self._machine.finder

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Buffer rows; results come with the watermark."""
        rejected = self._machine.take(batch, self._watermark, self._processing_time)
        yield self._acknowledge(batch, rejected)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire the windows that end up to ``watermark``, in order of their ends."""
        if watermark <= self._watermark:
            return
        if self._stored is None:
            yield from self._run(EVENT_TIMER, watermark)
        else:
            yield from self._fire_stored(self._stored.rows, watermark)
        self._watermark = watermark
        if self._stored is not None:
            live = self._finder.first_slice(watermark)
            self._stored.rows.forget(live - 1 if live < LONG_MAX else LONG_MAX)

    def _fire_stored(self, buffer: RowBuffer, watermark: int) -> Iterator[Emission]:
        """Fire the windows that end up to ``watermark``; of many rows, of some keys at a time."""
        last = self._finder.last_due(watermark)
        slices = self._finder.first_slice(self._watermark), self._finder.last_slice(last)
        keys = self._plan.query.keys
        parts = 1 + buffer.bytes_between(*slices) // FIRE_BYTES
        count = min(parts, MAX_PARTS) if self._plan.query.has_key else 1
        if count == 1:
            self._load(buffer.between(*slices), last)
            yield from self._run(EVENT_TIMER, watermark)
            return
        self._append_new(buffer)
        for part in range(count):

            def is_in_part(rows: pa.Table, part: int = part) -> Flags:
                groups = groups_of_rows([rows.column(name) for name in keys])
                return np.equal(groups % count, part)

            self._load(buffer.select_between(*slices, is_in_part), last)
            yield from self._run(EVENT_TIMER, watermark)

    def _load(self, rows: pa.Table | None, last: int) -> None:
        """Load those of some stored rows that are in windows that are due."""
        if rows is None:
            return
        first = self._finder.first_open(self._watermark)
        is_due = self._finder.are_in(to_numeric(rows.column(SLICE)).values, first, last)
        if is_due.any():
            self._machine.load_stored_rows(rows.filter(pa.array(is_due)))

    def _append_new(self, buffer: RowBuffer) -> None:
        """Move the buffered rows of this call to the stored ones."""
        rows = self._machine.drain_rows()
        if rows is not None:
            buffer.append(rows)

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
        self._append_new(stored.rows)
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
