"""Rows and timers of keys through a function of the user's (Flink: KeyedProcessOperator).

What it remembers is in `gpu_windows.operators.process.memory`; a store keeps what no call needs
of it (`gpu_windows.operators.keyed.stored`). What the function sees of it is in
`gpu_windows.operators.process.states`, what it may ask in `gpu_windows.operators.process.context`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from gpu_windows.errors import GpuWindowsError
from gpu_windows.functions.keyed_process import Given, RowProcess
from gpu_windows.operators.base import Emission
from gpu_windows.operators.keyed.values import key_part, stored_values
from gpu_windows.operators.process.base import TIMERS_LEFT, FunctionOperator
from gpu_windows.operators.process.context import ProcessFunctionContext
from gpu_windows.operators.process.memory import Key, KeyedState
from gpu_windows.operators.process.opened import OpenedFunction, opened
from gpu_windows.operators.process.output import ProcessOutput
from gpu_windows.planning.plan import ProcessPlan
from gpu_windows.rules import LONG_MAX


class ProcessOperator(FunctionOperator):
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
        query = plan.query
        assert isinstance(query.process, RowProcess)
        self._function = opened(query.process, OpenedFunction)
        self._memory = KeyedState(query, self._function)
        self._output = ProcessOutput(
            plan.result_schema,
            query.side_outputs,
            len(query.keys),
            query.process.name,
            trace=trace,
        )
        self._context = ProcessFunctionContext(query, self._function, self._memory, self._output)
        super().__init__(plan, self._memory)

    # ---- the face of an operator

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Call the timers up to ``watermark`` in time order, those too that timers set."""
        if watermark <= self._memory.watermark:
            return
        if self._stored is not None:
            self._stored.load_due(watermark)
        self._memory.watermark = watermark
        self._memory.show()
        while (timer := self._memory.event_timers.pop_due(watermark)) is not None:
            yield from self._timer("event_time", *timer[:2])
        if watermark == LONG_MAX and self._plan.bounded:
            left = len(self._memory.processing_timers)
            self._output.counts.update({TIMERS_LEFT: left} if left else {})
        yield from self._output.rest()

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Set processing time and call its timers up to ``time`` in time order."""
        self._memory.processing_time = time
        if self._stored is not None:
            self._stored.load_due(time, in_processing_time=True)
        self._memory.show()
        while (timer := self._memory.processing_timers.pop_due(time)) is not None:
            yield from self._timer("processing_time", *timer[:2])
        yield from self._output.rest()

    # ---- rows and timers

    def _rows(self, batch: pa.Table) -> Iterator[Emission]:
        query, output, context = self._plan.query, self._output, self._context
        if self._stored is not None:
            self._stored.load_keys([batch.column(name) for name in query.keys])
        self._memory.show()
        now, emit = self._function.now, output.emit
        keys = zip(*(map(key_part, stored_values(batch[name])) for name in query.keys), strict=True)
        times = batch.column(query.time).cast(pa.int64()).to_pylist()
        output.cause, context.time_domain = ("element", None), ""
        handled = self._function.process.rows(batch)
        for key, timestamp, (handler, row) in zip(keys, times, handled, strict=True):
            now.key, context.timestamp = key, timestamp
            try:
                for given in handler(row, context) or ():
                    emit(key, given)
            except Exception as error:
                raise self._failed(error, handler.__name__, key, row) from error
            if output.is_full:
                yield output.take()
                self._memory.show()
        yield from output.rest()

    def _timer(self, domain: str, at: int, key: Key) -> Iterator[Emission]:
        output, context = self._output, self._context
        self._function.now.key = key
        context.timestamp, context.time_domain, output.cause = at, domain, (domain, at)
        try:
            given: Given = self._function.process.function.on_timer(at, context)  # type: ignore[arg-type]
            for row in given or ():
                output.emit(key, row)
        except Exception as error:
            raise self._failed(error, "on_timer", key, {"time": at}) from error
        if output.is_full:
            yield output.take()
            self._memory.show()

    def _failed(self, error: Exception, handler: str, key: Key, row: Any) -> GpuWindowsError:
        """Return what says which function failed, at which key and row."""
        keys = self._plan.query.keys
        named = ", ".join(f"{name}={part!r}" for name, part in zip(keys, key, strict=True))
        return self._failure(error, handler, f"key {named}, row {row!r}")
