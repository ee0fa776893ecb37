"""Keyed process functions, called with single rows and timers (Flink: KeyedProcessOperator).

State in memory is in `gpu_windows.operators.process.keyed_state`, in a log in
`gpu_windows.operators.keyed.stored`; the handles of the function are in
`gpu_windows.operators.process.states`, its contexts in `gpu_windows.operators.process.context`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, cast

import pyarrow as pa

from gpu_windows.errors import GpuWindowsError, StateError
from gpu_windows.functions.checked_results import as_rows
from gpu_windows.functions.failures import describe_key, describe_row, describe_time
from gpu_windows.operators.base import Emission
from gpu_windows.operators.keyed.backend import Key
from gpu_windows.operators.keyed.timers import Domain
from gpu_windows.operators.keyed.values import UserKey, key_parts
from gpu_windows.operators.open_functions import open_for
from gpu_windows.operators.process.base import FunctionOperator
from gpu_windows.operators.process.context import ProcessFunctionContext
from gpu_windows.operators.process.garbage import few_collections
from gpu_windows.operators.process.keyed_state import KeyedState
from gpu_windows.operators.process.open_function import OpenedFunction
from gpu_windows.operators.process.output import ELEMENT, ProcessOutput
from gpu_windows.planning.kinds.process import ProcessPlan

#: Rows after which it is looked whether there is enough to be handed over.
_LOOKS = 64


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

    _keyed: KeyedState
    #: Class of the opened function.
    _opens: ClassVar[type[OpenedFunction]] = OpenedFunction

    def __init__(self, plan: ProcessPlan, *, trace: bool = False) -> None:
        query = plan.query
        self._function = open_for(query, self._opens)
        super().__init__(plan, KeyedState(query, self._function))
        self._output = ProcessOutput(plan, trace=trace)
        self._context = ProcessFunctionContext(query, self._function, self._keyed, self._output)

    # ---- rows and timers

    def _process_rows(self, batch: pa.Table) -> Iterator[Emission]:
        if self._stored is not None:
            self._stored.load_keys([batch.column(name) for name in self._plan.query.keys])
        with few_collections():
            yield from self._each(batch)
        yield from self._output.rest()

    def _each(self, batch: pa.Table) -> Iterator[Emission]:
        query, output, context = self._plan.query, self._output, self._context
        now, emit = self._function.now, output.emit
        keys = zip(*(key_parts(batch[name]) for name in query.keys), strict=True)
        times = batch.column(query.time).cast(pa.int64()).to_pylist()
        context.time_domain = ""
        self._bind_state()
        handled = self._function.process.rows(batch)
        for number, (key, at, (handler, row)) in enumerate(zip(keys, times, handled, strict=True)):
            origin = key, at, handler, ELEMENT
            now.key, context.timestamp, output.origin = key, at, origin
            try:
                for given in as_rows(handler(row, context)):
                    emit(origin, given)
            except StateError:
                raise
            except Exception as error:
                place = describe_row(row, at if self._plan.query.needs_time else None)
                raise self._describe_failure(error, handler, key, place) from error
            if not number % _LOOKS and output.is_full:
                yield output.take()
                self._bind_state()

    def _call_timers(self, domain: Domain, until: int) -> Iterator[Emission]:
        with few_collections():
            yield from self._each_timer(domain, until)
        yield from self._output.rest()

    def _each_timer(self, domain: Domain, until: int) -> Iterator[Emission]:
        output, context, now = self._output, self._context, self._function.now
        keyed, on_timer = self._keyed, cast(Any, self._function.process.function).on_timer
        queue = keyed.event_timers if domain == "event_time" else keyed.processing_timers
        context.time_domain = domain
        self._bind_state()
        while (timer := queue.pop_due(until)) is not None:
            at, key, _ = timer
            origin = key, at, on_timer, domain
            now.key, context.timestamp, output.origin = key, at, origin
            try:
                for given in as_rows(on_timer(at, context)):
                    output.emit(origin, given)
            except StateError:
                raise
            except Exception as error:
                place = f"timer of {describe_time(at)}"
                raise self._describe_failure(error, on_timer, key, place) from error
            if output.is_full:
                yield output.take()
                self._bind_state()

    def _bind_state(self) -> None:
        """Bind the handles of the function to the state of this operator."""
        self._keyed.bind()

    def _describe_failure(
        self, error: Exception, handler: Callable[..., Any], key: Key, place: str
    ) -> GpuWindowsError:
        """Return an error that names the failed function, the key, and the row or timer."""
        user_key = UserKey(self._plan.query.display_key_fields)(key)
        return self._failure(error, handler, f"{describe_key(user_key)}, {place}")
