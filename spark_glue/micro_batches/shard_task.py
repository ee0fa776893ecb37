"""Shard side of a micro-batch: rows under the last watermark, then the next one, then the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import chain, groupby
from operator import itemgetter
from typing import Any
from uuid import uuid4

import pyarrow as pa

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.shard_log import ShardLog
from gpu_windows.checkpointing.staged_file import Blob, write_staged_file
from gpu_windows.checkpointing.state_commit import ShardState, StagedFile
from gpu_windows.operators.base import Emission, StatefulOperator
from gpu_windows.operators.build import stateful_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.plan import Plan
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.spark_glue.device import task_threads, use_task_device
from gpu_windows.spark_glue.garbage import spare_modules
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.marks import Said, is_mark
from gpu_windows.spark_glue.meter import Meter
from gpu_windows.spark_glue.micro_batch import take_rows
from gpu_windows.spark_glue.micro_batches.records import REPORT, SCHEMA, ShardReport
from gpu_windows.spark_glue.packing import Room, from_ipc, to_blobs
from gpu_windows.spark_glue.tagged import LATE, RESULT, SIDES
from gpu_windows.spark_glue.times import Times
from gpu_windows.watermarks import Valve

#: What every shard is sent, so that one without rows is called, too.
CONTROL = b"control"
#: Bytes of results that all shards give back to the driver, and each at least; what is more than a
#: shard's part goes into a file of its own.
_MAX_INLINE_BYTES, _LEAST_INLINE_BYTES = 1 << 20, 1 << 14
#: Bytes of a blob of results, which crosses to the JVM as one batch of rows.
_MAX_BLOB_BYTES = 1 << 24


@dataclass(frozen=True, kw_only=True)
class RunMicroBatch:
    """Run the shards of a task.

    Parameters
    ----------
    plan : Plan
    log : CommitLog
    sequence : int
        Of the commit that the micro-batch is to make.
    ids : tuple of int
        What shard 0, 1 and so on are called in the shuffle.
    newest : tuple of (str or None)
        The newest state file of each shard, of the last commit.
    before : Valve
        How far the inputs were after the last commit.
    now_ms : int
        The time of the micro-batch, in milliseconds since 1970.
    gpu_share : float
        How much of a GPU is a task's.
    """

    plan: Plan
    log: CommitLog
    sequence: int
    ids: tuple[int, ...]
    newest: tuple[str | None, ...]
    before: Valve
    now_ms: int
    gpu_share: float = 1.0

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task: rows (shard, blob) to rows of `records.SCHEMA`."""
        spare_modules()
        use_task_device(self.gpu_share)
        numbers = {each: number for number, each in enumerate(self.ids)}
        for shard, blobs in groupby(_blobs(batches), itemgetter(0)):
            yield self._run(numbers[shard], (blob for _, blob in blobs))

    def _run(self, shard: int, blobs: Iterator[pa.Buffer]) -> pa.RecordBatch:
        """Run a shard; return its results and its report."""
        reported = Said()

        def after() -> Valve:
            timeouts = self.plan.query.watermarks.timeouts
            return self.before.after(self.now_ms, reported.watermarks, timeouts)

        store = ShardLog(self.log.files, self.newest[shard])
        run = _ShardRun(self.plan, store, self.now_ms, task_threads(self.plan))
        tables = map(from_ipc, _without_messages(blobs, reported))
        inline, staged = self._stage(_pack(run.emissions(tables, after)))
        name = self.log.state_file(self.sequence, shard, uuid4().hex)
        report = replace(run.finish(name, after()), staged=staged)
        kinds, results = [*(kind for kind, _ in inline), REPORT], [blob for _, blob in inline]
        columns = [[shard] * len(kinds), kinds, [*results, report.as_bytes]]
        return pa.record_batch(
            [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
        )

    def _stage(self, blobs: Iterator[Blob]) -> tuple[list[Blob], StagedFile | None]:
        """Return a few results; write many into a file of the shard's own."""
        few: list[Blob] = []
        size = 0
        for blob in blobs:
            few.append(blob)
            size += len(blob[1])
            if size > max(_MAX_INLINE_BYTES // len(self.ids), _LEAST_INLINE_BYTES):
                name = self.log.results_file(self.sequence, uuid4().hex)
                sizes = write_staged_file(self.log.files, name, chain(few, blobs))
                return [], StagedFile(name, tuple(sizes.items()))
        return few, None


def _blobs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Buffer]]:
    """Yield the shard and the blob of each row; those of a shard follow one another."""
    for batch in batches:
        blobs = batch.column(1)
        for row, shard in enumerate(batch.column(0).to_pylist()):
            yield shard, blobs[row].as_buffer()


