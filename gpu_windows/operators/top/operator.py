"""Operators of the first rows of keys, on bounded input and on streams."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.top_changes import change_names
from gpu_windows.operators.base import Emission, Operator, StatefulOperator, Timers
from gpu_windows.operators.columns.keys import KeyEncoder, present
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.results import add_trace
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.operators.top.stored import StoredTop, top_schema
from gpu_windows.operators.top.top_rows import TopRows
from gpu_windows.planning.kinds.top import TopPlan
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]


class _TopBase(Operator):
    """Base of both operators: keys, and results of changes.

    Parameters
    ----------
    plan : TopPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(self, plan: TopPlan, *, trace: bool = False) -> None:
        self._plan, self._trace = plan, trace
        names = plan.query.keys
        self._keys = KeyEncoder([plan.query.schema.field(name).type for name in names])

    def _read(self, batch: pa.Table) -> tuple[Ints, pa.Table]:
        """Return the key codes of rows, and the columns that are needed of them."""
        query = self._plan.query
        codes = self._keys.encode([batch.column(name) for name in query.keys])
        return codes, batch.select(query.top.columns)

    def _make_emission(self, top_rows: TopRows) -> Emission:
        """Return the changes of the table of the first rows."""
        top, schema = self._plan.query.top, self._plan.result_schema
        changed = top_rows.flush_changes()
        rows = changed.rows
        columns = [*self._keys.decode(rows.codes), *rows.table.columns[: len(top.carried)]]
        if top.number is not None:
            columns.append(pa.array(changed.numbers))
        columns.append(change_names(changed.changes))
        pairs = zip(columns, schema.types, strict=True)
        results = pa.Table.from_arrays([column.cast(t) for column, t in pairs], schema=schema)
        results = add_trace(results, "element") if self._trace else results
        return Emission(results, pa.table({}), Counters(fired=len(results)))

    def _acknowledge(self, batch: pa.Table) -> Emission:
        """Return the emission that acknowledges a batch of rows, without results."""
        none = self._plan.result_schema.empty_table()
        return Emission(none, pa.table({}), Counters(rows=len(batch)))


class BoundedTopOperator(_TopBase):
    """Operator of the first rows of keys on bounded input; it emits them at the end, once.

    Parameters: see `_TopBase`.
    """

    def __init__(self, plan: TopPlan, *, trace: bool = False) -> None:
        super().__init__(plan, trace=trace)
        self._rows = TopRows(plan.query.top, top_schema(plan))

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Add rows; the first ones are buffered until the end."""
        self._rows.add_rows(*self._read(batch))
        yield self._acknowledge(batch)

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Emit the first rows at the end of time."""
        if watermark == LONG_MAX:
            yield self._make_emission(self._rows)

    def state_size(self) -> dict[str, int]:
        """Return the number of buffered rows."""
        return {"rows": len(self._rows)}


class TopOperator(_TopBase, StatefulOperator[StoredTop]):
    """Operator of the first rows of keys on a stream; it emits changes after each micro-batch.

    Parameters: see `_TopBase`.
    """

    _clock = 0

    def _restore_state(self, log: StateLog) -> StoredTop:
        return StoredTop(self._plan, self._keys, log)

    @property
    def _state(self) -> StoredTop:
        if self._stored is None:
            self.restore(MemoryLog())
        return self._in_store

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Add rows."""
        state = self._state
        codes, rows = self._read(batch)
        keys = present(codes, self._keys.count)
        state.load(keys)
        state.touch(keys, self._clock)
        state.top_rows.add_rows(codes, rows)
        yield self._acknowledge(batch)

    def end_rows(self) -> Iterator[Emission]:
        """Emit the changes."""
        emission = self._make_emission(self._state.top_rows)
        if len(emission.results):
            yield emission

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Do nothing, because results do not depend on event time."""
        del watermark
        yield from ()

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Expire keys; their deletions are emitted with the next changes."""
        self._clock = time
        if self._plan.query.top.time_to_live is not None:
            self._state.expire(time)
        yield from ()

    def state_size(self) -> dict[str, int]:
        """Return the number of stored keys and rows."""
        return self._state.sizes()

    def _save(self, stored: StoredTop) -> None:
        stored.save()

    def _next_timers(self, stored: StoredTop) -> Timers:
        return None, stored.next_expiry()
