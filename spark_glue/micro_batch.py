"""What a shard does in a micro-batch, whatever calls it: Spark's state store workers, or a test.

It knows times and a `Store`, not who keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_windows.operators.base import Emission, Operator, StatefulOperator
from gpu_windows.operators.build import stateful_operator
from gpu_windows.operators.columns.batches import gather
from gpu_windows.operators.columns.lanes import sortable
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.slices.firing import FiringOperator
from gpu_windows.operators.slices.partial_stage import split_unused
from gpu_windows.operators.slices.timely import are_partials
from gpu_windows.operators.state.store import Store
from gpu_windows.planning.plan import Plan, WindowPlan
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.meter import Measures, Meter
from gpu_windows.spark_glue.times import SparkClock, Times


@dataclass(frozen=True)
class Finished:
    """What is known of a shard once its micro-batch is over.

    Parameters
    ----------
    measures : Measures
    next_call : int, optional
        The time of Spark's at which the shard has to be called though it has no rows.
    """

    measures: Measures
    next_call: int | None


class Shard:
    """The part of a query that goes for some keys, from micro-batch to micro-batch.

    Parameters
    ----------
    plan : Plan
    clock : SparkClock, optional
    """

    def __init__(self, plan: Plan, clock: SparkClock | None = None) -> None:
        self.plan = plan
        self.times = Times(plan.query, clock or SparkClock())
        self._manifest = Manifest.of(plan)

    def begin(self, store: Store, now_ms: int, watermark_ms: int, threads: int = 1) -> MicroBatch:
        """Take up what the store holds.

        Parameters
        ----------
        store : Store
            Of this shard; what a micro-batch writes that fails must not stay in it.
        now_ms, watermark_ms : int
            Spark's times in the micro-batch.
        threads : int
            Threads of the CPU kernels.

        Raises
        ------
        StateError
            If the store holds anything but what this query has saved there.
        """
        metered = Meter(store)
        self._manifest.check(metered)
        metered.begin()
        operator = stateful_operator(self.plan, in_order=False, threads=threads)
        with metered.working():
            operator.restore(metered)
        return MicroBatch(self, metered, operator, now_ms, watermark_ms)


@dataclass(frozen=True)
class MicroBatch:
    """A micro-batch of a shard: `emissions`, to be drained, then `finish`.

    Parameters
    ----------
    shard : Shard
    store : Meter
    operator : Operator
        Restored.
    now_ms, watermark_ms : int
        Spark's times in it, in milliseconds.
    """

    shard: Shard
    store: Meter
    operator: StatefulOperator[Any]
    now_ms: int
    watermark_ms: int

    def emissions(self, tables: Iterable[pa.Table]) -> Iterator[Emission]:
        """Advance to the times of the micro-batch, then take rows: all that there are."""
        rows = _take(self.shard.plan, self.operator, self.store.received(iter(tables)))
        yield from self.store.timed(chain(self._advance(), rows))

    def _advance(self) -> Iterator[Emission]:
        times = self.shard.times
        time = times.processing_time(self.now_ms)
        if time is not None:
            yield from self.operator.advance_processing_time(time)
        watermark = times.watermark(self.now_ms, self.watermark_ms)
        if watermark is not None:
            yield from self.operator.advance_watermark(watermark)

    def finish(self) -> Finished:
        """Put the state into the store."""
        with self.store.working():
            self.operator.save()
        measures = self.store.finish(self.operator)
        timers = self.operator.next_timers()
        next_call = self.shard.times.next_call(timers, self.now_ms, self.watermark_ms)
        return Finished(measures, next_call)


def _take(plan: Plan, operator: Operator, tables: Iterable[pa.Table]) -> Iterator[Emission]:
    """Take rows: as they come, or all of them in order of arrival where it matters."""
    intake = _Intake(plan, operator)
    rows = intake.rows(tables)
    if plan.query.order_dependent(bounded=False):
        rows = iter(_in_order(plan, list(rows)))
    pieces = gather(rows, plan.call_rows)
    yield from chain.from_iterable(operator.process(piece) for piece in pieces)
    yield Emission(plan.result_schema.empty_table(), pa.table({}), intake.counters)


class _Intake:
    """Partials that come among rows: they are merged as they pass, for none of them is late."""

    def __init__(self, plan: Plan, operator: Operator) -> None:
        self._plan = plan
        self._operator = operator
        self.counters = Counters()

    def rows(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        partials: list[pa.Table] = []
        waiting = 0
        for table in tables:
            if not are_partials(table):
                yield from table.to_batches()
                continue
            partials.append(table)
            waiting += len(table)
            if waiting >= self._plan.call_rows:
                self._merge(partials)
                partials, waiting = [], 0
        if partials:
            self._merge(partials)

    def _merge(self, tables: list[pa.Table]) -> None:
        assert isinstance(self._plan, WindowPlan)
        assert isinstance(self._operator, FiringOperator)
        partials, counters = split_unused(self._plan, pa.concat_tables(tables).combine_chunks())
        self._operator.merge(partials)
        self.counters += counters


def _in_order(plan: Plan, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the rows of a micro-batch in order of arrival, as far as columns tell it."""
    if not batches:
        return []
    rows = pa.Table.from_batches(batches)
    order = [sortable(rows.column(name)) for name in plan.order]
    return rows.take(pa.array(np.lexsort(order[::-1]))).to_batches()  # type: ignore[no-any-return]
