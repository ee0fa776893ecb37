"""The staged results of a streaming query, as the DataFrames that users see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from gpu_windows.commits import records
from gpu_windows.commits.records import side_name
from gpu_windows.functions.two_inputs import MARKS
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.query import NO_KEY, OWN, SPREAD
from gpu_windows.runners.choosing import Selection
from gpu_windows.spark_glue.columns.projections import as_timestamps, renamed
from gpu_windows.spark_glue.columns.public_rows import public_rows
from gpu_windows.spark_glue.columns.result_time import with_result_time
from gpu_windows.spark_glue.columns.types import to_spark_schema
from gpu_windows.spark_glue.contract.output_kinds import LATE, RESULT, kinds_of, late_schema
from gpu_windows.spark_glue.dataframes.ranking import kept_results
from gpu_windows.spark_glue.dataframes.selected import selected
from gpu_windows.spark_glue.streams.staged import StagedResults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Reader:
    """Reads blobs; it goes where Spark runs ``foreachBatch``, which may be another process.

    Parameters
    ----------
    plan : Plan
    public : mapping of str to str
        Name of an expression's column to the name that the user gave it.
    keys : StructType
        Spark's types of the keys.
    selections : tuple of Selection
        What becomes of the results.
    first : int
        The first of the kinds of the query's rows.
    earlier : mapping of str to (Reader, str)
        Outputs of earlier stages: what reads each, and its name among the outputs of the stage.
    """

    plan: Plan
    public: Mapping[str, str]
    keys: StructType
    selections: tuple[Selection, ...] = ()
    first: int = 0
    earlier: Mapping[str, tuple[Reader, str]] = field(default_factory=dict)

    @property
    def kinds(self) -> dict[str, int]:
        """The outputs, by name, and the kinds of their rows."""
        own = {name: self.first + kind for name, kind in kinds_of(self.plan).items()}
        return own | {n: reader.kinds[its] for n, (reader, its) in self.earlier.items()}

    @staticmethod
    def is_result(name: str) -> bool:
        """Whether an output is that of the results."""
        return name == records.RESULT

    def results(self, staged: StagedResults, files: int | None = None) -> DataFrame:
        """Return the results, in so many partitions at most."""
        return self.as_results(self._read(staged, RESULT, self.plan.result_schema, files), files)

    def as_results(self, rows: DataFrame, files: int | None = None) -> DataFrame:
        """Return what users see of rows of the plan's results."""
        return selected(self._as_kept(rows, files).drop(*MARKS), self.selections)

    def stage_rows(self, staged: StagedResults) -> DataFrame:
        """Return the results as the rows of another stage."""
        return self.as_stage_rows(self._read(staged, RESULT, self.plan.result_schema, None))

    def as_stage_rows(self, rows: DataFrame) -> DataFrame:
        """Return what another stage sees of rows of the plan's results: with their time."""
        query = self.plan.query
        times = query.results_in_time
        chosen = (each.keeping(query.display_name(times.name)) for each in self.selections)
        return selected(with_result_time(self._as_kept(rows, None), times), chosen)

    def _as_kept(self, rows: DataFrame, files: int | None) -> DataFrame:
        query = self.plan.query
        named = as_timestamps(rows, query.window_columns).drop(NO_KEY, SPREAD)
        return kept_results(renamed(named, self.public), query, files)

    def given_back(self, staged: StagedResults, files: int | None = None) -> DataFrame:
        """Return late and rejected rows, and the reasons, in so many partitions at most."""
        frame = self._read(staged, LATE, late_schema(self.plan), files)
        rows = as_timestamps(frame, [self.plan.query.time]).drop(*OWN)
        return renamed(rows, self.public)

    def side(self, staged: StagedResults, tag: str, files: int | None = None) -> DataFrame:
        """Return the rows of a side output, in so many partitions at most."""
        kind = kinds_of(self.plan)[side_name(tag)]
        frame = self._read(staged, kind, self.plan.query.side_outputs[tag], files)
        return renamed(frame.drop(NO_KEY), self.public)

    def output(self, staged: StagedResults, name: str, files: int | None = None) -> DataFrame:
        """Return an output by its name among those of a query."""
        if name in self.earlier:
            reader, its = self.earlier[name]
            return reader.output(staged, its, files)
        if name == records.RESULT:
            return self.results(staged, files)
        if name == records.LATE:
            return self.given_back(staged, files)
        tags = {side_name(tag): tag for tag in self.plan.query.side_outputs}
        return self.side(staged, tags[name], files)

    def table(self, staged: StagedResults, name: str) -> pa.Table | None:
        """Return an output by its name where it has few rows; None where it has many, or may have.

        Spark is asked where it selects or ranks results. What expressions compute of few rows may
        be more than a driver holds: only Spark writes that.
        """
        if name in self.earlier:
            reader, its = self.earlier[name]
            return reader.table(staged, its)
        kind, query = self.kinds[name], self.plan.query
        if not staged.is_few(kind):
            return None
        if self.is_result(name):
            if any(each.expressions for each in self.selections):
                return None
            if self.selections or query.ranking is not None:
                return self.results(staged, 1).toArrow()
            rows = staged.table(kind, self.plan.result_schema)
            own = (NO_KEY, SPREAD, *MARKS)
            return public_rows(rows, self.public, query.window_columns, own)
        if name == records.LATE:
            rows = staged.table(kind, late_schema(self.plan))
            return public_rows(rows, self.public, [query.time], OWN)
        tags = {side_name(tag): schema for tag, schema in query.side_outputs.items()}
        return public_rows(staged.table(kind, tags[name]), self.public, (), (NO_KEY,))

    def _read(
        self, staged: StagedResults, kind: int, schema: pa.Schema, files: int | None
    ) -> DataFrame:
        types = to_spark_schema(schema, self.keys)
        return staged.rows(self.first + kind, schema, types, files)
