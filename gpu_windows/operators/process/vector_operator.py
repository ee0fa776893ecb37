"""Vectorised process functions, called with rows and timers of many keys at once.

Nothing here loops over rows or keys. State in memory is in
`gpu_windows.operators.process.keyed_arrays`, in a log in `gpu_windows.operators.keyed.stored`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any

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
from gpu_windows.operators.keyed.timers import Domain
from gpu_windows.operators.open_functions import call_close, call_open, open_for
from gpu_windows.operators.process.base import FunctionOperator
from gpu_windows.operators.process.keyed_arrays import KeyedArrays
from gpu_windows.operators.results import add_trace
from gpu_windows.planning.kinds.process import ProcessPlan, ProcessQuery

Ints = NDArray[np.int64]


class OpenedVectorFunction:
    """An opened function, and its `RuntimeContext`.

    Attributes
    ----------
    process : VectorProcess
        With its own copy of the query's function.
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
    """Calls a vectorised user function with rows and due timers.

    Parameters
    ----------
    plan : ProcessPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`; the time is null, because a
        call may be for several timers.
    """

    _keyed: KeyedArrays

    def __init__(self, plan: ProcessPlan, *, trace: bool = False) -> None:
        self._process = open_for(plan.query, OpenedVectorFunction).process
        self._trace = trace
        super().__init__(plan, KeyedArrays(plan.query))

    # ---- calls of the function

    def _process_rows(self, batch: pa.Table) -> Iterator[Emission]:
        if len(batch) == 0:
            return
        keyed, query = self._keyed, self._plan.query
        keys, order, offsets = keyed.group_rows(batch)
        if self._stored is not None:
            self._stored.load_keys(keyed.stored_keys(keys))
        times = None
        if query.has_time:
            times = one_chunk(batch.column(query.time).cast(pa.int64())).to_numpy()[order]
        rows = self._process.rows(batch).combine_chunks().take(pa.array(order))
        given = RowsBatch(*self._batch_of_keys(keys, offsets), rows, times)
        yield from self._call(self._process.function.process_batch, given, keys, "element")

    def _call_timers(self, domain: Domain, until: int) -> Iterator[Emission]:
        timers = self._keyed.timers[domain == "processing_time"]
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
        keyed = self._keyed
        times = keyed.watermark, keyed.processing_time
        return keyed.keys(keys), keyed.state.of(keys), offsets, *times

    def _call(
        self,
        handler: Callable[[Any], VectorResult | None],
        batch: KeysBatch,
        keys: Ints,
        cause: str,
    ) -> Iterator[Emission]:
        try:
            found = self._process.check_result(handler(batch), len(batch))
        except Exception as error:
            where = f"a batch of {len(batch)} keys, {batch.offsets[-1]} rows or timers"
            raise self._failure(error, handler, where) from error
        self._apply(found, keys)
        emission = self._emission(found, batch.keys, cause)
        if len(emission.results) or found.counts or any(map(len, emission.sides.values())):
            yield emission

    def _apply(self, found: CheckedResult, keys: Ints) -> None:
        """Apply the changes of state and timers that a function returned for some keys."""
        if found.state is not None:
            self._keyed.state.put(keys, found.state)
        for timers, over, new in zip(
            self._keyed.timers, found.deleted_timers, found.set_timers, strict=True
        ):
            for change, (places, times) in ((timers.delete, over), (timers.set, new)):
                change(keys[places], times)

    def _emission(self, found: CheckedResult, keys: pa.Table, cause: str) -> Emission:
        """Return the emission of the rows that a function returned for some keys."""
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
    """Return rows after their keys."""
    key_columns = keys.take(pa.array(places)).columns
    return pa.Table.from_arrays([*key_columns, *rows.columns], schema=schema)
