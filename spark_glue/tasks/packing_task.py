"""Map side of a micro-batch: packs rows by shard and reports watermarks to every shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from gpu_windows.operators.batch_size import gather_batches
from gpu_windows.operators.slices.on_time_preaggregation import OnTimePreaggregation
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Plan, is_plan_of
from gpu_windows.rules import LONG_MIN
from gpu_windows.spark_glue.contract.future_rows import are_rejected, split_future_rows
from gpu_windows.spark_glue.contract.reported_watermarks import ReportedWatermarks
from gpu_windows.spark_glue.tasks.device import task_threads, use_task_device
from gpu_windows.spark_glue.tasks.freeze_gc import freeze_modules
from gpu_windows.spark_glue.tasks.packing import send_to_all
from gpu_windows.spark_glue.tasks.planned_types import to_planned_types
from gpu_windows.spark_glue.tasks.workers import PackRows


@dataclass(frozen=True)
class PackMicroBatch:
    """Packs the rows of a task by shard; plans with partials first pre-aggregate on-time rows.

    Parameters
    ----------
    plan : Plan
    rows : PackRows
        Packs tables.
    watermark : int
        Of the previous micro-batch, in ticks; `LONG_MIN` before there is one.
    gpu_share : float
        A task's share of a GPU.
    """

    plan: Plan
    rows: PackRows
    watermark: int = LONG_MIN
    gpu_share: float = 1.0

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task: input rows to rows of `PACKED`."""
        freeze_modules()
        reported = ReportedWatermarks()
        tables = split_future_rows(gather_batches(self.plan, to_planned_types(batches)))
        tables = reported.collect(self.plan.query, tables)
        if self.plan.makes_partials:
            tables = self._with_partials(tables)
        yield from self.rows.pack(tables)
        if reported.watermarks:
            yield send_to_all(self.plan, reported.as_bytes, self.rows.ids)

    def _with_partials(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        assert is_plan_of(self.plan, WindowQuery)
        use_task_device(self.gpu_share)
        stage = OnTimePreaggregation(self.plan, self.watermark, threads=task_threads(self.plan))
        return chain.from_iterable(
            (each,) if are_rejected(each) else stage.split(each) for each in tables
        )
