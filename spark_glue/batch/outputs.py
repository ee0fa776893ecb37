"""Outputs of a query on a batch DataFrame."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.commits.write_target import WriteTarget, WrittenParquet
from gpu_windows.functions.two_inputs import DELETED, MARKS
from gpu_windows.planning.kinds.select import SelectQuery
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.own_columns import NO_KEY, REASON, SPREAD
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
    partials_in_spark,
    tag_results,
    total_counters,
    total_user_counters,
)
from gpu_windows.spark_glue.batch.selected_rows import row_counts, selected_rows
from gpu_windows.spark_glue.batch.spark_results import (
    is_finished_in_spark,
    results,
    totals_of_partials,
)
from gpu_windows.spark_glue.batch.writing import PublicResults, ResultWriter
from gpu_windows.spark_glue.columns.projections import with_times, with_user_names
from gpu_windows.spark_glue.columns.result_time import with_result_time
from gpu_windows.spark_glue.columns.row_reasons import reason_of_row
from gpu_windows.spark_glue.columns.types import to_arrow_schema
from gpu_windows.spark_glue.contract.watermarks import without_markers
from gpu_windows.spark_glue.dataframes.ranking import rank_results
from gpu_windows.spark_glue.dataframes.source import SparkSource
from gpu_windows.spark_glue.dataframes.spark_selection import SparkOutputs, apply_selections
from gpu_windows.spark_glue.session.settings import crosses_quickly
from gpu_windows.spark_glue.session.shuffles import default_shards
from gpu_windows.spark_glue.session.worker_python import prepare_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


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

    @cached_property
    def _tagged_results(self) -> DataFrame:
        return tag_results(self._batch_rows, self.plan)

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
        if is_plan_of(self.plan, SelectQuery):
            found = selected_rows(self._rows, self.plan, observation)
        elif is_finished_in_spark(self.plan):
            found = self._finish_in_spark(self.plan, observation)
        else:
            frame = self._tagged_results
            if observation is not None:
                frame = frame.observe(observation, *total_counters())
            found = with_times(drop_counters(frame), self.plan.query)
        return rank_results(
            with_user_names(found.drop(NO_KEY, SPREAD), self._source.public), self.plan.query
        )

    def _side(self, tag: str) -> DataFrame:
        """Return the rows of a side output; each output is computed when it is evaluated."""
        frame = drop_counters(tag_results(self._batch_rows, self.plan, tag))
        return with_user_names(frame.drop(NO_KEY), self._source.public)

    def _finish_in_spark(self, plan: WindowPlan, observation: Observation | None) -> DataFrame:
        partials = partials_in_spark(self._rows, plan)
        if observation is not None:
            partials = partials.observe(observation, *totals_of_partials(plan))
        return results(partials, plan)

    def _write_parquet(self, target: WriteTarget) -> WrittenParquet:
        return self._writer.write(self.result(), target)

    @property
    def _writer(self) -> ResultWriter:
        schema = self.result().schema
        results = PublicResults(
            self.plan, self._source.public, self.selections, to_arrow_schema(schema)
        )
        return ResultWriter(self._source.frame.sparkSession, self._batch_rows, results, schema)

    def explain(self) -> str:
        """Return the plan, and why Spark would write the results where tasks cannot."""
        reason, text = self._writer.why_by_spark(), super().explain()
        if reason is None:
            return text
        return f"{text}\nwriting   write_parquet lets Spark write: {reason}"

    def rows(self, stage: Stage) -> Source:
        """Return the results as rows."""
        del stage
        query, times = self.plan.query, self.plan.query.results_in_time
        selections = (each.with_columns(query.display_name(times.name)) for each in self.selections)
        results = with_result_time(self._all_results(), times)
        return BatchSource(apply_selections(results, selections))

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
        if is_plan_of(self.plan, SelectQuery):
            return self._rows.select(*row_counts(), no_user_counters().alias("user"))
        if is_finished_in_spark(self.plan):
            partials = partials_in_spark(self._rows, self.plan)
            totals = partials.select(*totals_of_partials(self.plan))
            return totals.withColumn("user", no_user_counters())
        return self._tagged_results.select(*total_counters(), total_user_counters())

    def _user_frame(self) -> DataFrame:
        return self._source.frame.drop(*self._source.public, DELETED, *MARKS)


class BatchSource(SparkSource):
    """A batch DataFrame as the source of a query."""

    def outputs(self, query: Query) -> Outputs:
        """Plan a query."""
        prepare_workers(self.frame.sparkSession)
        return BatchOutputs(self, query)
