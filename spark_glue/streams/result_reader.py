"""Makes DataFrames for users of the staged results of a streaming query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from gpu_windows.commits import records
from gpu_windows.functions.two_inputs import MARKS
from gpu_windows.planning.plan import Plan
from gpu_windows.runners.selection import Selection
from gpu_windows.spark_glue.columns.projections import as_times, public_rows, with_user_names
from gpu_windows.spark_glue.columns.types import to_spark_schema
from gpu_windows.spark_glue.contract.output_kinds import RESULT, kinds_of
from gpu_windows.spark_glue.dataframes.results import name_results, results_in_time
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
    keys: StructType
    input_types: StructType
    selections: tuple[Selection, ...] = ()
    first: int = 0
    earlier: Mapping[str, tuple[ResultReader, str]] = field(default_factory=dict)

    @property
    def kinds(self) -> dict[str, int]:
        """Names of the outputs to the kinds of their rows."""
        own = {name: self.first + kind.number for name, kind in kinds_of(self.plan).items()}
        return own | {n: reader.kinds[output] for n, (reader, output) in self.earlier.items()}

    def results(self, batch: StagedResults, files: int | None = None) -> DataFrame:
        """Return the results, in at most ``files`` partitions."""
        return self.as_results(self._read_results(batch, files), files)

    def as_results(self, rows: DataFrame, files: int | None = None) -> DataFrame:
        """Return rows of the plan's results as users see them."""
        results = self._name_results(rows, files).drop(*MARKS)
        return apply_selections(results, self.selections)

    def stage_rows(self, batch: StagedResults) -> DataFrame:
        """Return the results as the rows of another stage."""
        return self.as_stage_rows(self._read_results(batch, None))

    def as_stage_rows(self, rows: DataFrame) -> DataFrame:
        """Return rows of the plan's results as another stage reads them: with their time."""
        return results_in_time(self._name_results(rows, None), self.plan.query, self.selections)

    def _name_results(self, rows: DataFrame, files: int | None) -> DataFrame:
        query = self.plan.query
        return name_results(as_times(rows, query.window_types), query, files)

    def output(self, batch: StagedResults, name: str, files: int | None = None) -> DataFrame:
        """Return an output by its name among those of a query, in at most ``files`` partitions."""
        if name in self.earlier:
            reader, output = self.earlier[name]
            return reader.output(batch, output, files)
        if name == records.RESULT:
            return self.results(batch, files)
        kind = kinds_of(self.plan)[name]
        # A key that is the event time, too, is in ticks here: it has not the type of the input.
        others = [each for each in self.keys if each.name not in kind.times]
        types = to_spark_schema(kind.schema, others)
        frame = batch.rows(self.first + kind.number, kind.schema, types, files)
        rows = as_times(frame, kind.times).drop(*kind.own)
        return with_user_names(rows, self.plan.query.display_names)

    def table(self, batch: StagedResults, name: str) -> pa.Table | None:
        """Return an output as an Arrow table if it has few rows, else None.

        Selected or ranked results take a Spark job. None also where expressions select results:
        their values may be more than a driver holds.
        """
        if name in self.earlier:
            reader, output = self.earlier[name]
            return reader.table(batch, output)
        kind, query = kinds_of(self.plan)[name], self.plan.query
        number = self.first + kind.number
        if not batch.is_small(number):
            return None
        if name == records.RESULT:
            if any(each.expressions for each in self.selections):
                return None
            if self.selections or query.ranking is not None:
                return self.results(batch, 1).toArrow()
        rows = batch.table(number, kind.schema)
        return public_rows(rows, query.display_names, kind.times, kind.own)

    @property
    def result_types(self) -> StructType:
        """Spark's types of the results of an operator."""
        return to_spark_schema(self.plan.result_schema, self.input_types)

    def _read_results(self, batch: StagedResults, files: int | None) -> DataFrame:
        return batch.rows(self.first + RESULT, self.plan.result_schema, self.result_types, files)
