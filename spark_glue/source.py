"""A Spark DataFrame as the source of a query."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import accumulate, chain, count
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import TimestampType

from gpu_windows.errors import ColumnTypeError, QueryError
from gpu_windows.functions.two_inputs import DELETED, MARKS
from gpu_windows.planning.plan import WindowPlan
from gpu_windows.planning.planner import plan
from gpu_windows.query.base import NO_KEY, OWN, REASON, SPREAD, Query
from gpu_windows.query.validation import (
    check_free,
    check_time,
    check_union,
    no_instant,
    require_column,
)
from gpu_windows.runners.choosing import Selection
from gpu_windows.runners.outputs import Input, Outputs, Side, Source
from gpu_windows.runners.stages import Stage, check_distinct_stages
from gpu_windows.spark_glue.batch import (
    as_timestamps,
    default_shards,
    no_user_counters,
    partials_in_spark,
    renamed,
    tagged,
    total,
    untagged,
    user_total,
)
from gpu_windows.spark_glue.chain import check_chain
from gpu_windows.spark_glue.expressions import refused, says_what_spark_refuses
from gpu_windows.spark_glue.lowering import finishes_in_spark, results, totals_of_partials
from gpu_windows.spark_glue.names import quoted
from gpu_windows.spark_glue.passed import CARRIED
from gpu_windows.spark_glue.ranking import kept_results
from gpu_windows.spark_glue.row_reasons import reason_of_row
from gpu_windows.spark_glue.selected import (
    SelectedInSpark,
    check_by_row,
    holds,
    of_rows,
    selected,
)
from gpu_windows.spark_glue.settings import crosses_quickly
from gpu_windows.spark_glue.sides import tagged_sides
from gpu_windows.spark_glue.stages import EarlierStage, with_result_time
from gpu_windows.spark_glue.stream_inputs import (
    StreamInput,
    join_inputs,
    name_inputs,
    time_inputs,
)
from gpu_windows.spark_glue.this_python import warn_of_other_python
from gpu_windows.spark_glue.types import check_name, to_arrow_schema, to_spark
from gpu_windows.spark_glue.upstream import Adoption, Upstream
from gpu_windows.spark_glue.watermarks import (
    check_untold,
    followed,
    told,
    without_markers,
    without_told,
)
from gpu_windows.watermarks import StageWatermarks, UnionWatermarks, WatermarkStrategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, Observation

#: How many values rows are spread by: more than there are shards.
_SPREAD = 4_096
#: What late rows call their time of arrival.
ARRIVED = "arrived_at"


@dataclass(frozen=True)
class SparkSource(Source):
    """A DataFrame, with the expressions of a query as columns of their own.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The user's columns, then the expressions under names that were free.
    public : dict
        Name of an expression's column to the name that the user gave it.
    earlier : tuple of EarlierStage
        Stages of the query whose results are rows of it.
    changes : tuple of str
        What became of these rows, in words.
    inputs : tuple of StreamInput
        Those of the user's that its rows come from, in the order of Spark's sources.
    adopted : Adoption
        What the inputs that were put together have behind them.
    """

    frame: DataFrame
    public: dict[str, str] = field(default_factory=dict)
    earlier: tuple[EarlierStage, ...] = ()
    changes: tuple[str, ...] = ()
    inputs: tuple[StreamInput, ...] = ()
    adopted: Adoption = field(default_factory=Adoption)

    is_of_spark = True

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns."""
        schema = to_arrow_schema(self.frame.schema)
        return pa.schema([each for each in schema if each.name != CARRIED])

    @property
    def user_columns(self) -> tuple[str, ...]:
        """Names of the columns that the DataFrame came with."""
        own = {*OWN, *self.public}
        return tuple(name for name in without_told(self.schema).names if name not in own)

    def name(self, column: str | Column, fallback: str | None) -> tuple[Source, str]:
        """Return this source with the column in it, and the column's name."""
        if isinstance(column, str):
            require_column(self.schema, column)
            check_name(column)
            if types.is_null(self.schema.field(column).type):
                value = self.frame.schema[column].dataType.simpleString()
                raise ColumnTypeError("no column of this type crosses", value=value, column=column)
            return self, column
        taken = {name.lower() for name in self.frame.columns}
        fresh = next(name for i in count() if (name := f"__expr_{i}") not in taken)
        try:
            own = self.frame.select(column).columns
            if len(own) != 1:
                raise ColumnTypeError("an expression must give one column", value=", ".join(own))
            frame = self.frame.select("*", of_rows(self.frame, column).alias(fresh))
            _ = frame.schema  # asks Spark, which through Connect says only now what it refuses
        except AnalysisException as error:
            raise refused(error, column, self.user_columns) from error
        public = {**self.public, fresh: fallback or own[0]}
        return replace(self, frame=frame, public=public), fresh

    def stamped(self) -> tuple[Source, str]:
        """Return this source with the time of each micro-batch in it, and that column's name."""
        self.check_arrival()
        return self.name(F.current_timestamp(), ARRIVED)

    def check_arrival(self) -> None:
        """Raise `UnsupportedQueryError` unless it is a stream."""
        if not self.frame.isStreaming:
            super().check_arrival()

    def filtered(self, condition: str) -> Source:
        """Return this source with the rows for which a condition is true."""
        with says_what_spark_refuses(condition, self.user_columns):
            frame = self.frame.where(holds(self.frame, condition))
            _ = frame.schema
        return self._changed(frame, Selection({}, frozenset(), condition))

    def extended(self, columns: Mapping[str, str]) -> Source:
        """Return this source with more columns."""
        check_untold(pa.schema([(name, pa.null()) for name in columns]))
        made = {}
        check_by_row(self.frame, columns.values(), self.user_columns)
        for name, text in columns.items():
            with says_what_spark_refuses(text, self.user_columns):
                made[name] = of_rows(self.frame, F.expr(text))
                _ = self.frame.select(made[name]).schema
        return self._changed(self.frame.withColumns(made), Selection(columns, frozenset()))

    def _changed(self, frame: DataFrame, change: Selection) -> SparkSource:
        """Return other rows, and note of those of an earlier stage what became of them."""
        changes = (*self.changes, change.describe()) if self.earlier else ()
        return replace(self, frame=frame, changes=changes)

    def constant(self, name: str, value: pa.Scalar) -> Source:
        """Return this source with a column that has one value."""
        check_free(self.schema, name)
        column = F.lit(value.as_py()).cast(to_spark(value.type))
        frame = self.frame.withColumn(name, column)
        return replace(self, frame=frame, public={**self.public, name: name})

    def spread(self, name: str, column: str) -> Source:
        """Return this source with a column of hash values, few ones, of another column."""
        source = self.constant(name, pa.scalar(0, pa.int64()))
        assert isinstance(source, SparkSource)
        value = F.pmod(F.xxhash64(F.col(quoted(column))), F.lit(_SPREAD))
        return replace(source, frame=source.frame.withColumn(name, value))

    def last_ticks(self, column: str, name: str) -> Source:
        """Return this source with the last microseconds before the times of a column."""
        check_free(self.schema, name)
        ticks = F.unix_micros(F.col(quoted(column))) - 1
        return replace(self, frame=self.frame.withColumn(name, F.timestamp_micros(ticks)))

    def timed(self, column: str, role: str) -> Source:
        """Return this source: Spark's TIMESTAMP has microseconds."""
        check_time(self.schema, column, role)
        dtype = self.frame.schema[column].dataType
        if not isinstance(dtype, TimestampType):
            found = self.schema.field(column).type
            raise no_instant(role, found, dtype.simpleString(), column)
        return replace(self, inputs=time_inputs(self.inputs, self.public_name(column)))

    def with_input_name(self, name: str) -> Source:
        """Return this source with its input, if that is one without a name, called so."""
        return replace(self, inputs=name_inputs(self.inputs, name))

    def union(self, inputs: Sequence[Input]) -> Source:
        """Return the rows of all DataFrames; on streams Spark follows the watermark of each."""
        together = UnionWatermarks(parts=tuple(each.watermarks for each in inputs))
        counts = accumulate((len(each.watermarks.inputs) for each in inputs), initial=0)
        parts = [
            self._of_union(each, inputs[0].time, together, first)
            for each, first in zip(inputs, counts, strict=False)
        ]
        frame = reduce(lambda one, other: one.union(other), (frame for frame, _ in parts))
        sources = [each.source for each in inputs]
        earlier, changes = _of_stages(sources)
        own, adopted = _join_inputs(sources), Adoption.concat(each for _, each in parts)
        return replace(
            self, frame=frame, earlier=earlier, changes=changes, inputs=own, adopted=adopted
        )

    def _of_union(
        self, part: Input, time: str, together: WatermarkStrategy, first: int
    ) -> tuple[DataFrame, Adoption]:
        """Return a DataFrame with this one's columns, its event time called ``time``.

        ``together``: the watermarks of the union; ``first``: the number of this input in it.
        """
        source, frame = part.source, self.frame
        if not isinstance(source, SparkSource) or source.frame.isStreaming != frame.isStreaming:
            rule = "a union is of streams, or of DataFrames that are none"
            raise QueryError(rule, value=type(source).__name__)
        if not isinstance(part.watermarks, UnionWatermarks):
            check_untold(source.schema)
        other = source.frame.withColumnRenamed(part.time, time)
        own, found = (without_told(each) for each in (self.schema, to_arrow_schema(other.schema)))
        check_union(own, found)
        columns = [F.col(quoted(name)) for name in own.names]
        if not other.isStreaming:
            return other.select(*columns), Adoption()
        check_chain(other)
        by_us = together.is_own
        adopted = replace(source, frame=other).adopt(time, part.watermarks, by_us=by_us)
        rows = followed(other, time, part.watermarks, by_us=by_us, is_adopted=adopted.has_watermark)
        return rows.select(*columns, *told(part.watermarks, together, first)), adopted

    def adopt(self, time: str, watermarks: WatermarkStrategy, *, by_us: bool) -> Adoption:
        """Return what a query takes over of these rows' past: see `Upstream.adopt`."""
        if self.earlier or isinstance(watermarks, UnionWatermarks | StageWatermarks):
            return self.adopted  # every input was looked at
        return Upstream.of(self.frame).adopt(self.frame, time, watermarks, by_us=by_us)

    def public_name(self, column: str) -> str:
        """Return what the user calls a column."""
        return self.public.get(column, column)

    def tagged(self, keys: Sequence[str], left: Side, right: Side) -> Source:
        """Return the rows of two DataFrames; on streams Spark follows the watermark of each."""
        frame, adopted = tagged_sides(keys, _with_frame(left), _with_frame(right))
        sources = [left.source, right.source]
        earlier, changes = _of_stages(sources)
        return SparkSource(frame, {}, earlier, changes, _join_inputs(sources), adopted)

    def outputs(self, query: Query) -> Outputs:
        """Plan for Spark, batch or streaming."""
        warn_of_other_python(self.frame.sparkSession)
        if not self.frame.isStreaming:
            return SparkOutputs(self, query)
        from gpu_windows.spark_glue.streaming import StreamOutputs

        return StreamOutputs(self, query)


