"""The slices of a table in a log, by time: a call appends new partials, and reads those that fire.

Several runs may have partials of the same key and slice. They are combined, oldest run first, when
their windows fire; compaction makes them one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from gpu_windows.operators.device import gather
from gpu_windows.operators.slices.table import Entries, SliceTable
from gpu_windows.operators.state.buffer_spec import BufferSpec, no_prefix
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.planning.plan import SLICE
from gpu_windows.rules import LONG_MAX

SliceTicks: TypeAlias = Callable[[int, int], tuple[int, int]]

#: Name of the table in the log.
SLICES = "slices"
#: Entries that are added to the table per kernel call.
_ROWS_PER_CALL = 1 << 17


class StoredSlices:
    """The slices in a log, and which of them are in memory.

    The table holds the partials added since the last `save`; between `load_until` and
    `drop_before`, the partials that fire.

    Parameters
    ----------
    table : SliceTable
        Empty.
    log : StateLog
    slice_ticks : callable
        Returns the first tick of a slice, and the end of a later one.
    live : int
        The first slice that has not expired: all windows of earlier ones have fired.
    """

    def __init__(
        self, table: SliceTable, log: StateLog, slice_ticks: SliceTicks, live: int
    ) -> None:
        self.log, self._table, self._live = log, table, live
        kind = BufferSpec(SLICE, no_prefix, self._compact, in_order=True, to_ticks=slice_ticks)
        self._buffer = RowBuffer(log, SLICES, kind)
        self._new: Entries | None = None  # not saved, while the table holds what fires

    def __len__(self) -> int:
        """Return the number of entries in the log; a key and a slice may have several."""
        return len(self._buffer)

    @property
    def first_slice(self) -> int:
        """The first slice in the log that has not expired; LONG_MAX if all have."""
        return min(self._buffer.first_times, default=LONG_MAX)

    # ---- firing

    def load_until(self, last: int) -> None:
        """Load all slices up to ``last`` into the table, which then has no others."""
        self._new = self._table.entries()
        self._table.clear()
        rows = self._buffer.between(self._live, last)
        if rows is not None:
            self._add(rows)
        self._table.add(self._table.select(self._new, self._new.slices <= last))

    def drop_before(self, live: int) -> None:
        """Empty the table, and expire the slices before ``live``."""
        self._table.clear()
        self._live = live
        self._buffer.forget(live - 1)
        if self._new is not None:
            self._append(self._table.select(self._new, self._new.slices >= live))
            self._new = None

    # ---- saving

    def save(self) -> None:
        """Append the partials added since the last time."""
        if self._table.entry_count:
            entries = self._table.entries()
            self._table.clear()
            self._append(entries)

    def _append(self, entries: Entries) -> None:
        if len(entries):
            self._buffer.append(self._table.to_arrow(entries))

    def _compact(self, rows: pa.Table, *, are_oldest: bool) -> pa.Table:
        """Return entries, oldest first, with one per key and slice: a `Compact`."""
        del are_oldest
        self._add(rows)
        entries = self._table.entries()
        self._table.clear()
        return self._table.to_arrow(entries) if len(entries) < len(rows) else rows

    def _add(self, rows: pa.Table) -> None:
        for part in gather(rows.to_batches(), _ROWS_PER_CALL):
            self._table.add_partials(part)
