"""Operator of sessions that fire once, at their end, on a stream; their rows are read only then.

A call writes its new rows, and their sessions without rows. It reads those sessions, and the rows
of the sessions that end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.errors import StateCorruptedError
from gpu_windows.operators.base import Emission
from gpu_windows.operators.columns.numeric import to_numeric
from gpu_windows.operators.panes.fire_at_end_session_machine import (
    PIECE,
    PLACE,
    FireAtEndSessionMachine,
)
from gpu_windows.operators.panes.operator import BufferOperator
from gpu_windows.operators.panes.stored import StoredWindows
from gpu_windows.operators.panes.tables import count_rows, flatten_lists
from gpu_windows.operators.state.buffer_spec import BufferSpec, KeyColumns
from gpu_windows.operators.state.entries import LISTS, Entries
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.window_operator.layout import Settings

Ints = NDArray[np.int64]

#: Table name of the rows in a log.
ROWS = "session rows"
#: Rows of ended sessions that a log may have in excess of the rows of open ones.
_SLACK = 4_096


class StoredSessions(StoredWindows):
    """The sessions of a machine in a log, with their rows in a table of their own.

    Parameters
    ----------
    machine : FireAtEndSessionMachine
        An empty machine; sessions are loaded into it.
    log : StateLog
    time : str
        The column of the rows' times.
    lacking : pyarrow.Schema
        See `RowBuffer`.

    Attributes
    ----------
    sessions : FireAtEndSessionMachine
    """

    def __init__(
        self, machine: FireAtEndSessionMachine, log: StateLog, time: str, lacking: pa.Schema
    ) -> None:
        super().__init__(machine, log, (LISTS,))  # of pieces
        self.sessions = machine
        kind = BufferSpec(time, _places_of, key_columns=KeyColumns.GROUP, numbers=(PIECE,))
        self._rows = RowBuffer(log, ROWS, kind, lacking)
        if log.rescaling is not None:
            self._drop_taken()

    # ---- before a call

    def load_due(self, until: int, *, in_processing_time: bool = False) -> None:
        """Load all sessions of keys that have a timer up to some time.

        Those that fire are loaded with their rows.

        Raises
        ------
        StateCorruptedError
            If rows of a session are missing from the log.
        """
        super().load_due(until, in_processing_time=in_processing_time)
        if not in_processing_time:
            self._load_due_rows(until)

    def _load_due_rows(self, until: int) -> None:
        self._append()
        places, first, last, pieces, expected = self.sessions.find_ending(until)
        if len(places) == 0:
            return
        rows = self._rows.take(places, first, last, lambda rows: np.isin(_pieces_of(rows), pieces))
        if rows is None or len(rows) != expected:
            count = 0 if rows is None else len(rows)
            rule = "a log has the rows of its sessions"
            raise StateCorruptedError(rule, value=f"{count} of {expected} rows")
        self.sessions.load_stored_rows(rows, until)

    # ---- after a call

    def _append(self) -> None:
        """Write the new rows."""
        rows = self.sessions.drain_rows()
        if rows is not None:
            self._rows.append(rows)

    def save(self, settings: Settings) -> None:
        """Write the sessions of the keys that a call has loaded, and the new rows."""
        self._append()
        super().save(settings)
        if self._rows.consumed_count > self.table.stored["rows"] + _SLACK:
            self._drop_taken()

    def _drop_taken(self) -> None:
        entries = self.table.find_all()
        pieces = np.empty(0, np.int64) if entries is None else flatten_lists(entries.table)
        self._rows.purge_except(lambda rows: np.isin(_pieces_of(rows), pieces))

    def clear(self) -> None:
        """Delete everything."""
        super().clear()
        self._rows.forget(LONG_MAX)

    def _count_entries(self, entries: Entries) -> Mapping[str, int]:
        return {"windows": len(entries), "rows": count_rows(entries.table)}


class FireAtEndSessionsOperator(BufferOperator):
    """Operator of event-time sessions that fire once, at their end, and need their rows then.

    Without a log they retain their rows in memory. Parameters: see `BufferOperator`.
    """

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire the sessions that end up to ``watermark``, in order of their ends."""
        if self._stored is not None and watermark > self._watermark:
            self._flush_buffer()  # what fires has its rows in the log
        yield from super().advance_watermark(watermark)

    def _windows_in(self, log: StateLog) -> StoredWindows:
        """Replace the machine by one whose sessions are in a log; return these."""
        machine = FireAtEndSessionMachine(self._plan, self._kernels, trace=self._trace)
        machine.seen, self._machine = self._machine.seen, machine
        return StoredSessions(machine, log, self._plan.query.time, self._plan.lacking)


def _places_of(rows: pa.Table) -> Ints:
    return to_numeric(rows.column(PLACE)).values


def _pieces_of(rows: pa.Table) -> Ints:
    return to_numeric(rows.column(PIECE)).values
