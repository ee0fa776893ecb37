"""The one physical output of a streaming query, as the DataFrames that users see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import StructType

from gpu_windows.commits import records
from gpu_windows.commits.records import side_name
from gpu_windows.functions.two_inputs import MARKS
from gpu_windows.planning.plan import Plan
from gpu_windows.query.base import NO_KEY, OWN, REASON, SPREAD
from gpu_windows.runners.choosing import Selection
from gpu_windows.spark_glue.batch import as_timestamps, renamed
from gpu_windows.spark_glue.micro_batches.staged import StagedResults
from gpu_windows.spark_glue.observed import metrics_of
from gpu_windows.spark_glue.packing import BLOB
from gpu_windows.spark_glue.ranking import kept_results
from gpu_windows.spark_glue.selected import selected
from gpu_windows.spark_glue.tagged import (
    KIND,
    LATE,
    RESULT,
    Unpack,
    kinds_of,
    late_schema,
)
from gpu_windows.spark_glue.types import to_spark_schema

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
        Of the kinds of the query's rows in the physical output, which may have those of others.
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

    def results(self, tagged: DataFrame | StagedResults, files: int | None = None) -> DataFrame:
        """Return the results, in so many partitions at most."""
        frame = self._unpacked(tagged, RESULT, self.plan.result_schema, files)
        rows = as_timestamps(frame, self.plan.query.window_columns).drop(NO_KEY, SPREAD, *MARKS)
        kept = kept_results(renamed(rows, self.public), self.plan.query, files)
        return selected(kept, self.selections)

    def late(self, tagged: DataFrame | StagedResults) -> DataFrame:
        """Return the rows that came too late."""
        return self.given_back(tagged).where(F.col(REASON) == "late").drop(REASON)

    def rejected(self, tagged: DataFrame | StagedResults) -> DataFrame:
        """Return the rows without a usable timestamp, and the reason."""
        return self.given_back(tagged).where(F.col(REASON) != "late")

    def given_back(self, tagged: DataFrame | StagedResults, files: int | None = None) -> DataFrame:
        """Return late and rejected rows, and the reasons, in so many partitions at most."""
        frame = self._unpacked(tagged, LATE, late_schema(self.plan), files)
        rows = as_timestamps(frame, [self.plan.query.time]).drop(*OWN)
        return renamed(rows, self.public)

    def side(
        self, tagged: DataFrame | StagedResults, tag: str, files: int | None = None
    ) -> DataFrame:
        """Return the rows of a side output, in so many partitions at most."""
        kind = kinds_of(self.plan)[side_name(tag)]
        frame = self._unpacked(tagged, kind, self.plan.query.side_outputs[tag], files)
        return renamed(frame.drop(NO_KEY), self.public)

    def output(
        self, tagged: DataFrame | StagedResults, name: str, files: int | None = None
    ) -> DataFrame:
        """Return an output by its name among those of a query."""
        if name in self.earlier:
            reader, its = self.earlier[name]
            return reader.output(tagged, its, files)
        if name == records.RESULT:
            return self.results(tagged, files)
        if name == records.LATE:
            return self.given_back(tagged, files)
        tags = {side_name(tag): tag for tag in self.plan.query.side_outputs}
        return self.side(tagged, tags[name], files)

    def metrics(self, tagged: DataFrame) -> DataFrame:
        """Return counters and measures: a row for each shard that was touched."""
        return metrics_of(tagged, self.first)

    def _unpacked(
        self, tagged: DataFrame | StagedResults, kind: int, schema: pa.Schema, files: int | None
    ) -> DataFrame:
        if isinstance(tagged, StagedResults):
            types = to_spark_schema(schema, self.keys)
            return tagged.rows(self.first + kind, schema, types, files)
        blobs = tagged.where(F.col(KIND) == self.first + kind).select(BLOB)
        blobs = blobs if files is None else blobs.coalesce(files)
        return blobs.mapInArrow(Unpack(schema), to_spark_schema(schema, self.keys))
