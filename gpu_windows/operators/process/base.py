"""Base of the operators of process functions."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa

from gpu_windows import rules
from gpu_windows.errors import GpuWindowsError
from gpu_windows.functions.failures import failure
from gpu_windows.operators import open_functions
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.columns.row_status import status_of_rows
from gpu_windows.operators.counters import Counters, Rejected, rejected_rows
from gpu_windows.operators.keyed.stored import KeyedStateBackend, StoredKeyedState
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.process import ProcessPlan

#: Counter of pending timers of processing time when a bounded input ends.
TIMERS_LEFT = "processing_time_timers_left"


class SizedStateBackend(KeyedStateBackend, Protocol):
    """State and timers of keys, and their size."""

    def size(self) -> Mapping[str, int]:
        """Return the number of entries of each kind."""


class FunctionOperator(StatefulOperator[StoredKeyedState]):
    """Calls a user function with rows and timers.

    Parameters
    ----------
    plan : ProcessPlan
    keyed : SizedStateBackend
        Empty.
    """

    def __init__(self, plan: ProcessPlan, keyed: SizedStateBackend) -> None:
        self._plan, self._backend = plan, keyed
        if plan.bounded:  # functions may read the clock, though no timer fires
            keyed.processing_time = time.time_ns() // 1_000

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Process rows in order of arrival; see `Operator.process`. To be drained."""
        rejected = Rejected.of(status_of_rows(self._plan.query, batch))
        timed = batch
        if len(rejected):
            timed = batch.filter(pa.array(rejected.accepted_mask))
        yield from self._process_rows(timed)
        none = self._plan.result_schema.empty_table()
        yield Emission(none, rejected_rows(batch, rejected), self._count_rows(batch, rejected))

    def _count_rows(self, batch: pa.Table, rejected: Rejected) -> Counters:
        """Count the rows of a batch."""
        del batch
        return rejected.counts()

    @abstractmethod
    def _process_rows(self, batch: pa.Table) -> Iterator[Emission]:
        """Process rows, which have a time if the query needs one."""

    def state_size(self) -> dict[str, int]:
        """Return the number of entries of each kind, in memory and in the store."""
        in_memory = self._backend.size()
        stored = {} if self._stored is None else self._stored.size()
        return {name: count + stored.get(name, 0) for name, count in in_memory.items()}

    def forget_watermark(self) -> None:
        """Reset the watermark, as a job of Flink does that begins from a savepoint."""
        self._backend.watermark = rules.LONG_MIN

    def close(self) -> None:
        """Close the function."""
        open_functions.close(self._plan.query.token)

    def _failure(self, error: Exception, handler: Callable[..., Any], at: str) -> GpuWindowsError:
        """Return an error that names the failed function and its input.

        The function is closed, so the next operator opens it again.
        """
        try:
            self.close()
        except Exception as other:  # noqa: BLE001 - what failed first is told
            error.add_note(f"closing the function failed, too: {other!r}")
        where = f"{self._plan.query.process.name}.{handler.__name__}, at {at}"
        return failure(error, where, handler)

    # ---- in a log

    def _restore_state(self, log: StateLog) -> StoredKeyedState:
        """Open the stored keys; they are read when their rows or timers come."""
        return StoredKeyedState(self._backend, log)

    def _save(self, stored: StoredKeyedState) -> None:
        """Write the keys that were loaded."""
        stored.save()

    def _next_timers(self, stored: StoredKeyedState) -> Timers:
        """Return the times of the earliest timers."""
        return stored.next_timers()
