"""The one physical output of a streaming query, as the DataFrames that users see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import StructType

from gpu_windows.plan import Plan
from gpu_windows.query import REASON
from gpu_windows.spark_glue.batch import as_timestamps, renamed
from gpu_windows.spark_glue.blobs import BLOB
from gpu_windows.spark_glue.observed import metrics_of
from gpu_windows.spark_glue.tagged import (
    KIND,
    LATE,
    RESULT,
    Unpack,
    late_schema,
)
from gpu_windows.spark_glue.types import to_spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What is noted of a DataFrame: blobs of rows that are given back.
BACK = "back"


@dataclass(frozen=True)
class Reader:
    """Reads blobs; it goes where Spark runs ``foreachBatch``, which may be another process.

    Parameters
    ----------
    plan : Plan
    public : dict
        Name of an expression's column to the name that the user gave it.
    keys : StructType
        Spark's types of the keys.
    """

    plan: Plan
    public: dict[str, str]
    keys: StructType

    def results(self, tagged: DataFrame) -> DataFrame:
        """Return the results."""
        frame = self._unpacked(tagged, RESULT, self.plan.result_schema)
        return renamed(as_timestamps(frame, self.plan.query.window_columns), self.public)

    def late(self, tagged: DataFrame) -> DataFrame:
        """Return the rows that came too late."""
        return self.given_back(tagged).where(F.col(REASON) == "late").drop(REASON)

    def rejected(self, tagged: DataFrame) -> DataFrame:
        """Return the rows without a usable timestamp, and the reason."""
        return self.given_back(tagged).where(F.col(REASON) != "late")

    def given_back(self, tagged: DataFrame) -> DataFrame:
        """Return late and rejected rows, and the reasons."""
        frame = self._unpacked(tagged, LATE, late_schema(self.plan))
        return renamed(as_timestamps(frame, [self.plan.query.time]), self.public)

    def watched(self, tagged: DataFrame) -> tuple[DataFrame, Observation]:
        """Return a DataFrame that notes how many blobs of late or rejected rows it has: `BACK`."""
        observation = Observation()
        return tagged.observe(observation, F.count_if(F.col(KIND) == LATE).alias(BACK)), observation

    def metrics(self, tagged: DataFrame) -> DataFrame:
        """Return counters and measures: a row for each shard that was touched."""
        return metrics_of(tagged)

    def _unpacked(self, tagged: DataFrame, kind: int, schema: pa.Schema) -> DataFrame:
        blobs = tagged.where(F.col(KIND) == kind).select(BLOB)
        return blobs.mapInArrow(Unpack(schema), to_spark_schema(schema, self.keys))
