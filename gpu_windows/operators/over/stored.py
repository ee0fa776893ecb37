"""All that a streaming OVER query keeps in a store."""

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
from gpu_windows.operators.over.framing import Framing
from gpu_windows.operators.over.key_memory import KeyMemory
from gpu_windows.operators.over.stored_rows import UNTIL, StoredRows
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.pending_rows import NUMBER, PendingRows
from gpu_windows.planning.plan import OverPlan
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]

#: What a store calls rows that wait for the watermark, rows that were given and are in frames to
#: come, and clean-ups.
WAITING, GIVEN, CLEANUPS = "over waiting", "over given", "over clean-ups"
#: The numbers that are saved, and whose they are.
_OWNER, _NUMBERS = "over", ("watermark", "next row")


class StoredOver:
    """The rows, clean-ups and keys of a query in a store.

    Parameters
    ----------
    plan : OverPlan
    kernels : Kernels
    keys : KeyEncoder
    log : StateLog
        Empty, or as `save` has left it.

    Attributes
    ----------
    watermark : int
        The last one.
    waiting : PendingRows
    given : StoredRows
        The rows that were given and are in frames to come.
    memory : KeyMemory
        What is known of keys.
    unbounded, in_time, in_rows : Framing
        Of the frames that begin with the first row, and of the others.
    """

    def __init__(self, plan: OverPlan, kernels: Kernels, keys: KeyEncoder, log: StateLog) -> None:
        over, names = plan.over, plan.query.keys
        self._plan, self._log = plan, log
        self.unbounded, self.in_time, self.in_rows = (
            Framing(plan, kernels, frames)
            for frames in (over.unbounded, over.in_time, over.in_rows)
        )
        self.watermark, number = log.numbers(_OWNER, _NUMBERS) or (LONG_MIN, 0)
        self.waiting = PendingRows(
            log, WAITING, time=plan.query.time, next_number=number, lacking=plan.lacking
        )
        lacking = plan.lacking_of(self.in_time.arguments)
        self.given = StoredRows(log, GIVEN, names, keys, lacking)
        self._cleanups = StoredRows(log, CLEANUPS, names, keys)
        columns, rows = self.unbounded.columns, kept_schema(plan, self.in_rows.arguments)
        lacking = plan.lacking_of(self.in_rows.arguments)
        self.memory = KeyMemory(log, names, keys, columns, rows, lacking)
        self.admission = self._admission(keys)

    def _admission(self, keys: KeyEncoder) -> Admission:
        over = self._plan.over
        match over.lateness:
            case Lateness.LAST_ROW:
                return UpToLastRow(self.memory)
            case Lateness.LAST_TIMER:
                time = self._plan.query.time
                return UpToLastTimer(keys, over.ticks_before, self._cleanups, self.given, time)
        return UpToWatermark(over.ticks_before + over.ticks_after)

    @property
    def knows_keys(self) -> bool:
        """Whether something is kept of every key."""
        over = self._plan.over
        return bool(over.unbounded or over.in_rows)

    def forget(self) -> None:
        """Forget what the watermark ends; at the end of time everything."""
        self.given.buffer.forget(self.watermark)
        self._cleanups.buffer.forget(self.watermark)
        if self.watermark == LONG_MAX:
            self.memory.clear()

    def save(self) -> None:
        """Write what has changed."""
        if self.knows_keys:
            self.memory.save()
        numbers = (self.watermark, self.waiting.next_number)
        self._log.set_numbers(_OWNER, dict(zip(_NUMBERS, numbers, strict=True)))

    @property
    def next_due(self) -> int:
        """The watermark at which rows are given, or there is something to forget; or LONG_MAX."""
        after = self._plan.over.ticks_after
        due = [time + after for time in self.waiting.first_times]
        over = [*self.given.buffer.last_times, *self._cleanups.buffer.last_times]
        return min([*due, *over], default=LONG_MAX)

    def sizes(self) -> dict[str, int]:
        """Return how much there is of each part."""
        return {
            "rows": len(self.waiting) + len(self.given.buffer),
            "timers": len(self._cleanups.buffer),
            "keys": self.memory.count,
        }


def kept_schema(plan: OverPlan, columns: Sequence[str]) -> pa.Schema:
    """Return the schema of rows that were given: some columns, time, and what is ours."""
    own = [pa.field(NUMBER, pa.int64()), pa.field(UNTIL, pa.int64())]
    return pa.schema([*plan.query.in_ticks((*columns, plan.query.time)), *own])