def _without_messages(blobs: Iterable[pa.Buffer], reported: Said) -> Iterator[pa.Buffer]:
    """Yield the blobs of rows; note the watermarks that others report."""
    control = pa.py_buffer(CONTROL)
    for blob in blobs:
        if is_mark(blob):
            reported.take(blob.to_pybytes())
        elif not blob.equals(control):
            yield blob


class _ShardRun:
    """A micro-batch of a shard."""

    def __init__(self, plan: Plan, store: ShardLog, now_ms: int, threads: int) -> None:
        self._plan, self._store, self._now_ms = plan, store, now_ms
        self._meter = Meter(store)
        Manifest.of(plan).check(self._meter)
        self._meter.begin()
        self._operator: StatefulOperator[Any] = stateful_operator(
            plan, in_order=False, threads=threads
        )
        with self._meter.working():
            self._operator.restore(self._meter)
        self._counters = Counters()

    def emissions(
        self, tables: Iterable[pa.Table], after: Callable[[], Valve]
    ) -> Iterator[Emission]:
        """Take the rows, then advance to the watermark that they allow: ``after`` them."""
        steps = self._steps(self._meter.received(iter(tables)), after)
        for emission in self._meter.timed(steps):
            self._counters += emission.counters
            yield emission

    def _steps(self, tables: Iterator[pa.Table], after: Callable[[], Valve]) -> Iterator[Emission]:
        times = Times(self._plan.query)
        now = times.processing_time(self._now_ms)
        if now is not None:
            yield from self._operator.advance_processing_time(now)
        yield from take_rows(self._plan, self._operator, tables)
        watermark = _watermark_at(self._plan, after(), self._now_ms)
        if watermark is not None:
            yield from self._operator.advance_watermark(watermark)

    def finish(self, name: str, after: Valve) -> ShardReport:
        """Write the state into a file of this name; return the shard's report."""
        with self._meter.working():
            self._operator.save()
        measures = self._meter.finish(self._operator)
        newest = self._store.finish(name)
        state = ShardState(newest, tuple(self._store.directory.sizes))
        measured = {**asdict(self._counters), **asdict(measures)}
        measured["user"] = dict(self._counters.user)
        return ShardReport(state, after, measured, self._operator.next_timers())


def _watermark_at(plan: Plan, after: Valve, now_ms: int) -> int | None:
    """Return the watermark after the rows of a micro-batch, in ticks; None if there is none."""
    watermarks, clock = plan.query.watermarks, Times(plan.query).clock
    if watermarks.in_processing_time:
        return clock.time(now_ms) - 1
    if after.watermark == LONG_MIN:
        return None
    if after.idle_since is None or not watermarks.all_close:
        return after.watermark
    return min(after.watermark + clock.time(now_ms - after.idle_since), LONG_MAX)


def _pack(emissions: Iterable[Emission]) -> Iterator[Blob]:
    """Yield what an operator gave as Arrow IPC streams, each with its kind."""
    room = Room(_MAX_BLOB_BYTES)
    for emission in emissions:
        tables = [(RESULT, emission.results), (LATE, emission.late)]
        for kind, table in [*tables, *enumerate(emission.sides.values(), SIDES)]:
            for blob in to_blobs(table, room):
                yield kind, blob
