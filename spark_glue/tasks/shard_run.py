"""Runs a micro-batch of a shard, called by a task of Spark or by a test.

Each micro-batch builds the operator, which is that of all runners, restores its state, processes
the rows, advances to the watermark after them, and saves the state. So a micro-batch is what it
would be in Flink: rows, then a watermark. Tests call it too (``make simulation``, and
``python -m tests.conformance --runner streaming``); `tests/operators/state/test_stored_state.py`
saves and restores an operator after every call, and compares it with one that stays in memory.

Times are in ticks; where the files of the `StateLog` are does not matter here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_windows.operators.base import (
    Emission,
    MergesPartials,
    Operator,
    StatefulOperator,
    Timers,
)
from gpu_windows.operators.build import stateful_operator
from gpu_windows.operators.columns.numeric import sortable
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.device import gather_batches, rows_per_call
from gpu_windows.operators.slices.preaggregation import are_partials, split_counts
from gpu_windows.operators.state.large_strings import naming_overflow
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Plan, is_plan_of
from gpu_windows.spark_glue.contract.future_rows import are_rejected, emit_rejected
from gpu_windows.spark_glue.contract.meter import Measures, Meter

#: Returns the watermark after the rows of a micro-batch, in ticks; None before the first one.
WatermarkAfter = Callable[[], int | None]


@dataclass(frozen=True)
class FinishedRun:
    """Measurements and timers of a shard after a micro-batch.

    Parameters
    ----------
    counters : Counters
    measures : Measures
    next_times : (int or None, int or None)
        Watermark and processing time of the next timer, in ticks.
    """

    counters: Counters
    measures: Measures
    next_times: Timers


class ShardRun:
    """A micro-batch of a shard: drain `emissions`, then call `finish`.

    Parameters
    ----------
    plan : Plan
    log : StateLog
        Of the shard.
    now : int
        The time of the micro-batch, in ticks.
    threads : int
        Threads of the CPU kernels.

    Raises
    ------
    StateError
        If the log holds anything but this query's state.
    """

    def __init__(self, plan: Plan, log: StateLog, now: int, threads: int = 1) -> None:
        self._plan, self._now = plan, now
        self._meter = Meter(log)
        self._operator: StatefulOperator[Any] = stateful_operator(
            plan, in_order=False, threads=threads
        )
        with self._meter.working(), naming_overflow():
            self._operator.restore(log)
        self._counters = Counters()

    def emissions(
        self, tables: Iterable[pa.Table], watermark_after: WatermarkAfter
    ) -> Iterator[Emission]:
        """Process rows under the previous watermark, then advance to the next one.

        Parameters
        ----------
        tables : iterable of pyarrow.Table
            Rows, partials and rejected rows, as packing tasks send them.
        watermark_after : callable
            Called once, after the last table, because rows may report watermarks.
        """
        steps = self._steps(self._meter.read_tables(iter(tables)), watermark_after)
        with naming_overflow():
            for emission in self._meter.measure(steps):
                self._counters += emission.counters
                yield emission

    def _steps(
        self, tables: Iterator[pa.Table], watermark_after: WatermarkAfter
    ) -> Iterator[Emission]:
        if self._plan.query.reads_processing_time:
            yield from self._operator.advance_processing_time(self._now)
        yield from process_rows(self._plan, self._operator, tables)
        watermark = watermark_after()
        if watermark is not None:
            yield from self._operator.advance_watermark(watermark)

    def finish(self, name: str) -> FinishedRun:
        """Write the state. ``name``: of the state file, unique to this attempt."""
        with naming_overflow():
            with self._meter.working():
                self._operator.save()
            measures = self._meter.finish(self._operator, name)
        return FinishedRun(self._counters, measures, self._operator.next_timers())


def process_rows(plan: Plan, operator: Operator, tables: Iterable[pa.Table]) -> Iterator[Emission]:
    """Process rows as they come, or sorted by order of arrival where results depend on it."""
    intake = _Intake(plan, operator)
    rows = intake.rows(tables)
    if plan.query.order_dependent(bounded=False):
        rows = iter(_in_order(plan, list(rows)))
    for batch in gather_batches(plan, rows):
        yield from operator.process(batch)
        yield from intake.rejected()
    yield from operator.end_rows()
    yield from intake.rejected()
    yield Emission(plan.result_schema.empty_table(), pa.table({}), intake.counters)


class _Intake:
    """Separates rows from what else packing tasks send.

    Partials are merged at once, because none of them is late. Rows that were rejected before the
    shuffle are collected until `rejected` emits them.
    """

    def __init__(self, plan: Plan, operator: Operator) -> None:
        self._plan = plan
        self._operator = operator
        self._rejected: list[pa.Table] = []
        self.counters = Counters()

    def rows(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        partials: list[pa.Table] = []
        count, max_rows = 0, rows_per_call(self._plan)
        for table in tables:
            if are_rejected(table):
                self._rejected.append(table)
                continue
            if not are_partials(table):
                yield from table.to_batches()
                continue
            partials.append(table)
            count += len(table)
            if count >= max_rows:
                self._merge(partials)
                partials, count = [], 0
        if partials:
            self._merge(partials)

    def rejected(self) -> Iterator[Emission]:
        """Yield the emission of rejected rows collected since the last call."""
        if self._rejected:
            yield emit_rejected(self._rejected, self._plan.result_schema)
            self._rejected = []

    def _merge(self, tables: list[pa.Table]) -> None:
        assert is_plan_of(self._plan, WindowQuery)
        assert isinstance(self._operator, MergesPartials)
        partials, counters = split_counts(self._plan, pa.concat_tables(tables).combine_chunks())
        self._operator.merge(partials)
        self.counters += counters


def _in_order(plan: Plan, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the rows of a micro-batch sorted by the columns that tell their order of arrival."""
    if not batches:
        return []
    rows = pa.Table.from_batches(batches)
    order = [sortable(rows.column(name)) for name in plan.order]
    return rows.take(pa.array(np.lexsort(order[::-1]))).to_batches()  # type: ignore[no-any-return]
