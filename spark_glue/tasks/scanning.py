"""Reads splits of files in tasks, as Arrow batches like those that Spark would send."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from gpu_windows.planning.plan import Plan
from gpu_windows.runners.local import to_ticks, without_markers
from gpu_windows.runners.scanned_rows import ScannedRows
from gpu_windows.scans.splits import Split, fill_bins, split_bytes, split_files
from gpu_windows.spark_glue.session.settings import max_task_bytes, tasks_at_a_time
from gpu_windows.spark_glue.tasks.worker_step import Batches, Step, map_in_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class ReadSplits:
    """Reads the splits of a task and passes their rows to the next step.

    Parameters
    ----------
    rows : ScannedRows
    bins : tuple of bytes
        Splits of each task, see `assign_splits`. They are pickled one by one, so that a task
        unpickles its own alone.
    plan : Plan
    step : Step
        See `gpu_windows.spark_glue.columns.projections.columns_of`.
    """

    rows: ScannedRows
    bins: tuple[bytes, ...]
    plan: Plan
    step: Step

    def __call__(self, tasks: Iterable[pa.RecordBatch]) -> Batches:
        """Run in a Spark task, whose rows are numbers of bins."""
        numbers = (number for batch in tasks for number in batch.column(0).to_pylist())
        yield from self.step(self._read(numbers))

    def _read(self, numbers: Iterable[int]) -> Batches:
        plan = self.plan
        carrier = plan.query.watermark_column
        needed = {*plan.input_columns, *([] if carrier is None else [carrier])}
        for number in numbers:
            splits: tuple[tuple[int, Split], ...] = pickle.loads(self.bins[number])  # noqa: S301
            for part, split in splits:
                for batch in self.rows.parts[part].read(split, needed):
                    yield from self._as_input(batch)

    def _as_input(self, batch: pa.RecordBatch) -> Batches:
        plan = self.plan
        rows = pa.Table.from_batches([batch])
        rows = without_markers(rows, plan.query.watermark_column, plan.marker_columns)
        rows = rows.select([*plan.input_columns])
        at = rows.schema.get_field_index(plan.query.time)
        ticks = to_ticks(rows.column(at), plan.query.time)
        yield from rows.set_column(at, plan.query.time, ticks).to_batches()


def read_in_tasks(
    session: SparkSession,
    rows: ScannedRows,
    plan: Plan,
    step: Step,
    schema: StructType,
) -> DataFrame:
    """Return the output of a step over the rows of files, which tasks read."""
    bins = tuple(pickle.dumps(each) for each in assign_splits(session, rows))
    parts = tuple(replace(part, scan=replace(part.scan, files=())) for part in rows.parts)
    read = ReadSplits(ScannedRows(parts), bins, plan, step)
    numbers = session.range(0, len(bins), 1, max(1, len(bins)))
    return map_in_workers(numbers, read, schema)


def assign_splits(session: SparkSession, rows: ScannedRows) -> list[tuple[tuple[int, Split], ...]]:
    """Return the splits of each task, each with the number of its part."""
    files = [file for part in rows.parts for file in part.scan.files]
    size = split_bytes(files, tasks_at_a_time(session), max_task_bytes(session))
    splits = (
        (number, split)
        for number, part in enumerate(rows.parts)
        for split in split_files(part.scan.files, size)
    )
    return fill_bins(splits, size)
