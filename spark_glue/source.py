"""A Spark DataFrame as the source of a query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.errors import ColumnNameError, ColumnTypeError, UnsupportedQueryError
from gpu_windows.operators.base import REASON
from gpu_windows.outputs import Outputs, Source
from gpu_windows.planner import plan
from gpu_windows.query import Query, require_column
from gpu_windows.rules import earliest_tick, latest_tick
from gpu_windows.spark_glue.batch import default_shards, partials_in_spark, tagged, to_result, total
from gpu_windows.spark_glue.finish import finishes_in_spark, results, totals_of_partials
from gpu_windows.spark_glue.native import quoted
from gpu_windows.spark_glue.types import to_arrow_schema
from gpu_windows.windows import SlicedAssigner

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation


@dataclass(frozen=True)
class SparkSource(Source):
    """A DataFrame, and the user's columns without those that were added for expressions.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The user's columns, then the expressions of the query under names of their own.
    user_columns : tuple of str
    """

    frame: DataFrame
    user_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.frame.isStreaming:
            rule = "streaming DataFrames are not supported yet; use a batch DataFrame"
            raise UnsupportedQueryError(rule)
        if not self.user_columns:
            object.__setattr__(self, "user_columns", tuple(self.frame.columns))

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns."""
        return to_arrow_schema(self.frame.schema)

    def name(self, column: str | Column, fallback: str | None) -> tuple[Source, str]:
        """Return this source with the column in it, and the column's name."""
        if isinstance(column, str):
            require_column(self.schema, column)
            _check_name(column)
            if types.is_null(self.schema.field(column).type):
                value = self.frame.schema[column].dataType.simpleString()
                raise ColumnTypeError("no column of this type crosses", value=value, column=column)
            return self, column
        own = self.frame.select(column).columns
        if len(own) != 1:
            raise ColumnTypeError("an expression must give one column", value=", ".join(own))
        if fallback is None and own[0] in self.frame.columns:
            return self, self._same(own[0], column)
        name = fallback or own[0]
        _check_name(name)
        return SparkSource(self.frame.withColumn(name, column), self.user_columns), name

    def _same(self, name: str, column: Column) -> str:
        rule = "an expression must not hide a column: give it another name with alias()"
        plain = self.frame.select(quoted(name)).schema == self.frame.select(column).schema
        if not plain:
            raise ColumnTypeError(rule, column=name)
        return name

    def outputs(self, query: Query) -> Outputs:
        """Plan for Spark batch."""
        return SparkOutputs(self, query)


def _check_name(name: str) -> None:
    """Refuse what ``mapInArrow`` of PySpark cannot look up, for it does not quote names."""
    if "." in name or "`" in name:
        rule = "names with dots or backticks do not cross to Python: rename it with alias()"
        raise ColumnNameError(rule, value=repr(name), column=name)


class SparkOutputs(Outputs):
    """Outputs of a query on a batch DataFrame; each is a lazy DataFrame."""

    def __init__(self, source: SparkSource, query: Query) -> None:
        shards = query.options.shards or default_shards(source.frame.sparkSession)
        query = replace(query, options=replace(query.options, shards=shards))
        self.plan = plan(query, bounded=True, spark=True)
        self._source = source

    @cached_property
    def _tagged(self) -> DataFrame:
        return tagged(self._source.frame, self.plan)

    def result(self, observation: Observation | None = None) -> DataFrame:
        """Return the results.

        Parameters
        ----------
        observation : pyspark.sql.Observation, optional
            Is given the counters of `metrics` when the DataFrame is evaluated.
        """
        if finishes_in_spark(self.plan):
            return self._finished(observation)
        frame = self._tagged
        if observation is not None:
            frame = frame.observe(observation, *total())
        return to_result(frame)

    def _finished(self, observation: Observation | None) -> DataFrame:
        partials = partials_in_spark(self._source.frame, self.plan)
        if observation is not None:
            partials = partials.observe(observation, *totals_of_partials(self.plan))
        return results(partials, self.plan)

    def late(self) -> DataFrame:
        """Return no row: a bounded input is complete before a window closes."""
        return self._user_frame().where(F.lit(False))

    def rejected(self) -> DataFrame:
        """Return the rows without a usable timestamp, and the reason."""
        query = self.plan.query
        ticks = F.unix_micros(F.col(quoted(query.time)))
        reason = F.when(ticks.isNull(), F.lit("null_timestamp"))
        if isinstance(query.assigner, SlicedAssigner):
            grid = query.assigner.grid()
            inside = ticks.between(earliest_tick(grid), latest_tick(grid))
            reason = reason.when(~inside, F.lit("out_of_range_timestamp"))
        frame = self._source.frame.withColumn(REASON, reason).where(F.col(REASON).isNotNull())
        return frame.select(*map(quoted, self._source.user_columns), REASON)

    def metrics(self) -> DataFrame:
        """Return one row of counters."""
        if finishes_in_spark(self.plan):
            partials = partials_in_spark(self._source.frame, self.plan)
            return partials.select(*totals_of_partials(self.plan))
        return self._tagged.select(*total())

    def _user_frame(self) -> DataFrame:
        return self._source.frame.select(*map(quoted, self._source.user_columns))
