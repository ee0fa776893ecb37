"""State of a streaming OVER query in a store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.over import Lateness
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.over.admission import (
    Admission,
    UpToLastRow,
    UpToLastTimer,
    UpToWatermark,
)
from gpu_windows.operators.over.expiring_rows import UNTIL, ExpiringRows
from gpu_windows.operators.over.framing import Framing
from gpu_windows.operators.over.key_state import KeyStateStore
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.pending_rows import NUMBER, PendingRows
from gpu_windows.planning.kinds.over import OverPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]

#: Table names of rows that are buffered until the watermark, of emitted rows that later frames
#: need, and of clean-ups.
BUFFERED, EMITTED, CLEANUPS = "over buffered", "over emitted", "over clean-ups"
#: The owner of the saved numbers, and their names.
_OWNER, _NUMBERS = "over", ("watermark", "next row")


class StoredOver:
    """The rows, clean-ups and keys of a query in a store.

    Parameters
    ----------
    plan : OverPlan
    kernels : Kernels
    keys : KeyEncoder
    log : StateLog
        Empty, or as `save` wrote it.

    Attributes
    ----------
    watermark : int
        The current watermark.
    buffered : PendingRows
    emitted : ExpiringRows
        Emitted rows that later frames need.
    key_states : KeyStateStore
        State of the keys.
    unbounded, in_time, in_rows : Framing
        Framing of the frames that begin with the first row, of time, and of rows.
    """

    def __init__(self, plan: OverPlan, kernels: Kernels, keys: KeyEncoder, log: StateLog) -> None:
        over, names = plan.query.over, plan.query.keys
        self._plan, self._log = plan, log
        self.unbounded, self.in_time, self.in_rows = (
            Framing(plan, kernels, frames)
            for frames in (over.unbounded_frames, over.in_time, over.in_rows)
        )
        self.watermark, number = log.numbers(_OWNER, _NUMBERS) or (LONG_MIN, 0)
        self.buffered = PendingRows(
            log, BUFFERED, time=plan.query.time, next_number=number, lacking=plan.lacking
        )
        lacking = plan.lacking_of(self.in_time.arguments)
        self.emitted = ExpiringRows(log, EMITTED, names, keys, lacking)
        self._cleanups = ExpiringRows(log, CLEANUPS, names, keys)
        columns, rows = self.unbounded.columns, retained_schema(plan, self.in_rows.arguments)
        lacking = plan.lacking_of(self.in_rows.arguments)
        self.key_states = KeyStateStore(log, keys, columns, rows, lacking)
        self.admission = self._admission(keys)

    def _admission(self, keys: KeyEncoder) -> Admission:
        over = self._plan.query.over
        match over.lateness:
            case Lateness.LAST_ROW:
                return UpToLastRow(self.key_states)
            case Lateness.LAST_TIMER:
                time = self._plan.query.time
                return UpToLastTimer(keys, over.ticks_before, self._cleanups, self.emitted, time)
        return UpToWatermark(over.ticks_before + over.ticks_after)

    @property
    def has_key_state(self) -> bool:
        """Whether every key has state."""
        over = self._plan.query.over
        return bool(over.unbounded_frames or over.in_rows)

    def expire(self) -> None:
        """Delete the rows that the watermark expires; at the end of time everything."""
        self.emitted.buffer.forget(self.watermark)
        self._cleanups.buffer.forget(self.watermark)
        if self.watermark == LONG_MAX:
            self.key_states.clear()

    def save(self) -> None:
        """Write what has changed."""
        if self.has_key_state:
            self.key_states.save()
        numbers = (self.watermark, self.buffered.next_number)
        self._log.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))

    @property
    def next_due(self) -> int:
        """The next watermark that emits or expires rows, or LONG_MAX."""
        after = self._plan.query.over.ticks_after
        due = [time + after for time in self.buffered.first_times]
        expiring = [*self.emitted.buffer.last_times, *self._cleanups.buffer.last_times]
        return min([*due, *expiring], default=LONG_MAX)

    def sizes(self) -> dict[str, int]:
        """Return the number of entries of each kind."""
        return {
            "rows": len(self.buffered) + len(self.emitted.buffer),
            "timers": len(self._cleanups.buffer),
            "keys": self.key_states.count,
        }


def retained_schema(plan: OverPlan, columns: Sequence[str]) -> pa.Schema:
    """Return the schema of emitted rows: some columns, the time, `NUMBER` and `UNTIL`."""
    own = [pa.field(NUMBER, pa.int64()), pa.field(UNTIL, pa.int64())]
    return pa.schema([*plan.query.in_ticks((*columns, plan.query.time)), *own])
