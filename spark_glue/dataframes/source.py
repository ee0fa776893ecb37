"""A Spark DataFrame as the source of a query."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain, count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import TimestampNTZType, TimestampType

from gpu_windows.column_types.local_times import check_local
from gpu_windows.errors import ColumnTypeError, QueryError, UnsupportedQueryError
from gpu_windows.planning.own_columns import NO_TIME, OWN
from gpu_windows.planning.validation import (
    check_free,
    check_time,
    not_a_timestamp,
    require_column,
    union_schema,
)
from gpu_windows.runners.explosion import Explosion
from gpu_windows.runners.lookup import Lookup
from gpu_windows.runners.outputs import Input, InputSide, Source
from gpu_windows.runners.row_changes import (
    AddColumns,
    AddConstant,
    AddLastTicks,
    ConvertLocalTime,
    FilterRows,
    ProjectRows,
    RowChange,
)
from gpu_windows.runners.selection import Selection
from gpu_windows.runners.stages import check_distinct_stages
from gpu_windows.spark_glue.columns.expressions import refusal_error, refusals_as_query_errors
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.ticks import instants_in_spark, ticks_of, times_of
from gpu_windows.spark_glue.columns.types import check_name, in_type, to_arrow_schema, to_spark
from gpu_windows.spark_glue.contract.watermarks import (
    check_reserved_columns,
    progress_of_input,
    with_progress,
    without_progress,
)
from gpu_windows.spark_glue.dataframes.arrow_expressions import why_not_alike
from gpu_windows.spark_glue.dataframes.more_rows import explode_frame, look_up_frame
from gpu_windows.spark_glue.dataframes.sides import change_sides, sides_in_tasks
from gpu_windows.spark_glue.dataframes.spark_selection import check_by_row
from gpu_windows.spark_glue.dataframes.stage_rows import (
    Change,
    EarlierStage,
    StageRows,
    union_frames,
)
from gpu_windows.spark_glue.dataframes.stream_inputs import StreamInput, complete_input, join_inputs
from gpu_windows.spark_glue.dataframes.task_scan import TaskScan
from gpu_windows.spark_glue.dataframes.upstream import Adoption, Upstream
from gpu_windows.vocabulary.watermarks import StageWatermarks, UnionWatermarks, WatermarkStrategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

#: Number of values by which rows are spread: more than there are shards.
_SPREAD = 4_096
#: Reasons why tasks cannot read the rows.
_OF_SPARK = "an expression of Spark's own is computed by Spark"
_OF_STREAMS = "the inputs of a union of streams are read by Spark"
#: Name of the column of arrival times in late rows.
ARRIVED = "arrived_at"


@dataclass(frozen=True)
class SparkSource(Source):
    """A DataFrame, with the expressions of a query as columns of their own.

    Its subclasses for batch and streams are `gpu_windows.spark_glue.batch.outputs.BatchSource` and
    `gpu_windows.spark_glue.streams.outputs.StreamSource`, which plan queries.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The user's columns, then the expressions under names that were free.
    public : dict
        Name of an expression's column to the name that the user gave it.
    earlier : tuple of EarlierStage
        Stages of the query whose results are rows of it.
    stage_rows : StageRows, optional
        How the rows are made in a micro-batch, where results of earlier stages are among them;
        then ``frame`` only shows their columns.
    changes : tuple of str
        Descriptions of the changes of rows of earlier stages.
    inputs : tuple of StreamInput
        The user's inputs that its rows come from, in the order of Spark's sources.
    adopted : Adoption
        Spark's steps before the inputs.
    scan : TaskScan, optional
        How tasks read the same rows, if the source is files.
    """

    frame: DataFrame
    public: dict[str, str] = field(default_factory=dict)
    earlier: tuple[EarlierStage, ...] = ()
    stage_rows: StageRows | None = None
    changes: tuple[str, ...] = ()
    inputs: tuple[StreamInput, ...] = ()
    adopted: Adoption = field(default_factory=Adoption)
    scan: TaskScan | None = None

    is_of_spark = True

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns."""
        return to_arrow_schema(self.frame.schema)

    @property
    def user_columns(self) -> tuple[str, ...]:
        """Names of the columns that the DataFrame came with."""
        own = {*OWN, *self.public}
        return tuple(name for name in without_progress(self.schema).names if name not in own)

    def display_zone(self, column: str) -> str | None:
        """Return the zone of the session, in which SQL shows instants."""
        if super().display_zone(column) is None:
            return None
        return str(self.frame.sparkSession.conf.get("spark.sql.session.timeZone"))

    def bind_column(self, column: str | Column, fallback: str | None) -> tuple[Source, str]:
        """Return this source with the column in it, and the column's name."""
        if isinstance(column, str):
            require_column(self.schema, column)
            check_name(column)
            if types.is_null(self.schema.field(column).type):
                value = self.frame.schema[column].dataType.simpleString()
                raise ColumnTypeError(
                    "columns of this type cannot be sent to Python", value=value, column=column
                )
            return self, column
        used = {name.lower() for name in self.frame.columns}
        fresh = next(name for i in count() if (name := f"__expr_{i}") not in used)
        try:
            own = self.frame.select(column).columns
            if len(own) != 1:
                raise ColumnTypeError("an expression must give one column", value=", ".join(own))
            changed = self._then(lambda frame: frame.select("*", column.alias(fresh)), _OF_SPARK)
            _ = changed.frame.schema  # Spark Connect raises its errors only now
        except AnalysisException as error:
            raise refusal_error(error, column, self.user_columns) from error
        public = {**self.public, fresh: fallback or own[0]}
        return replace(changed, public=public), fresh

    def _then(
        self, change: Change, in_task: RowChange | str, selection: Selection | None = None
    ) -> SparkSource:
        """Return this source after a change.

        ``in_task``: the same for rows that tasks read, or why tasks cannot make it; ``selection``:
        the same, recorded if there are rows of earlier stages.
        """
        rows = None if self.stage_rows is None else self.stage_rows.then(change)
        frame = change(self.frame)
        scan = None if self.scan is None else self.scan.then(in_task).check_columns(frame)
        changes = self.changes
        if selection is not None and self.earlier:
            changes = (*changes, selection.describe())
        return replace(self, frame=frame, stage_rows=rows, scan=scan, changes=changes)

    def add_arrival_time(self) -> tuple[Source, str]:
        """Return this source with the time of each micro-batch in it, and that column's name."""
        self.check_arrival()
        return self.bind_column(F.current_timestamp(), ARRIVED)

    def filter_rows(self, condition: str) -> Source:
        """Return this source with the rows for which a condition is true."""
        with refusals_as_query_errors(condition, self.user_columns):
            in_task = self._in_task([condition], FilterRows(condition))
            selection = Selection({}, frozenset(), condition)
            changed = self._then(lambda frame: frame.where(condition), in_task, selection)
            _ = changed.frame.schema
        return changed

    def add_columns(self, columns: Mapping[str, str]) -> Source:
        """Return this source with more columns."""
        check_reserved_columns(columns)
        check_by_row(self.frame, columns.values(), self.user_columns)
        for name, text in columns.items():
            with refusals_as_query_errors(text, self.user_columns):
                _ = self.frame.select(F.expr(text).alias(name)).schema
        texts = dict(columns)
        return self._then(
            lambda frame: frame.withColumns({name: F.expr(text) for name, text in texts.items()}),
            self._in_task(texts.values(), AddColumns(texts)),
            Selection(columns, frozenset()),
        )

    def project(self, columns: Mapping[str, str]) -> Source:
        """Return this source with some of its columns, by their new names."""
        own = {name: name for name in self.schema.names if name in OWN}
        names = {**columns, **own}
        pairs = [F.col(quote_name(old)).alias(new) for new, old in names.items()]
        return self._then(
            lambda frame: frame.select(*pairs),
            self._project_in_task(names),
            Selection(columns, frozenset()),
        )

    def _project_in_task(self, names: Mapping[str, str]) -> ProjectRows:
        """Return the projection of rows that tasks read; ``names``: new ones to those now."""
        fields = [self.schema.field(old).with_name(new) for new, old in names.items()]
        return ProjectRows(pa.schema(fields), names, {})

    def explode(self, explosion: Explosion) -> Source:
        """Return the rows of the elements of a list or map."""
        if self.earlier:
            rule = "rows of an earlier stage cannot be exploded: explode them before it"
            raise UnsupportedQueryError(rule, value=explosion.column)
        explosion.check(self.schema)
        return self._then(lambda frame: explode_frame(frame, explosion), _OF_SPARK)

    def look_up(self, table: Source, lookup: Lookup) -> Source:
        """Return the rows with columns of the rows of a table that have their key."""
        if not isinstance(table, SparkSource) or table.frame.isStreaming:
            rule = "a lookup takes a batch DataFrame; versions of a stream: temporal_join"
            raise UnsupportedQueryError(rule, value=type(table).__name__)
        if self.earlier:
            rule = "rows of an earlier stage cannot be looked up: look them up before it"
            raise UnsupportedQueryError(rule, value=", ".join(lookup.keys))
        lookup.check(self.schema, table.schema)
        other = table.frame
        return self._then(lambda frame: look_up_frame(frame, other, lookup), _OF_SPARK)

    def _in_task(self, texts: Iterable[str], change: RowChange) -> RowChange | str:
        """Return a change, or why a task would compute other values than Spark."""
        if self.scan is None or self.scan.rows is None:
            return change
        session = self.frame.sparkSession
        return why_not_alike(session, texts, self.scan.rows.schema) or change

    def add_constant(self, name: str, value: pa.Scalar) -> SparkSource:
        """Return this source with a column that has one value."""
        check_free(self.schema, name)
        column = F.lit(value.as_py()).cast(to_spark(value.type))
        in_task = AddConstant(name, value)
        changed = self._then(lambda frame: frame.withColumn(name, column), in_task)
        return replace(changed, public={**self.public, name: name})

    def add_spread(self, name: str, column: str) -> Source:
        """Return this source with a column of hash values, modulo `_SPREAD`, of another column."""
        source = self.add_constant(name, pa.scalar(0, pa.int64()))
        value = F.pmod(F.xxhash64(F.col(quote_name(column))), F.lit(_SPREAD))
        return source._then(lambda frame: frame.withColumn(name, value), _OF_SPARK)

    def add_last_ticks(self, column: str, name: str) -> Source:
        """Return this source with the last microseconds before the times of a column."""
        check_free(self.schema, name)
        dtype = self.frame.schema[column].dataType
        ticks = ticks_of(F.col(quote_name(column)), dtype) - 1
        return self._then(
            lambda frame: frame.withColumn(name, times_of(ticks, dtype)),
            AddLastTicks(name, column),
        )

    def convert_time(self, column: str, role: str) -> Source:
        """Return this source: Spark's times have microseconds."""
        check_time(self.schema, column, role)
        dtype = self.frame.schema[column].dataType
        if not isinstance(dtype, TimestampType | TimestampNTZType):
            found = self.schema.field(column).type
            raise not_a_timestamp(role, found, dtype.simpleString(), column)
        return replace(self, inputs=complete_input(self.inputs, time=self.display_name(column)))

    def convert_local_time(self, column: str, zone: str) -> Source:
        """Return this source with instants, whatever the zone of the session."""
        require_column(self.schema, column)
        check_local(self.schema.field(column))
        instants = instants_in_spark(F.col(quote_name(column)), zone)
        return self._then(
            lambda frame: frame.withColumn(column, instants), ConvertLocalTime(column, zone, "UTC")
        )

    def with_shared_rows(self) -> Source:
        """Return this source; of a stream that Spark reads, changes are made in micro-batches."""
        if self.scan is not None or self.stage_rows is not None or not self.frame.isStreaming:
            return self
        return replace(self, stage_rows=StageRows.of_stream(self.frame))

    def with_input_name(self, name: str) -> Source:
        """Return this source with a name for its input, if it has one input without a name."""
        return replace(self, inputs=complete_input(self.inputs, name=name))

    def union(self, inputs: Sequence[Input]) -> Source:
        """Return the rows of all DataFrames; on streams each keeps its own watermark."""
        combined = UnionWatermarks(parts=tuple(each.watermarks for each in inputs))
        counts = accumulate((len(each.watermarks.inputs) for each in inputs), initial=0)
        sources = [self._rename_time(each, inputs[0].time) for each in inputs]
        schema = union_schema([without_progress(each.schema) for each in sources])
        parts = [
            source._of_union(each, schema, inputs[0].time, combined, first)
            for source, each, first in zip(sources, inputs, counts, strict=False)
        ]
        return replace(self, **_union_fields(parts))

    def _rename_time(self, part: Input, time: str) -> SparkSource:
        """Return an input of a union with its event time renamed to ``time``."""
        source, is_stream = part.source, self.frame.isStreaming
        if not isinstance(source, SparkSource) or source.frame.isStreaming != is_stream:
            rule = "the inputs of a union are all streams or all batch DataFrames"
            raise QueryError(rule, value=type(source).__name__)
        if not isinstance(part.watermarks, UnionWatermarks):
            check_reserved_columns(source.schema.names)
        own_time = part.time
        names = {time if name == own_time else name: name for name in source.schema.names}
        in_task = source._project_in_task(names)
        return source._then(lambda frame: frame.withColumnRenamed(own_time, time), in_task)

    def _of_union(
        self,
        part: Input,
        schema: pa.Schema,
        time: str,
        combined: WatermarkStrategy,
        first: int,
    ) -> SparkSource:
        """Return the rows of this input with the columns of a union.

        ``combined``: the watermarks of the union; ``first``: the number of this input in it.
        """
        columns = [in_type(self.frame, field) for field in schema]
        if not self.frame.isStreaming or part.time == NO_TIME:
            in_task = ProjectRows(schema, {name: name for name in schema.names}, {})
            return self._then(lambda frame: frame.select(*columns), in_task)
        watermarks = part.watermarks
        adopted = self.adopt(time, watermarks)
        more = progress_of_input(watermarks, combined, first)

        def project(frame: DataFrame) -> DataFrame:
            return with_progress(frame, time, watermarks).select(*columns, *more)

        return replace(self._then(project, _OF_STREAMS), adopted=adopted)

    def adopt(self, time: str, watermarks: WatermarkStrategy) -> Adoption:
        """Return Spark's steps before these rows that a query adopts: see `Upstream.adopt`."""
        were_checked = self.earlier or isinstance(watermarks, UnionWatermarks | StageWatermarks)
        if were_checked or not self.frame.isStreaming:
            return self.adopted
        return Upstream.of(self.frame).adopt(self.frame, time, watermarks)

    def display_name(self, column: str) -> str:
        """Return what the user calls a column."""
        return self.public.get(column, column)

    def tag_sides(self, keys: Sequence[pa.Field], left: InputSide, right: InputSide) -> Source:
        """Return the rows of two DataFrames; on streams each keeps its own watermark."""
        sides, sources = (left, right), [_source_of(side) for side in (left, right)]
        changes = change_sides(keys, (left, sources[0].frame), (right, sources[1].frame))
        adopted = [
            source.adopt(side.time, side.watermarks)
            for source, side in zip(sources, sides, strict=True)
        ]
        in_tasks = sides_in_tasks(keys, left, right)
        parts = []
        for source, change, in_task, steps in zip(sources, changes, in_tasks, adopted, strict=True):
            parts.append(replace(source._then(change, in_task), adopted=steps))
        kind = next((type(each) for each in parts if each.frame.isStreaming), type(parts[0]))
        return kind(**_union_fields(parts))


def _union_fields(parts: Sequence[SparkSource]) -> dict[str, Any]:
    """Return the fields of a source with the rows of several sources of the same columns."""
    earlier = tuple(chain.from_iterable(source.earlier for source in parts))
    check_distinct_stages(each.name for each in earlier)
    changed = [(source.earlier[-1].name, source.changes) for source in parts if source.changes]
    changes = (f"{name}: {each}" for name, changes in changed for each in changes)
    return {
        "frame": union_frames(each.frame for each in parts),
        "stage_rows": StageRows.union((each.frame, each.stage_rows) for each in parts),
        "earlier": earlier,
        "changes": tuple(changes),
        "inputs": join_inputs(each.inputs for each in parts),
        "adopted": Adoption.concat(each.adopted for each in parts),
        "scan": TaskScan.concat(each.scan for each in parts),
    }


def _source_of(side: InputSide) -> SparkSource:
    if not isinstance(side.source, SparkSource):
        rule = "a DataFrame is joined with a DataFrame"
        raise QueryError(rule, value=type(side.source).__name__)
    return side.source
