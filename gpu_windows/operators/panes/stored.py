"""The windows of a machine in a log, by key: only those that a call needs are in memory."""

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

#: What a log calls windows and the rows that they keep.
WINDOWS = "windows"


class StoredWindows:
    """Which windows of a machine are in memory and which are in a log.

    Parameters
    ----------
    machine : Machine
        Empty; what is needed is added.
    log : StateLog
    numbers : sequence of str
    lacking : pyarrow.Schema
        See `KeyedTable`.
    """

    def __init__(
        self,
        machine: Machine,
        log: StateLog,
        numbers: Sequence[str] = (),
        lacking: pa.Schema = NOTHING,
    ) -> None:
        self._machine, self.log = machine, log
        self._table = KeyedTable(log, WINDOWS, self._counted, numbers, lacking=lacking)

    # ---- what a call needs

    def load_keys(self, codes: Ints) -> None:
        """Have all windows of some keys in memory."""
        hashes = self._machine.key_hashes()
        self._restore(self._table.load(hashes[present(codes, len(hashes))]))

    def load_due(self, until: int, *, in_processing_time: bool = False) -> None:
        """Have all windows in memory of keys that have a timer up to some time."""
        self._restore(self._table.load_due(until, in_processing_time=in_processing_time))

    def _restore(self, found: Entries | None) -> None:
        if found is not None:
            self._machine.restore(found.table, found.kept)

    # ---- what a call leaves

    def save(self, settings: Settings) -> None:
        """Write the windows of the keys that a call has looked for."""
        self._table.save(self._entries(settings))

    def _counted(self, entries: Entries) -> Mapping[str, int]:
        """Return how many windows some entries are, and how many rows they keep."""
        return {"windows": len(entries), "rows": entries.kept_count}

    def _entries(self, settings: Settings) -> Entries:
        """Return the windows in memory."""
        machine = self._machine
        hashes = machine.key_hashes()[machine.codes]
        windows, rows = machine.tables()
        added = (hashes, *machine.next_timers(settings))
        for name, values in zip((HASH, *TIMERS), added, strict=True):
            windows = windows.append_column(name, pa.array(values))
        return Entries(windows, rows if len(rows) else None)

    def clear(self) -> None:
        """Forget everything."""
        self._table.clear()

    def next_timers(self) -> tuple[int | None, int | None]:
        """Return the times of the earliest timers of what is stored."""
        return self._table.next_timers()

    def size(self) -> dict[str, int]:
        """Return how much is in the log and not in memory."""
        return dict(self._table.elsewhere)
