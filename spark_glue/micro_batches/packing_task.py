"""Map side of a micro-batch: rows packed by shard, and a watermark message for every shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.operators.calls import gather_calls
from gpu_windows.operators.slices.timely import TimelyStage
from gpu_windows.planning.plan import Plan, WindowPlan
from gpu_windows.rules import LONG_MIN
from gpu_windows.spark_glue.crossing import as_planned
from gpu_windows.spark_glue.device import task_threads, use_task_device
from gpu_windows.spark_glue.garbage import spare_modules
from gpu_windows.spark_glue.guard import are_rejected, set_aside
from gpu_windows.spark_glue.marks import Said
from gpu_windows.spark_glue.packing import for_all
from gpu_windows.spark_glue.watermarks import CARRIED_WATERMARK
from gpu_windows.spark_glue.workers import PackRows


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
        """Run in a Spark task: input rows to rows (shard, blob)."""
        spare_modules()
        reported = Said()
        tables = set_aside(gather_calls(self.plan, as_planned(batches)))
        if self.plan.query.watermark_column is None:
            tables = reported.noted(self.plan.query, tables)
        else:
            tables = _take_carried_watermarks(self.plan, tables, reported)
        if self.plan.makes_partials:
            tables = self._with_partials(tables)
        yield from self.rows.packed(tables)
        if reported.watermarks:
            yield for_all(self.plan, reported.mark, self.rows.ids)

    def _with_partials(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        assert isinstance(self.plan, WindowPlan)
        use_task_device(self.gpu_share)
        stage = TimelyStage(self.plan, self.watermark, threads=task_threads(self.plan))
        return chain.from_iterable(
            (each,) if are_rejected(each) else stage.split(each) for each in tables
        )


def _take_carried_watermarks(
    plan: Plan, tables: Iterable[pa.Table], reported: Said
) -> Iterator[pa.Table]:
    """Yield rows without `CARRIED_WATERMARK` and markers; report the greatest watermark.

    A marker carries a watermark and is null in all columns that the plan needs.
    """
    for table in tables:
        carried, rows = table[CARRIED_WATERMARK], table.drop_columns([CARRIED_WATERMARK])
        greatest = pc.max(carried).as_py()
        if greatest is not None:
            reported.add(0, greatest)
        nulls = (pc.is_null(rows[name]) for name in plan.marker_columns)
        is_marker = reduce(pc.and_, nulls, pc.is_valid(carried))
        yield rows.filter(pc.invert(is_marker))
