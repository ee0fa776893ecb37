"""Windows of a machine in a log, by key: only those that a call needs are in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import present
from gpu_windows.operators.panes.runner import Machine
from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.keyed_table import HASH, TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.schemas import NOTHING
from gpu_windows.rules.window_operator.layout import Settings

Ints = NDArray[np.int64]

#: Table name of windows and their retained rows in a log.
WINDOWS = "windows"


class StoredWindows:
    """Windows of a machine, of which some are in memory and the others in a log.

    Parameters
    ----------
    machine : Machine
        An empty machine; windows are loaded into it.
    log : StateLog
    numbers : sequence of str
    lacking : pyarrow.Schema
        See `KeyedTable`.

    Attributes
    ----------
    log : StateLog
    table : KeyedTable
        The windows in the log.
    """

    def __init__(
        self,
        machine: Machine,
        log: StateLog,
        numbers: Sequence[str] = (),
        lacking: pa.Schema = NOTHING,
    ) -> None:
        self._machine, self.log = machine, log
        self.table = KeyedTable(log, WINDOWS, self._count_entries, numbers, lacking=lacking)

    # ---- before a call

    def load_keys(self, codes: Ints) -> None:
        """Load all windows of some keys."""
        hashes = self._machine.keys.hashes()
        self._restore(self.table.load(hashes[present(codes, len(hashes))]))

    def load_due(self, until: int, *, in_processing_time: bool = False) -> None:
        """Load all windows of keys that have a timer up to some time."""
        self._restore(self.table.load_due(until, in_processing_time=in_processing_time))

    def _restore(self, found: Entries | None) -> None:
        if found is not None:
            self._machine.restore(found.table, found.rows)

    # ---- after a call

    def save(self, settings: Settings) -> None:
        """Write the windows of the keys that a call has loaded."""
        machine = self._machine
        hashes = machine.keys.hashes()[machine.codes]
        windows, rows = machine.to_tables()
        added = (hashes, *machine.next_timers(settings))
        for name, values in zip((HASH, *TIMERS), added, strict=True):
            windows = windows.append_column(name, pa.array(values))
        self.table.save(Entries(windows, rows if len(rows) else None))

    def _count_entries(self, entries: Entries) -> Mapping[str, int]:
        """Return the number of windows in some entries, and of their retained rows."""
        return {"windows": len(entries), "rows": entries.row_count}

    def clear(self) -> None:
        """Delete everything."""
        self.table.clear()
