"""Sessions that fire once, at their end, on a stream: their rows are appended, and read then.

What a call writes are the rows that came in it, and their sessions without rows; what it reads are
those sessions, and the rows of the sessions that end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.errors import StateCorruptedError
from gpu_windows.operators.base import Emission
from gpu_windows.operators.columns.lanes import to_lane
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.panes.deferring_sessions import PIECE, PLACE, DeferringSessionMachine
from gpu_windows.operators.panes.operator import BufferOperator
from gpu_windows.operators.panes.stored import StoredWindows
from gpu_windows.operators.panes.tables import lists_of, rows_held
from gpu_windows.operators.state.entries import LISTS, Entries
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.row_buffer import RowBuffer
from gpu_windows.operators.state.row_kind import KeyColumns, RowKind
from gpu_windows.planning.plan import WindowPlan
from gpu_windows.rules import LONG_MAX
from gpu_windows.rules.window_operator.layout import Settings

Ints = NDArray[np.int64]

#: What a log calls the rows.
ROWS = "session rows"
#: Rows of sessions that have ended which may lie in a log beyond as many as there are of others.
_SLACK = 4_096


class StoredSessions(StoredWindows):
    """The sessions of a machine in a log, and their rows beside them.

    Parameters
    ----------
    machine : DeferringSessionMachine
        Empty; what is needed is added.
    log : StateLog
    time : str
        The column of the rows' times.
    lacking : pyarrow.Schema
        See `RowBuffer`.

    Attributes
    ----------
    sessions : DeferringSessionMachine
    """

    def __init__(
        self, machine: DeferringSessionMachine, log: StateLog, time: str, lacking: pa.Schema
    ) -> None:
        super().__init__(machine, log, (LISTS,))  # of pieces
        self.sessions = machine
        kind = RowKind(time, _places, key_columns=KeyColumns.GROUP, numbers=(PIECE,))
        self._rows = RowBuffer(log, ROWS, kind, lacking)
        if log.rescaling is not None:
            self._leave_out_taken()

    # ---- what a call needs

    def load_due(self, until: int, *, in_processing_time: bool = False) -> None:
        """Have all sessions in memory of keys that have a timer up to some time.

        Those that fire have their rows.

        Raises
        ------
        StateCorruptedError
            If the log does not have all of these.
        """
        super().load_due(until, in_processing_time=in_processing_time)
        if not in_processing_time:
            self._lend(until)

    def _lend(self, until: int) -> None:
        self._append()
        places, first, last, pieces, held = self.sessions.ending(until)
        if len(places) == 0:
            return
        rows = self._rows.take(places, first, last, lambda rows: np.isin(_pieces(rows), pieces))
        if rows is None or len(rows) != held:
            count = 0 if rows is None else len(rows)
            rule = "a log has the rows of its sessions"
            raise StateCorruptedError(rule, value=f"{count} of {held} rows")
        self.sessions.lend(rows, until)

    # ---- what a call leaves

    def _append(self) -> None:
        """Write the rows that came."""
        rows = self.sessions.hand_over()
        if rows is not None:
            self._rows.append(rows)

    def save(self, settings: Settings) -> None:
        """Write the sessions of the keys that a call has looked for, and the rows that came."""
        self._append()
        super().save(settings)
        if self._rows.taken_count > self._table.stored["rows"] + _SLACK:
            self._leave_out_taken()

    def _leave_out_taken(self) -> None:
        entries = self._table.find_all()
        pieces = np.empty(0, np.int64) if entries is None else lists_of(entries.table)
        self._rows.leave_out_taken(lambda rows: np.isin(_pieces(rows), pieces))

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self._rows.forget(LONG_MAX)

    def _counted(self, entries: Entries) -> Mapping[str, int]:
        return {"windows": len(entries), "rows": rows_held(entries.table)}


class DeferredSessionsOperator(BufferOperator):
    """Sessions of event time that fire once, at their end, and need their rows then.

    Without a log they hold them. Parameters: see `BufferOperator`.
    """

    def __init__(
        self, plan: WindowPlan, kernels: Kernels, *, trace: bool = False, in_order: bool = True
    ) -> None:
        super().__init__(plan, kernels, trace=trace, in_order=in_order)
        self._trace = trace

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire the sessions that end up to ``watermark``, in order of their ends."""
        if self._stored is not None and watermark > self._watermark:
            self._take_waiting()  # what fires has its rows in the log
        yield from super().advance_watermark(watermark)

    def _windows_in(self, log: StateLog) -> StoredWindows:
        """Have another machine, and know what a log has of its sessions."""
        machine = DeferringSessionMachine(self._plan, self._kernels, trace=self._trace)
        machine.seen, self._machine = self._machine.seen, machine
        return StoredSessions(machine, log, self._plan.query.time, self._plan.lacking)


def _places(rows: pa.Table) -> Ints:
    return to_lane(rows.column(PLACE)).values


def _pieces(rows: pa.Table) -> Ints:
    return to_lane(rows.column(PIECE)).values
