"""Rows and timers of many keys at once through a function of the user's.

No step here is taken for each row or key. What it remembers is in
`gpu_windows.operators.process.vector_memory`; a store keeps what no call needs of it
(`gpu_windows.operators.keyed.stored`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.vector_process import (
    KeysBatch,
    RowsBatch,
    TimersBatch,
    VectorProcess,
)
from gpu_windows.functions.vector_results import CheckedResult, VectorResult
from gpu_windows.operators.base import Emission
from gpu_windows.operators.columns.numeric import one_chunk
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.open_functions import call_close, call_open, open_for
from gpu_windows.operators.process.base import TIMERS_LEFT, FunctionOperator
from gpu_windows.operators.process.vector_memory import KeyedArrays
from gpu_windows.operators.results import add_trace
from gpu_windows.planning.kinds.process import ProcessQuery
from gpu_windows.planning.plan import ProcessPlan
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]
Domain = Literal["event_time", "processing_time"]


class OpenedVectorFunction:
    """A function that has been opened; a `RuntimeContext` for it.

    Attributes
    ----------
    process : VectorProcess
        With a function of its own: a copy of the query's.
    keys : tuple of str
    """

    def __init__(self, query: ProcessQuery) -> None:
        assert isinstance(query.process, VectorProcess)
        self.process = replace(query.process, function=copy(query.process.function))
        self.keys = query.keys
        call_open(self.process.function, self, self.close)

    def close(self) -> None:
        """Close the function."""
        call_close(self.process.function)


class VectorProcessOperator(FunctionOperator):
    """Gives rows, and timers that are due, to a vectorised function of the user's.

    Parameters
    ----------
    plan : ProcessPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`; one of timers tells no time,
        for it may be of several.
    """

    def __init__(self, plan: ProcessPlan, *, trace: bool = False) -> None:
        self._process = open_for(plan.query, OpenedVectorFunction).process
        self._memory = KeyedArrays(plan.query)
        self._trace = trace
        super().__init__(plan, self._memory)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Call the timers up to ``watermark``, then those that they set."""
        memory = self._memory
        if watermark <= memory.watermark:
            return
        if self._stored is not None:
            self._stored.load_due(watermark)
        memory.watermark = watermark
        yield from self._fire("event_time", watermark)
        left = len(memory.processing_timers)
        if watermark == LONG_MAX and self._plan.bounded and left:
            none = self._plan.result_schema.empty_table()
            yield Emission(none, pa.table({}), Counters(user=((TIMERS_LEFT, left),)))

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Set processing time and call its timers up to ``time``, then those that they set."""
        self._memory.processing_time = time
        if self._stored is not None:
            self._stored.load_due(time, in_processing_time=True)
        yield from self._fire("processing_time", time)

    # ---- calls of the function

    def _process_rows(self, batch: pa.Table) -> Iterator[Emission]:
        if len(batch) == 0:
            return
        memory, query = self._memory, self._plan.query
        keys, order, offsets = memory.group_rows(batch)
        if self._stored is not None:
            self._stored.load_keys(memory.stored_keys(keys))
        times = None
        if query.has_time:
            times = one_chunk(batch.column(query.time).cast(pa.int64())).to_numpy()[order]
        rows = self._process.rows(batch).combine_chunks().take(pa.array(order))
        given = RowsBatch(*self._batch_of_keys(keys, offsets), rows, times)
        yield from self._call(self._process.function.process_batch, given, keys, "element")

    def _fire(self, domain: Domain, until: int) -> Iterator[Emission]:
        timers = self._memory.timers[domain == "processing_time"]
        while len((due := timers.pop_due(until))[0]):
            codes, times = due
            begins = np.flatnonzero(np.diff(codes, prepend=-1))
            offsets, keys = np.append(begins, len(codes)), codes[begins]
            batch = TimersBatch(*self._batch_of_keys(keys, offsets), times, domain)
            yield from self._call(self._process.function.on_timers, batch, keys, domain)

    def _batch_of_keys(
        self, keys: Ints, offsets: Ints
    ) -> tuple[pa.Table, pa.Table, Ints, int, int]:
        """Return the fields of a batch that describe its keys."""
        memory = self._memory
        times = memory.watermark, memory.processing_time
        return memory.keys(keys), memory.state.of(keys), offsets, *times

    def _call(
        self,
        handler: Callable[[Any], VectorResult | None],
        batch: KeysBatch,
        keys: Ints,
        cause: str,
    ) -> Iterator[Emission]:
        try:
            found = self._process.checked(handler(batch), len(batch))
        except Exception as error:
            where = f"a batch of {len(batch)} keys, {batch.offsets[-1]} rows or timers"
            raise self._failure(error, handler.__name__, where) from error
        self._keep(found, keys)
        emission = self._emission(found, batch.keys, cause)
        if len(emission.results) or found.counts or any(map(len, emission.sides.values())):
            yield emission

    def _keep(self, found: CheckedResult, keys: Ints) -> None:
        """Keep state and timers that a function gave for some keys."""
        if found.state is not None:
            self._memory.state.put(keys, found.state)
        for timers, over, new in zip(
            self._memory.timers, found.deleted_timers, found.set_timers, strict=True
        ):
            for change, (places, times) in ((timers.delete, over), (timers.set, new)):
                change(keys[places], times)

    def _emission(self, found: CheckedResult, keys: pa.Table, cause: str) -> Emission:
        """Return the rows that a function gave for some keys."""
        results = _with_keys(keys, *found.rows, self._plan.result_schema)
        counters = Counters(fired=len(results), user=tuple(sorted(found.counts.items())))
        sides = {
            tag: _with_keys(keys, *found.sides[tag], schema)
            for tag, schema in self._plan.query.side_outputs.items()
        }
        return Emission(
            add_trace(results, cause) if self._trace else results, pa.table({}), counters, sides
        )


def _with_keys(keys: pa.Table, rows: pa.Table, places: Ints, schema: pa.Schema) -> pa.Table:
    """Return rows after the keys that they are of."""
    theirs = keys.take(pa.array(places))
    return pa.Table.from_arrays([*theirs.columns, *rows.columns], schema=schema)
