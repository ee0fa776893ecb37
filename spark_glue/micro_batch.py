"""What a shard does in a micro-batch, whatever calls it: Spark's state store workers, or a test.

It knows times and a `Store`, not who keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_windows.operators.base import Emission, Operator, StatefulOperator, Timers
from gpu_windows.operators.build import stateful_operator
from gpu_windows.operators.calls import gather_calls, rows_a_call
from gpu_windows.operators.columns.lanes import sortable
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.slices.firing import FiringOperator
from gpu_windows.operators.slices.partial_stage import split_unused
from gpu_windows.operators.slices.timely import are_partials
from gpu_windows.operators.state.store import Store
from gpu_windows.planning.plan import Plan, WindowPlan
from gpu_windows.spark_glue.guard import are_rejected, given_back
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.marks import Said, is_mark
from gpu_windows.spark_glue.meter import Measures, Meter
from gpu_windows.spark_glue.own_watermark import OwnWatermark
from gpu_windows.spark_glue.packing import from_ipc
from gpu_windows.spark_glue.passed import before, is_before, is_message, reached_before
from gpu_windows.spark_glue.reached import Reached
from gpu_windows.spark_glue.times import SparkClock, Times
from gpu_windows.watermarks import stages_in


@dataclass(frozen=True)
class Finished:
    """What is known of a shard once its micro-batch is over.

    Parameters
    ----------
    measures : Measures
    next_call : int, optional
        The time of Spark's at which the shard has to be called though it has no rows.
    held : dict of str to int or None
        What is told of the watermark, if it is not Spark's: see
        `gpu_windows.monitoring.progress.OWN`.
    """

    measures: Measures
    next_call: int | None
    held: Mapping[str, int | None] = field(default_factory=dict)


class Shard:
    """The part of a query that goes for some keys, from micro-batch to micro-batch.

    Parameters
    ----------
    plan : Plan
    clock : SparkClock, optional
    is_stage : bool
        Whether another stage goes on from the results.
    """

    def __init__(
        self, plan: Plan, clock: SparkClock | None = None, *, is_stage: bool = False
    ) -> None:
        self.plan = plan
        self.is_stage = is_stage
        self.times = Times(plan.query, clock or SparkClock())
        self._manifest = Manifest.of(plan)
        self.goes_on = bool(stages_in(plan.query.watermarks))

    def begin(
        self,
        store: Store,
        now_ms: int,
        watermark_ms: int,
        threads: int = 1,
        *,
        silent: bool = False,
    ) -> MicroBatch:
        """Take up what the store holds.

        Parameters
        ----------
        store : Store
            Of this shard; what a micro-batch writes that fails must not stay in it.
        now_ms, watermark_ms : int
            Spark's times in the micro-batch.
        threads : int
            Threads of the CPU kernels.
        silent : bool
            Whether it is called for a timer, and no shard has input.

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
        own, watermarks = None, self.plan.query.watermarks
        if watermarks.is_own:
            own = OwnWatermark(watermarks, self.times.clock, metered, now_ms, silent=silent)
        reached = Reached.in_store(metered) if self.is_stage else None
        return MicroBatch(self, metered, operator, now_ms, watermark_ms, own, reached)


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
    own : OwnWatermark, optional
        In place of Spark's watermark.
    reached : Reached, optional
        What results are told of that another stage goes on from.
    said : Said
        What tasks have told of the inputs.
    messages : list of bytes
        What only passes this stage: see `gpu_windows.spark_glue.passed`.
    """

    shard: Shard
    store: Meter
    operator: StatefulOperator[Any]
    now_ms: int
    watermark_ms: int
    own: OwnWatermark | None = None
    reached: Reached | None = None
    said: Said = field(default_factory=Said)
    messages: list[bytes] = field(default_factory=list)

    def unmarked(self, blobs: Iterable[bytes]) -> Iterator[pa.Table]:
        """Yield what packing tasks sent, and take marks and messages out."""
        for blob in blobs:
            if is_mark(blob):
                self.said.take(blob)
            elif is_message(blob):
                self.messages.append(blob)
            else:
                yield from_ipc(blob)

    def emissions(self, tables: Iterable[pa.Table]) -> Iterator[Emission]:
        """Advance to the times of the micro-batch, then take rows: all that there are."""
        return (emission for _, emission in self.phases(tables))

    def phases(self, tables: Iterable[pa.Table]) -> Iterator[tuple[bool, Emission]]:
        """Yield `emissions`, and whether each comes after the watermark of the micro-batch.

        Rows that an earlier stage gave before it reached that watermark are taken before it is
        ours, those that it gave afterwards are taken afterwards.
        """
        rows, first = self.store.received(iter(tables)), self._advance()
        if self.shard.goes_on:
            sooner, later = _parted(rows)
            rows, first = iter(later), chain(self._sooner(sooner), first)
        for emission in self.store.timed(first):
            results = emission.results
            if self.reached is not None:
                results = before(results, self.reached.before_ms)
            yield False, replace(emission, results=results)
        for emission in self.store.timed(self._take(rows)):
            yield True, emission

    def _sooner(self, tables: list[pa.Table]) -> Iterator[Emission]:
        """Take rows at the watermark of the micro-batch before, which this shard may not know."""
        told = max(map(reached_before, tables), default=0)
        if self.reached is not None:
            self.reached.learn(told)
        known = self.shard.times.watermark(self.now_ms, told)
        if known is not None:
            yield from self.operator.advance_watermark(known)
        yield from self._take(tables)

    def _take(self, tables: Iterable[pa.Table]) -> Iterator[Emission]:
        return take_rows(self.shard.plan, self.operator, tables)

    def _advance(self) -> Iterator[Emission]:
        times = self.shard.times
        time = times.processing_time(self.now_ms)
        if time is not None:
            yield from self.operator.advance_processing_time(time)
        watermark = self._watermark
        if watermark is not None:
            yield from self.operator.advance_watermark(watermark)

    @property
    def _watermark(self) -> int | None:
        if self.own is not None:
            return self.own.in_force
        return self.shard.times.watermark(self.now_ms, self.watermark_ms)

    def finish(self) -> Finished:
        """Put the state into the store."""
        if self.own is not None:
            self.own.finish(self.said.watermarks)
        if self.reached is not None:
            self.reached.finish(self.watermark_ms)
        with self.store.working():
            self.operator.save()
        measures = self.store.finish(self.operator)
        next_call = self._next_call(self.operator.next_timers())
        return Finished(measures, next_call, {} if self.own is None else self.own.told)

    def _next_call(self, timers: Timers) -> int | None:
        times = self.shard.times
        if self.own is None:
            return times.next_call(timers, self.now_ms, self.watermark_ms)
        event, processing = timers
        calls = times.due_by_clock(processing)
        waits = self.own.next_call(event)
        calls += [] if waits is None else [waits]
        return max(min(calls), self.now_ms + 1) if calls else None


def _parted(tables: Iterable[pa.Table]) -> tuple[list[pa.Table], list[pa.Table]]:
    """Return the rows that are to be taken before the watermark, and the others."""
    sooner: list[pa.Table] = []
    later: list[pa.Table] = []
    for table in tables:
        (sooner if is_before(table) else later).append(table)
    return sooner, later


def take_rows(plan: Plan, operator: Operator, tables: Iterable[pa.Table]) -> Iterator[Emission]:
    """Take rows: as they come, or all of them in order of arrival where it matters."""
    intake = _Intake(plan, operator)
    rows = intake.rows(tables)
    if plan.query.order_dependent(bounded=False):
        rows = iter(_in_order(plan, list(rows)))
    pieces = gather_calls(plan, rows)
    for piece in pieces:
        yield from operator.process(piece)
        yield from intake.rejected()
    yield from operator.end_rows()
    yield from intake.rejected()
    yield Emission(plan.result_schema.empty_table(), pa.table({}), intake.counters)


class _Intake:
    """What comes among rows.

    Partials are merged as they pass, for none of them is late; rows that are rejected already wait
    to be given back.
    """

    def __init__(self, plan: Plan, operator: Operator) -> None:
        self._plan = plan
        self._operator = operator
        self._rejected: list[pa.Table] = []
        self.counters = Counters()

    def rows(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        partials: list[pa.Table] = []
        waiting, most = 0, rows_a_call(self._plan)
        for table in tables:
            if are_rejected(table):
                self._rejected.append(table)
                continue
            if not are_partials(table):
                yield from table.to_batches()
                continue
            partials.append(table)
            waiting += len(table)
            if waiting >= most:
                self._merge(partials)
                partials, waiting = [], 0
        if partials:
            self._merge(partials)

    def rejected(self) -> Iterator[Emission]:
        """Give back what was rejected since."""
        if self._rejected:
            yield given_back(self._rejected, self._plan.result_schema)
            self._rejected = []

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
