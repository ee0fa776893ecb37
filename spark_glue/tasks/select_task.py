"""Selects the rows of a task in a micro-batch: they are staged as results where they are read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.operators.base import Emission
from gpu_windows.operators.batch_size import gather_batches
from gpu_windows.operators.build import build_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.kinds.select import SelectPlan
from gpu_windows.spark_glue.contract.future_rows import (
    are_rejected,
    emit_rejected,
    split_future_rows,
)
from gpu_windows.spark_glue.contract.records import SelectReport, to_records
from gpu_windows.spark_glue.contract.reported_watermarks import ReportedWatermarks
from gpu_windows.spark_glue.tasks.freeze_gc import freeze_modules
from gpu_windows.spark_glue.tasks.planned_types import to_planned_types
from gpu_windows.spark_glue.tasks.shard_task import MIN_INLINE_BYTES, stage_blobs, to_blobs

#: So many tasks return few results as they are; those after them less and less.
_INLINE_TASKS = 1_024


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
        freeze_modules()
        self.log.check_is_reachable()
        reported, run = ReportedWatermarks(), _Run(self.plan)
        tables = split_future_rows(gather_batches(self.plan, to_planned_types(batches)))
        emissions = run.emissions(reported.collect(self.plan.query, tables))
        blobs = to_blobs(emissions, self.first_kind)
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
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