def _of_stages(sources: Iterable[Source]) -> tuple[tuple[EarlierStage, ...], tuple[str, ...]]:
    """Return the earlier stages of several sources, and what became of the rows of each."""
    of_spark = [source for source in sources if isinstance(source, SparkSource)]
    earlier = tuple(chain.from_iterable(source.earlier for source in of_spark))
    check_distinct_stages(each.stage.name for each in earlier)
    changed = [
        (source.earlier[-1].stage.name, source.changes) for source in of_spark if source.changes
    ]
    changes = (f"{name}: {each}" for name, changes in changed for each in changes)
    return earlier, tuple(changes)


def _join_inputs(sources: Iterable[Source]) -> tuple[StreamInput, ...]:
    """Return the inputs of several sources, in the order of Spark's sources."""
    return join_inputs(source.inputs for source in sources if isinstance(source, SparkSource))


def _with_frame(side: Side) -> tuple[Side, DataFrame]:
    if not isinstance(side.source, SparkSource):
        rule = "a DataFrame is joined with a DataFrame"
        raise QueryError(rule, value=type(side.source).__name__)
    return side, side.source.frame


class SparkOutputs(SelectedInSpark):
    """Outputs of a query on a batch DataFrame; each is a lazy DataFrame."""

    input_kind = "a batch DataFrame"

    def __init__(self, source: SparkSource, query: Query) -> None:
        session = source.frame.sparkSession
        shards = query.options.shards or default_shards(session)
        options = replace(query.options, shards=shards)
        query = replace(query, options=options, public=source.public)
        quickly = crosses_quickly(session.conf)
        self.plan = plan(query, bounded=True, spark=True, crosses_quickly=quickly)
        self._source = source

    @cached_property
    def _tagged(self) -> DataFrame:
        return tagged(self._rows, self.plan)

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
        return selected(self._all_results(observation), self.selections)

    def _all_results(self, observation: Observation | None = None) -> DataFrame:
        """Return the results before anything is selected of them."""
        if finishes_in_spark(self.plan):
            found = self._finished(self.plan, observation)
        else:
            frame = self._tagged
            if observation is not None:
                frame = frame.observe(observation, *total())
            found = as_timestamps(untagged(frame), self.plan.query.window_columns)
        return kept_results(
            renamed(found.drop(NO_KEY, SPREAD), self._source.public), self.plan.query
        )

    def _side(self, tag: str) -> DataFrame:
        """Return the rows of a side output; each output is computed when it is evaluated."""
        frame = untagged(tagged(self._rows, self.plan, tag))
        return renamed(frame.drop(NO_KEY), self._source.public)

    def _finished(self, plan: WindowPlan, observation: Observation | None) -> DataFrame:
        partials = partials_in_spark(self._rows, plan)
        if observation is not None:
            partials = partials.observe(observation, *totals_of_partials(plan))
        return results(partials, plan)

    def rows(self, stage: Stage) -> Source:
        """Return the results as rows."""
        del stage
        query, times = self.plan.query, self.plan.query.results_in_time
        chosen = (each.keeping(query.shown(times.name)) for each in self.selections)
        return SparkSource(selected(with_result_time(self._all_results(), times), chosen))

    def late(self) -> DataFrame:
        """Return no row: a bounded input is complete before a window closes."""
        return self._user_frame().where(F.lit(False))

    def rejected(self) -> DataFrame:
        """Return the rows with an unusable time or value, and the reason."""
        query = self.plan.query
        if not (query.needs_time or query.row_checks):
            return self._user_frame().withColumn(REASON, F.lit(None).cast("string")).limit(0)
        frame = self._rows.withColumn(REASON, reason_of_row(query))
        frame = frame.where(F.col(REASON).isNotNull())
        return frame.drop(*self._source.public, DELETED, *MARKS)

    def metrics(self) -> DataFrame:
        """Return one row of counters."""
        if finishes_in_spark(self.plan):
            partials = partials_in_spark(self._rows, self.plan)
            totals = partials.select(*totals_of_partials(self.plan))
            return totals.withColumn("user", no_user_counters())
        return self._tagged.select(*total(), user_total())

    def _user_frame(self) -> DataFrame:
        return self._source.frame.drop(*self._source.public, DELETED, *MARKS)
