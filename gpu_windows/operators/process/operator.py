"""Rows and timers of keys through a function of the user's (Flink: KeyedProcessOperator).

What it remembers is in `gpu_windows.operators.process.memory`; a store keeps what no call needs
of it (`gpu_windows.operators.keyed.stored`). What the function sees of it is in
`gpu_windows.operators.process.states`, what it may ask in `gpu_windows.operators.process.context`.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_windows import rules
from gpu_windows.errors import (
    FunctionFailedError,
    GpuWindowsError,
    InvalidFunctionError,
    StateError,
)
from gpu_windows.operators.base import Emission, StatefulOperator, Timers
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.keyed.stored import StoredMemory
from gpu_windows.operators.keyed.timers import TimerQueue
from gpu_windows.operators.keyed.values import key_parts
from gpu_windows.operators.process import opened as functions
from gpu_windows.operators.process.context import ProcessFunctionContext
from gpu_windows.operators.process.memory import Key, KeyedState
from gpu_windows.operators.process.opened import OpenedFunction, opened
from gpu_windows.operators.process.output import ProcessOutput
from gpu_windows.operators.rejected import Rejected, given_back
from gpu_windows.operators.state.store import Store
from gpu_windows.planning.plan import ProcessPlan
from gpu_windows.rules import LONG_MAX

#: Counter of timers of processing time that wait when a bounded input ends.
TIMERS_LEFT = "processing_time_timers_left"
#: Rows after which it is looked whether there is enough to be handed over.
_LOOKS = 64
#: Objects that are made until Python looks for cycles of garbage again: those of many rows.
_OBJECTS = 100_000


class ProcessOperator(StatefulOperator[StoredMemory]):
    """Gives rows, and timers that are due, to a function of the user's.

    Parameters
    ----------
    plan : ProcessPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.

    Notes
    -----
    Source: org.apache.flink.streaming.api.operators.KeyedProcessOperator and
    co.KeyedCoProcessOperator.
    """

    def __init__(self, plan: ProcessPlan, *, trace: bool = False) -> None:
        self._plan = plan
        query = plan.query
        self._function: OpenedFunction = opened(query.process)
        self._memory = KeyedState(query, self._function)
        self._output = ProcessOutput(
            plan.result_schema,
            query.side_outputs,
            len(query.keys),
            query.process.name,
            trace=trace,
        )
        self._context = ProcessFunctionContext(query, self._function, self._memory, self._output)
        if plan.bounded:  # of which time passes, though nothing waits for it
            self._memory.processing_time = time.time_ns() // 1_000

    # ---- the face of an operator

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows, in order of arrival; see `Operator.process`. To be drained."""
        rejected = self._rejected(batch)
        rows = batch
        if len(rejected):
            kept = np.ones(len(batch), np.bool_)
            kept[rejected.places] = False
            rows = batch.filter(pa.array(kept))
        self._recall(rows)
        with _few_collections():
            yield from self._rows(rows)
        none = self._plan.result_schema.empty_table()
        yield from self._output.rest()
        yield Emission(none, given_back(batch, rejected), self._counted(batch, rejected))

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Call the timers up to ``watermark`` in time order, those too that timers set."""
        if watermark <= self._memory.watermark:
            return
        if self._stored is not None:
            self._stored.load_due(watermark)
        self._memory.watermark = watermark
        with _few_collections():
            yield from self._timers("event_time", self._memory.event_timers, watermark)
        if watermark == LONG_MAX and self._plan.bounded:
            left = len(self._memory.processing_timers)
            self._output.counts.update({TIMERS_LEFT: left} if left else {})
        yield from self._output.rest()

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Set processing time and call its timers up to ``time`` in time order."""
        self._memory.processing_time = time
        if self._stored is not None:
            self._stored.load_due(time, in_processing_time=True)
        with _few_collections():
            yield from self._timers("processing_time", self._memory.processing_timers, time)
        yield from self._output.rest()

    def state_size(self) -> dict[str, int]:
        """Return how many entries of each kind are held, in memory and in the store."""
        held = self._memory.size()
        stored = {} if self._stored is None else self._stored.size()
        return {name: count + stored.get(name, 0) for name, count in held.items()}

    def close(self) -> None:
        """Close the function."""
        functions.close(self._plan.query.process.token)

    def _restored(self, store: Store) -> StoredMemory:
        """Know the keys that the store holds: they are read when their rows or timers come."""
        return StoredMemory(self._memory, store)

    def _save(self, stored: StoredMemory) -> None:
        """Write what is remembered of the keys that were looked for."""
        stored.save()

    def _next_timers(self, stored: StoredMemory) -> Timers:
        """Return the times of the earliest timers."""
        return stored.next_timers()

    # ---- rows and timers

    def _recall(self, rows: pa.Table) -> None:
        """Have all in memory that is of the keys of some rows."""
        if self._stored is not None:
            self._stored.load_keys([rows.column(name) for name in self._plan.query.keys])

    def _counted(self, batch: pa.Table, rejected: Rejected) -> Counters:
        """Count the rows of a batch."""
        del batch
        return rejected.counts()

    def _rejected(self, batch: pa.Table) -> Rejected:
        """Return the rows without a time, where rows need one."""
        query, status = self._plan.query, np.zeros(len(batch), np.int8)
        times = batch.column(query.time)
        if query.needs_time and times.null_count:
            status[times.is_null().to_numpy(zero_copy_only=False)] = rules.NULL
        return Rejected.of(status)

    def _rows(self, batch: pa.Table) -> Iterator[Emission]:
        query, output, context = self._plan.query, self._output, self._context
        now, emit = self._function.now, output.emit
        keys = zip(*(key_parts(batch[name]) for name in query.keys), strict=True)
        times = batch.column(query.time).cast(pa.int64()).to_pylist()
        output.cause, context.time_domain = ("element", None), ""
        self._memory.show()
        handled = self._function.process.rows(batch)
        for number, (key, at, (handler, row)) in enumerate(zip(keys, times, handled, strict=True)):
            now.key, context.timestamp = key, at
            try:
                for given in handler(row, context) or ():
                    emit(key, given)
            except StateError:
                raise
            except Exception as error:
                raise self._failure(error, handler.__name__, key, row) from error
            if not number % _LOOKS and output.is_full:
                yield output.take()
                self._memory.show()

    def _timers(self, domain: str, queue: TimerQueue[Key], until: int) -> Iterator[Emission]:
        """Call the timers of a time up to ``until``."""
        output, context, now = self._output, self._context, self._function.now
        on_timer: Any = self._function.process.function.on_timer
        context.time_domain = domain
        self._memory.show()
        while (timer := queue.pop_due(until)) is not None:
            at, key, _ = timer
            now.key, context.timestamp, output.cause = key, at, (domain, at)
            try:
                for given in on_timer(at, context) or ():
                    output.emit(key, given)
            except StateError:
                raise
            except Exception as error:
                raise self._failure(error, "on_timer", key, {"time": at}) from error
            if output.is_full:
                yield output.take()
                self._memory.show()

    def _failure(
        self, error: Exception, handler: str, key: Key | None, row: Any
    ) -> GpuWindowsError:
        """Return what says which function failed, at which key, if one is at hand, and row.

        The function is closed: the next operator opens it anew.
        """
        try:
            self.close()
        except Exception as other:  # noqa: BLE001 - what failed first is told
            error.add_note(f"closing the function failed, too: {other!r}")
        process, keys = self._plan.query.process, self._plan.query.keys
        where = f"in {process.name}.{handler}, at "
        if key is not None:
            named = (f"{name}={part!r}" for name, part in zip(keys, key, strict=True))
            where += f"key {', '.join(named)}, "
        where += f"row {row!r}"
        if isinstance(error, InvalidFunctionError):
            rule = f"{error.rule} ({where})"
            return InvalidFunctionError(rule, value=error.value, column=error.column)
        return FunctionFailedError(f"{where}: {type(error).__name__}: {error}")


@contextmanager
def _few_collections() -> Iterator[None]:
    """Have Python look for cycles of garbage less often: rows are many, and in none."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _OBJECTS) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
