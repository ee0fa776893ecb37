"""Outputs of a query on a batch DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.commits.write_target import WriteTarget, WrittenParquet
from gpu_windows.functions.two_inputs import DELETED, MARKS
from gpu_windows.planning.kinds.select import SelectQuery
from gpu_windows.planning.own_columns import NO_KEY, REASON
from gpu_windows.planning.plan import is_plan_of
from gpu_windows.planning.planner import plan
from gpu_windows.planning.query import Query
from gpu_windows.runners.outputs import Outputs, Source
from gpu_windows.runners.stages import Stage
from gpu_windows.spark_glue.batch.job import (
    BatchRows,
    drop_counters,
    no_user_counters,
    packs_rows,
    tag_results,
    total_counters,
    total_user_counters,
)
from gpu_windows.spark_glue.batch.partials import spark_partials
from gpu_windows.spark_glue.batch.spark_results import (
    is_finished_in_spark,
    results,
    row_counts,
    selected_rows,
    totals_of_partials,
)
from gpu_windows.spark_glue.batch.writing import PublicResults, ResultWriter
from gpu_windows.spark_glue.columns.projections import as_times, with_user_names
from gpu_windows.spark_glue.columns.row_reasons import reason_of_row
from gpu_windows.spark_glue.columns.types import to_arrow_schema
from gpu_windows.spark_glue.contract.watermarks import without_markers
from gpu_windows.spark_glue.dataframes.results import name_results, results_in_time
from gpu_windows.spark_glue.dataframes.source import SparkSource
from gpu_windows.spark_glue.dataframes.spark_selection import SparkOutputs, apply_selections
from gpu_windows.spark_glue.session.settings import crosses_quickly, default_shards
from gpu_windows.spark_glue.session.worker_python import prepare_workers

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation


@dataclass(frozen=True)
class _Computation:
    """The computation of a query in Spark.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Rows, partials or tagged results.
    counters : list of pyspark.sql.Column
        Aggregates of it that count.
    user_counters : pyspark.sql.Column
        The aggregate of it with the counters of user code.
    finish : callable
        Makes results of it.
    """

    frame: DataFrame
    counters: list[Column]
    user_counters: Column
    finish: Callable[[DataFrame], DataFrame]


class BatchOutputs(SparkOutputs):
    """Outputs of a query on a batch DataFrame; each is a lazy DataFrame."""

    input_kind = "a batch DataFrame"

    def __init__(self, source: SparkSource, query: Query) -> None:
        session = source.frame.sparkSession
        shards = query.options.shards or default_shards(session)
        options = replace(query.options, shards=shards)
        query = replace(query, options=options, display_names=source.public)
        quickly = crosses_quickly(session.conf)
        self._source = source
        self._scanned = None if source.scan is None else source.scan.rows
        in_task = self._scanned is not None
        self.plan = plan(
            query, bounded=True, spark=True, crosses_quickly=quickly, reads_in_task=in_task
        )
        if in_task and (is_plan_of(self.plan, SelectQuery) or not packs_rows(self.plan)):
            self._scanned = None
            self.plan = plan(query, bounded=True, spark=True, crosses_quickly=quickly)
        if source.scan is not None:
            reason = source.scan.describe(self.plan, in_task=self._scanned is not None)
            self.plan = replace(self.plan, reasons=(*self.plan.reasons, reason))

    @property
    def _batch_rows(self) -> BatchRows:
        return BatchRows(self._rows, self._scanned)

    @cached_property
    def _rows(self) -> DataFrame:
        plan = self.plan
        return without_markers(self._source.frame, plan.query.watermark_column, plan.marker_columns)

    def result(self, observation: Observation | None = None) -> DataFrame:
        """Return the results.

        Parameters
        ----------
        observation : pyspark.sql.Observation, optional
            Is given the counters of `metrics` when the DataFrame is evaluated.
        """
        return apply_selections(self._all_results(observation), self.selections)

    def _analyzed_results(self) -> DataFrame:
        return self.result()

    def _all_results(self, observation: Observation | None = None) -> DataFrame:
        """Return the results before selections."""
        computation, frame = self._computation, self._computation.frame
        if observation is not None:
            frame = frame.observe(observation, *computation.counters)
        return name_results(computation.finish(frame), self.plan.query)

    @cached_property
    def _computation(self) -> _Computation:
        plan, rows = self.plan, self._rows
        if is_plan_of(plan, SelectQuery):
            return _Computation(
                rows, row_counts(), no_user_counters(), partial(selected_rows, plan=plan)
            )
        if is_finished_in_spark(plan):
            partials, counters = spark_partials(rows, plan), totals_of_partials(plan)
            return _Computation(partials, counters, no_user_counters(), partial(results, plan=plan))

        def finish(frame: DataFrame) -> DataFrame:
            return as_times(drop_counters(frame), plan.query.window_types)

        frame = tag_results(self._batch_rows, plan)
        return _Computation(frame, total_counters(), total_user_counters(), finish)

    def _side(self, tag: str) -> DataFrame:
        """Return the rows of a side output; each output is computed when it is evaluated."""
        frame = drop_counters(tag_results(self._batch_rows, self.plan, tag))
        return with_user_names(frame.drop(NO_KEY), self._source.public)

    def _write_parquet(self, target: WriteTarget) -> WrittenParquet:
        return self._writer.write(self.result(), target)

    @property
    def _writer(self) -> ResultWriter:
        schema = self.result().schema
        results = PublicResults(self.plan, self.selections, to_arrow_schema(schema))
        return ResultWriter(self._batch_rows, results, schema)

    def explain(self) -> str:
        """Return the plan, and why Spark would write the results where tasks cannot."""
        reason, text = self._writer.why_by_spark(), super().explain()
        if reason is None:
            return text
        return f"{text}\nwriting   write_parquet lets Spark write: {reason}"

    def rows(self, stage: Stage) -> Source:
        """Return the results as rows."""
        del stage
        return BatchSource(results_in_time(self._all_results(), self.plan.query, self.selections))

    def late(self) -> DataFrame:
        """Return no row: a bounded input is complete before a window closes."""
        return self._user_frame().where(F.lit(False))

    def rejected(self) -> DataFrame:
        """Return the rows with an unusable time or value, and the reason."""
        query = self.plan.query
        rejects = query.needs_time and not is_plan_of(self.plan, SelectQuery)
        if not (rejects or query.row_checks):
            return self._user_frame().withColumn(REASON, F.lit(None).cast("string")).limit(0)
        frame = self._rows.withColumn(REASON, reason_of_row(query))
        frame = frame.where(F.col(REASON).isNotNull())
        return frame.drop(*self._source.public, DELETED, *MARKS)

    def metrics(self) -> DataFrame:
        """Return one row of counters."""
        computation = self._computation
        return computation.frame.select(*computation.counters, computation.user_counters)

    def _user_frame(self) -> DataFrame:
        return self._source.frame.drop(*self._source.public, DELETED, *MARKS)


class BatchSource(SparkSource):
    """A batch DataFrame as the source of a query."""

    def outputs(self, query: Query) -> Outputs:
        """Plan a query."""
        prepare_workers(self.frame.sparkSession)
        return BatchOutputs(self, query)
