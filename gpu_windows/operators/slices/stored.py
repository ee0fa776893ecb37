"""The slices of a table in a log, by time: a call appends what it brings, and reads what fires.

A key and a slice may be in several runs. They are read when their windows fire, and combined, the
older first; where runs are merged they become one.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from gpu_windows import rules
from gpu_windows.operators.columns.batches import gather
from gpu_windows.operators.slices.table import Entries, SliceTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.operators.state.row_kind import RowKind, one_place
from gpu_windows.planning.plan import SLICE
from gpu_windows.rules import LONG_MAX

#: What a log calls them.
SLICES = "slices"
#: Entries that are added to the table at once.
_ROWS_TOGETHER = 1 << 17


class StoredSlices:
    """The slices in a log, and which of them are in memory.

    The table holds what came since the last call of `save`, and after `load_until` what fires,
    until `drop_before`.

    Parameters
    ----------
    table : SliceTable
        Empty.
    log : StateLog
    grid : Grid
    live : int
        The first slice that has not expired: all windows of those before have fired.
    """

    def __init__(self, table: SliceTable, log: StateLog, grid: rules.Grid, live: int) -> None:
        self.log, self._table, self._live = log, table, live
        kind = RowKind(
            SLICE, one_place, self._compact, in_order=True, to_ticks=partial(slice_ticks, grid)
        )
        self._buffer = RowBuffer(log, SLICES, kind)
        self._new: Entries | None = None  # what came, while the table holds what fires

    def __len__(self) -> int:
        """Return how many entries the log has; a key and a slice may have several."""
        return len(self._buffer)

    @property
    def least(self) -> int:
        """The least slice in the log that has not expired; LONG_MAX if there is none."""
        return min(self._buffer.first_times, default=LONG_MAX)

    # ---- what fires

    def load_until(self, last: int) -> None:
        """Have all slices up to ``last`` in memory, and no others."""
        self._new = self._table.entries()
        self._table.clear()
        rows = self._buffer.between(self._live, last)
        if rows is not None:
            self._add(rows)
        self._table.add(self._table.select(self._new, self._new.slices <= last))

    def drop_before(self, live: int) -> None:
        """Forget what is in memory, and for good the slices before ``live``."""
        self._table.clear()
        self._live = live
        self._buffer.forget(live - 1)
        if self._new is not None:
            self._append(self._table.select(self._new, self._new.slices >= live))
            self._new = None

    # ---- what a call leaves

    def save(self) -> None:
        """Append what came since the last time."""
        if self._table.waiting:
            entries = self._table.entries()
            self._table.clear()
            self._append(entries)

    def _append(self, entries: Entries) -> None:
        if len(entries):
            self._buffer.append(self._table.to_arrow(entries))

    def _compact(self, rows: pa.Table, *, are_oldest: bool) -> pa.Table:
        """Return some entries, from the oldest on, with one of each key and slice: a `Compact`."""
        del are_oldest
        self._add(rows)
        entries = self._table.entries()
        self._table.clear()
        return self._table.to_arrow(entries) if len(entries) < len(rows) else rows

    def _add(self, rows: pa.Table) -> None:
        """Add entries to the table."""
        for part in gather(rows.to_batches(), _ROWS_TOGETHER):
            self._table.add_partials(part)


def slice_ticks(grid: rules.Grid, first: int, last: int) -> tuple[int, int]:
    """Return the first tick of a slice, and the end of a later one."""
    return rules.slice_start(first, grid), rules.slice_start(last + 1, grid)
