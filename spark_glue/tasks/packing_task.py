"""Map side of a micro-batch: rows packed by shard, and a watermark message for every shard."""

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
from gpu_windows.spark_glue.contract.guard import are_rejected, set_aside
from gpu_windows.spark_glue.contract.reported_watermarks import ReportedWatermarks
from gpu_windows.spark_glue.tasks.crossing import as_planned
from gpu_windows.spark_glue.tasks.device import task_threads, use_task_device
from gpu_windows.spark_glue.tasks.freeze_gc import spare_modules
from gpu_windows.spark_glue.tasks.packing import send_to_all
from gpu_windows.spark_glue.tasks.workers import PackRows


@dataclass(frozen=True)
class PackMicroBatch:
    """Pack the rows of a task by shard; on-time rows become partials first where the plan allows.

    Parameters
    ----------
    plan : Plan
    rows : PackRows
        Packs what goes as rows.
    watermark : int
        The one under which the rows are taken, in ticks; `LONG_MIN` before there is one.
    gpu_share : float
        How much of a GPU is a task's.
    """

    plan: Plan
    rows: PackRows
    watermark: int = LONG_MIN
    gpu_share: float = 1.0

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task: input rows to rows of `PACKED`."""
        spare_modules()
        reported = ReportedWatermarks()
        tables = set_aside(gather_batches(self.plan, as_planned(batches)))
        tables = reported.collect(self.plan.query, tables)
        if self.plan.makes_partials:
            tables = self._with_partials(tables)
        yield from self.rows.packed(tables)
        if reported.watermarks:
            yield send_to_all(self.plan, reported.as_bytes, self.rows.ids)

    def _with_partials(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        assert is_plan_of(self.plan, WindowQuery)
        use_task_device(self.gpu_share)
        stage = OnTimePreaggregation(self.plan, self.watermark, threads=task_threads(self.plan))
        return chain.from_iterable(
            (each,) if are_rejected(each) else stage.split(each) for each in tables
        )
