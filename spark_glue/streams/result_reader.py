"""Makes DataFrames for users of the staged results of a streaming query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from gpu_windows.commits import records
from gpu_windows.commits.records import side_name
from gpu_windows.functions.two_inputs import MARKS
from gpu_windows.planning.own_columns import NO_KEY, OWN, SPREAD
from gpu_windows.planning.plan import Plan
from gpu_windows.runners.selection import Selection
from gpu_windows.spark_glue.columns.projections import as_times, with_times, with_user_names
from gpu_windows.spark_glue.columns.public_rows import public_rows
from gpu_windows.spark_glue.columns.result_time import with_result_time
from gpu_windows.spark_glue.columns.types import to_spark_schema
from gpu_windows.spark_glue.contract.output_kinds import LATE, RESULT, kinds_of, late_schema
from gpu_windows.spark_glue.dataframes.ranking import rank_results
from gpu_windows.spark_glue.dataframes.spark_selection import apply_selections
from gpu_windows.spark_glue.streams.staged_results import StagedResults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ResultReader:
    """Makes DataFrames of staged results.

    It is pickled to the process where Spark runs ``foreachBatch``.

    Parameters
    ----------
    plan : Plan
    public : mapping of str to str
        Names of columns of expressions to the names that the user gave them.
    keys : StructType
        Spark's types of the keys.
    input_types : StructType
        Spark's types of the results that have the values of an input column.
    selections : tuple of Selection
        Of the results.
    first : int
        First of the kinds of its rows.
    earlier : mapping of str to (ResultReader, str)
        Outputs of earlier stages: the reader of each, and its name within its stage.
    """

    plan: Plan
    public: Mapping[str, str]
    keys: StructType
    input_types: StructType
    selections: tuple[Selection, ...] = ()
    first: int = 0
    earlier: Mapping[str, tuple[ResultReader, str]] = field(default_factory=dict)

    @property
    def kinds(self) -> dict[str, int]:
        """Names of the outputs to the kinds of their rows."""
        own = {name: self.first + kind for name, kind in kinds_of(self.plan).items()}
        return own | {n: reader.kinds[output] for n, (reader, output) in self.earlier.items()}

    @staticmethod
    def is_result(name: str) -> bool:
        """Whether an output is that of the results."""
        return name == records.RESULT

    def results(self, batch: StagedResults, files: int | None = None) -> DataFrame:
        """Return the results, in at most ``files`` partitions."""
        return self.as_results(self._read_results(batch, files), files)

    def as_results(self, rows: DataFrame, files: int | None = None) -> DataFrame:
        """Return rows of the plan's results as users see them."""
        return apply_selections(self._ranked_rows(rows, files).drop(*MARKS), self.selections)

    def stage_rows(self, batch: StagedResults) -> DataFrame:
        """Return the results as the rows of another stage."""
        return self.as_stage_rows(self._read_results(batch, None))

    def as_stage_rows(self, rows: DataFrame) -> DataFrame:
        """Return rows of the plan's results as another stage reads them: with their time."""
        query = self.plan.query
        times = query.results_in_time
        selections = (each.with_columns(query.display_name(times.name)) for each in self.selections)
        results = with_result_time(self._ranked_rows(rows, None), times)
        return apply_selections(results, selections)

    def _ranked_rows(self, rows: DataFrame, files: int | None) -> DataFrame:
        query = self.plan.query
        results = with_times(rows, query).drop(NO_KEY, SPREAD)
        return rank_results(with_user_names(results, self.public), query, files)

    def late_rows(self, batch: StagedResults, files: int | None = None) -> DataFrame:
        """Return late and rejected rows with their reasons, in at most ``files`` partitions."""
        query, schema = self.plan.query, late_schema(self.plan)
        # A key that is the event time, too, is in ticks here: it has not the type of the input.
        others = StructType([each for each in self.keys if each.name != query.time])
        types = to_spark_schema(schema, others)
        frame = batch.rows(self.first + LATE, schema, types, files)
        rows = as_times(frame, [query.time], query.time_type).drop(*OWN)
        return with_user_names(rows, self.public)

    def side(self, batch: StagedResults, tag: str, files: int | None = None) -> DataFrame:
        """Return the rows of a side output, in at most ``files`` partitions."""
        kind = kinds_of(self.plan)[side_name(tag)]
        frame = self._read(batch, kind, self.plan.query.side_outputs[tag], files)
        return with_user_names(frame.drop(NO_KEY), self.public)

    def output(self, batch: StagedResults, name: str, files: int | None = None) -> DataFrame:
        """Return an output by its name among those of a query."""
        if name in self.earlier:
            reader, output = self.earlier[name]
            return reader.output(batch, output, files)
        if name == records.RESULT:
            return self.results(batch, files)
        if name == records.LATE:
            return self.late_rows(batch, files)
        tags = {side_name(tag): tag for tag in self.plan.query.side_outputs}
        return self.side(batch, tags[name], files)

    def table(self, batch: StagedResults, name: str) -> pa.Table | None:
        """Return an output as an Arrow table if it has few rows, else None.

        Selected or ranked results take a Spark job. None also where expressions select results:
        their values may be more than a driver holds.
        """
        if name in self.earlier:
            reader, output = self.earlier[name]
            return reader.table(batch, output)
        kind, query = self.kinds[name], self.plan.query
        if not batch.is_small(kind):
            return None
        if self.is_result(name):
            if any(each.expressions for each in self.selections):
                return None
            if self.selections or query.ranking is not None:
                return self.results(batch, 1).toArrow()
            rows = batch.table(kind, self.plan.result_schema)
            own = (NO_KEY, SPREAD, *MARKS)
            return public_rows(rows, self.public, query.window_types, own)
        if name == records.LATE:
            rows = batch.table(kind, late_schema(self.plan))
            return public_rows(rows, self.public, {query.time: query.time_type}, OWN)
        tags = {side_name(tag): schema for tag, schema in query.side_outputs.items()}
        return public_rows(batch.table(kind, tags[name]), self.public, {}, (NO_KEY,))

    @property
    def result_types(self) -> StructType:
        """Spark's types of the results of an operator."""
        return to_spark_schema(self.plan.result_schema, self.input_types)

    def _read_results(self, batch: StagedResults, files: int | None) -> DataFrame:
        return batch.rows(self.first + RESULT, self.plan.result_schema, self.result_types, files)

    def _read(
        self, batch: StagedResults, kind: int, schema: pa.Schema, files: int | None
    ) -> DataFrame:
        types = to_spark_schema(schema, self.keys)
        return batch.rows(self.first + kind, schema, types, files)
