"""Base of the operators of process functions."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from gpu_windows import rules
from gpu_windows.errors import GpuWindowsError
from gpu_windows.functions.failures import failure
from gpu_windows.operators.base import Emission
from gpu_windows.operators.columns.row_status import status_of_rows
from gpu_windows.operators.counters import Counters, Rejected, rejected_rows
from gpu_windows.operators.keyed.backend import KeyedBackend
from gpu_windows.operators.keyed.operator import KeyedOperator
from gpu_windows.operators.keyed.timers import Domain
from gpu_windows.planning.kinds.process import ProcessPlan

#: Counter of pending timers of processing time when a bounded input ends.
TIMERS_LEFT = "processing_time_timers_left"


class FunctionOperator(KeyedOperator):
    """Calls a user function with rows and timers.

    Parameters
    ----------
    plan : ProcessPlan
    keyed : KeyedBackend
        Empty.
    """

    _plan: ProcessPlan

    def __init__(self, plan: ProcessPlan, keyed: KeyedBackend) -> None:
        super().__init__(plan, keyed)
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

    def _fire_timers(self, domain: Domain, until: int) -> Iterator[Emission]:
        """Call the timers up to ``until`` in time order, including timers that they set."""
        yield from self._call_timers(domain, until)
        at_end = domain == "event_time" and until == rules.LONG_MAX and self._plan.bounded
        if at_end and (left := len(self._keyed.processing_timers)):
            none = self._plan.result_schema.empty_table()
            yield Emission(none, pa.table({}), Counters(user=((TIMERS_LEFT, left),)))

    @abstractmethod
    def _call_timers(self, domain: Domain, until: int) -> Iterator[Emission]:
        """Call the timers up to ``until``."""

    def forget_watermark(self) -> None:
        """Reset the watermark, as a job of Flink does that begins from a savepoint."""
        self._keyed.watermark = rules.LONG_MIN

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
