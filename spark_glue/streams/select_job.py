"""The job of a selection in a micro-batch: tasks stage the rows that they read; no shuffle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from pyarrow import types

from gpu_windows.checkpointing.state_commit import ShardState, StageState
from gpu_windows.errors import ColumnTypeError
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.kinds.select import SelectQuery
from gpu_windows.planning.plan import is_plan_of
from gpu_windows.spark_glue.columns.types import check_name
from gpu_windows.spark_glue.contract.meter import Measures
from gpu_windows.spark_glue.contract.progress import read_combined_watermark
from gpu_windows.spark_glue.contract.records import SCHEMA, SelectReport, ShardReport
from gpu_windows.spark_glue.contract.reported_watermarks import ReportedWatermarks
from gpu_windows.spark_glue.streams.stage_job import (
    FinishedStage,
    MicroBatchTimes,
    StageJob,
    split_reports,
)
from gpu_windows.spark_glue.tasks.micro_batch import SelectRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_crosses(query: SelectQuery) -> None:
    """Raise unless the selected columns can be sent to Python, and their names, too.

    Raises
    ------
    ColumnTypeError, ColumnNameError
    """
    for name, column in query.columns.items():
        for each in (name, column):
            check_name(each)
        if types.is_null(query.schema.field(column).type):
            rule = "columns of this type cannot be written by a stream: CAST it to another"
            raise ColumnTypeError(rule, value="VOID, or an interval of months", column=name)


@dataclass(frozen=True, kw_only=True)
class SelectStageJob(StageJob):
    """Runs a selection; see `StageJob`. It has one shard, without state."""

    def run(
        self,
        rows: DataFrame,
        before: StageState,
        stage_watermarks: Mapping[str, int | None],
        times: MicroBatchTimes,
    ) -> FinishedStage:
        """Run the stage in a micro-batch; see `StageJob.run`."""
        plan = self.plan
        assert is_plan_of(plan, SelectQuery)
        step = SelectRows(
            plan=plan, log=self.log, sequence=times.sequence, first_kind=self.reader.first
        )
        found, inline = split_reports(self._map(rows, step, SCHEMA, times).toArrow())
        reports = [SelectReport.from_bytes(blob) for _, blob in found]
        report = self._combine(
            reports, before, dict(self._stage_watermarks(stage_watermarks)), times
        )
        staged_files = self._staged_files([each.staged_file for each in reports], inline, times)
        return self._finish([report], staged_files, before, times)

    def _combine(
        self,
        reports: Sequence[SelectReport],
        before: StageState,
        stage_watermarks: Mapping[int, int],
        times: MicroBatchTimes,
    ) -> ShardReport:
        """Return the reports of all tasks as that of one shard."""
        query, reported = self.plan.query, ReportedWatermarks(stage_watermarks)
        for each in reports:
            for number, watermark in each.watermarks.items():
                reported.add(number, watermark)
        combined = read_combined_watermark(query, before.watermarks)
        milliseconds = sum(each.seconds for each in reports) * 1_000
        return ShardReport(
            state=ShardState(),
            combined=combined.advance(times.now_ms, reported.watermarks, query.watermarks.timeouts),
            counters=reduce(add, (each.counters for each in reports), Counters()),
            measures=Measures(milliseconds, 0.0, 0, 0),
            next_times=(None, None),
        )
