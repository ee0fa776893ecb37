"""Tasks of a micro-batch: to pack rows by shard, to run the shards, to select rows without them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from uuid import uuid4

import pyarrow as pa

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.staged_file import Blob, write_staged_file
from gpu_windows.checkpointing.state_commit import ShardState, StagedFile
from gpu_windows.errors import StateCorruptedError
from gpu_windows.monitoring.logs import log_fields
from gpu_windows.operators.base import Emission
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.device import gather_batches
from gpu_windows.operators.slices.preaggregation import OnTimePreaggregation
from gpu_windows.planning.kinds.select import SelectPlan
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Plan, is_plan_of
from gpu_windows.rules import LONG_MIN
from gpu_windows.spark_glue.contract.future_rows import (
    are_rejected,
    emit_rejected,
    split_future_rows,
)
from gpu_windows.spark_glue.contract.output_kinds import LATE, RESULT, SIDES
from gpu_windows.spark_glue.contract.progress import to_ticks, watermark_after
from gpu_windows.spark_glue.contract.records import SelectReport, ShardReport, to_records
from gpu_windows.spark_glue.contract.reported_watermarks import (
    ReportedWatermarks,
    holds_watermarks,
)
from gpu_windows.spark_glue.tasks.device import task_number, task_threads, use_task_device
from gpu_windows.spark_glue.tasks.fragments import join_fragments
from gpu_windows.spark_glue.tasks.given_keys import plan_of_shard
from gpu_windows.spark_glue.tasks.open_shard import open_shard
from gpu_windows.spark_glue.tasks.packing import from_ipc, send_to_all, to_messages
from gpu_windows.spark_glue.tasks.planned_types import to_planned_types
from gpu_windows.spark_glue.tasks.shard_run import ShardRun
from gpu_windows.spark_glue.tasks.workers import PackRows
from gpu_windows.vocabulary.watermarks import CombinedWatermark

#: A message to every shard, so that shards without rows run, too.
CONTROL = b"control"
#: Bytes of results that all shards together return to the driver, and the share of each at least; a
#: shard writes more than its share to a file of its own.
_MAX_INLINE_BYTES, MIN_INLINE_BYTES = 1 << 20, 1 << 14
#: Bytes of a blob of results, which goes to the JVM as one batch of rows.
_MAX_BLOB_BYTES = 1 << 24
#: So many tasks return few results as they are; those after them less and less.
_INLINE_TASKS = 1_024


@dataclass(frozen=True)
class PackMicroBatch:
    """Packs the rows of a task by shard; plans with partials first pre-aggregate on-time rows.

    Parameters
    ----------
    rows : PackRows
        Packs tables; it has the plan.
    watermark : int
        Of the previous micro-batch, in ticks; `LONG_MIN` before there is one.
    gpu_share : float
        A task's share of a GPU.
    """

    rows: PackRows
    watermark: int = LONG_MIN
    gpu_share: float = 1.0

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task: input rows to rows of `PACKED`."""
        plan, reported = self.rows.plan, ReportedWatermarks()
        tables = _read_rows(plan, batches, reported)
        if plan.makes_partials:
            tables = self._with_partials(plan, tables)
        yield from self.rows.pack(tables)
        if reported.watermarks:
            yield send_to_all(plan, reported.as_bytes, self.rows.ids)

    def _with_partials(self, plan: Plan, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        assert is_plan_of(plan, WindowQuery)
        use_task_device(self.gpu_share)
        stage = OnTimePreaggregation(plan, self.watermark, threads=task_threads(plan))
        return chain.from_iterable(
            (each,) if are_rejected(each) else stage.split(each) for each in tables
        )


def _read_rows(
    plan: Plan, batches: Iterable[pa.RecordBatch], reported: ReportedWatermarks
) -> Iterator[pa.Table]:
    """Yield the rows of a task, rejected ones apart; add their watermarks to ``reported``."""
    tables = split_future_rows(gather_batches(plan, to_planned_types(batches)))
    return reported.collect(plan.query, tables)


@dataclass(frozen=True, kw_only=True)
class RunMicroBatch:
    """Run the shards of a task.

    Parameters
    ----------
    plan : Plan
    log : CommitLog
    sequence : int
        Of the micro-batch's commit.
    stage : int
        Number of the stage.
    first_kind : int
        The first of the kinds of its rows.
    ids : tuple of int
        Ids of shard 0, 1 and so on in the shuffle.
    newest : tuple of (str or None)
        The newest state file of each shard of the last commit, which may have had more shards or
        fewer.
    before : CombinedWatermark
        The combined watermark after the last commit.
    previous_watermark : int, optional
        The watermark after the last commit, in ticks.
    stage_watermarks : mapping of int to int
        Inputs that are results of a stage: number to watermark, in ticks, known before any row.
    now_ms : int
        The time of the micro-batch, in milliseconds since 1970.
    gpu_share : float
        How much of a GPU is a task's.
    """

    plan: Plan
    log: CommitLog
    sequence: int
    stage: int
    first_kind: int
    ids: tuple[int, ...]
    newest: tuple[str | None, ...]
    before: CombinedWatermark
    previous_watermark: int | None
    stage_watermarks: Mapping[int, int]
    now_ms: int
    gpu_share: float = 1.0

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task: rows of `PACKED` to rows of `records.SCHEMA`."""
        use_task_device(self.gpu_share)
        self.log.check_is_reachable()
        numbers = {each: number for number, each in enumerate(self.ids)}
        finished: set[int] = set()
        for shard, messages in groupby(join_fragments(batches), itemgetter(0)):
            if shard in finished:  # the second part would start from the state before the first
                rule = "a shuffle delivers all rows of a shard consecutively"
                raise StateCorruptedError(rule, value=f"shard {numbers[shard]}")
            finished.add(shard)
            with log_fields(shard=numbers[shard]):
                done = self._run(numbers[shard], (message for _, message in messages))
            yield done

    def _run(self, shard: int, messages: Iterator[pa.Buffer]) -> pa.RecordBatch:
        """Run a shard; return its results and its report."""
        query, reported = self.plan.query, ReportedWatermarks(self.stage_watermarks)

        def combine() -> CombinedWatermark:
            return self.before.advance(self.now_ms, reported.watermarks, query.watermarks.timeouts)

        log = open_shard(self.plan, self.log.files, self.newest, shard, self._file(shard))
        run = ShardRun(
            plan_of_shard(self.plan, shard), log, to_ticks(self.now_ms), task_threads(self.plan)
        )
        tables = _read_tables(messages, reported)
        emissions = run.emissions(
            tables, lambda: watermark_after(query, combine(), self.previous_watermark, self.now_ms)
        )
        max_bytes = max(_MAX_INLINE_BYTES // len(self.ids), MIN_INLINE_BYTES)
        blobs = to_blobs(emissions, self.first_kind)
        inline, staged_file = stage_blobs(self.log, self.sequence, blobs, max_bytes)
        finished = run.finish(self._file(shard))
        report = ShardReport(
            state=ShardState(log.newest, log.live_files),
            combined=combine(),
            counters=finished.counters,
            measures=finished.measures,
            next_times=finished.next_times,
            staged_file=staged_file,
        )
        return to_records(shard, inline, report.as_bytes)

    def _file(self, shard: int) -> str:
        """Return a name for a state file."""
        return self.log.state_file(self.sequence, self.stage, shard, uuid4().hex)


def stage_blobs(
    log: CommitLog, sequence: int, blobs: Iterator[Blob], max_bytes: int
) -> tuple[list[Blob], StagedFile | None]:
    """Return few results as they are; write more than ``max_bytes`` to a file of the task's own."""
    inline: list[Blob] = []
    size = 0
    for blob in blobs:
        inline.append(blob)
        size += len(blob[1])
        if size > max_bytes:
            name = log.results_file(sequence, uuid4().hex)
            sizes = write_staged_file(log.files, name, chain(inline, blobs))
            return [], StagedFile(name, tuple(sizes.items()))
    return inline, None


def _read_tables(messages: Iterable[pa.Buffer], reported: ReportedWatermarks) -> Iterator[pa.Table]:
    """Yield the tables among messages; add the reported watermarks to ``reported``."""
    control = pa.py_buffer(CONTROL)
    for message in messages:
        if holds_watermarks(message):
            reported.add_bytes(message.to_pybytes())
        elif not message.equals(control):
            yield from_ipc(message)


def to_blobs(emissions: Iterable[Emission], first_kind: int) -> Iterator[Blob]:
    """Yield the outputs of an operator as Arrow IPC streams, each with its kind."""
    for emission in emissions:
        tables = [(RESULT, emission.results), (LATE, emission.late)]
        for kind, table in [*tables, *enumerate(emission.sides.values(), SIDES)]:
            for blob in to_messages(table, _MAX_BLOB_BYTES):
                yield first_kind + kind, blob


def inline_bytes(task: int) -> int:
    """Return how many bytes of results a task returns to the driver; more go to a file of its own.

    A task does not know how many others there are. The bytes of later ones shrink with the square
    of their number, so that those of all tasks together are less than 32 MiB.
    """
    return int(MIN_INLINE_BYTES * min(1.0, _INLINE_TASKS / (task + 1)) ** 2)


@dataclass(frozen=True, kw_only=True)
class SelectRows:
    """Stage the rows of a task as results.

    Parameters
    ----------
    plan : SelectPlan
    log : CommitLog
    sequence : int
        Of the micro-batch's commit.
    first_kind : int
        The first of the kinds of its rows.
    """

    plan: SelectPlan
    log: CommitLog
    sequence: int
    first_kind: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task: input rows to rows of `records.SCHEMA`."""
        self.log.check_is_reachable()
        reported, run = ReportedWatermarks(), _Run(self.plan)
        emissions = run.emissions(_read_rows(self.plan, batches, reported))
        blobs = to_blobs(emissions, self.first_kind)
        task = task_number()
        inline, staged_file = stage_blobs(self.log, self.sequence, blobs, inline_bytes(task))
        report = SelectReport(reported.watermarks, run.counters, run.seconds, staged_file)
        yield to_records(task, inline, report.as_bytes)


class _Run:
    """Runs the operator, and measures it."""

    def __init__(self, plan: SelectPlan) -> None:
        self._plan = plan
        self.counters, self.seconds = Counters(), 0.0

    def emissions(self, tables: Iterable[pa.Table]) -> Iterator[Emission]:
        """Yield the results of rows, and those that are rejected."""
        operator = build_operator(self._plan)
        for table in tables:
            began = time.perf_counter()
            if are_rejected(table):
                found = [emit_rejected([table], self._plan.result_schema)]
            else:
                found = [*operator.process(table)]
            self.seconds += time.perf_counter() - began
            for emission in found:
                self.counters += emission.counters
                yield emission
