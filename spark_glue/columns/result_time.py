"""The time of results, as a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.planning.own_columns import ResultTimes
from gpu_windows.planning.validation import check_free
from gpu_windows.spark_glue.columns.ticks import ticks_in, times_of
from gpu_windows.spark_glue.columns.types import to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_result_time(results: DataFrame, times: ResultTimes) -> DataFrame:
    """Return results with the column ``times.name``."""
    if times.end is not None:
        check_free(to_arrow_schema(results.schema), times.name)
        ticks = ticks_in(results, times.end) - 1
        dtype = results.schema[times.end].dataType
        return results.withColumn(times.name, times_of(ticks, dtype))
    if not times.sides:
        return results
    sides = [F.col(name) for name in times.sides]
    latest = F.greatest(*sides) if len(sides) > 1 else sides[0]
    check_free(to_arrow_schema(results.drop(*times.sides).schema), times.name)
    return results.withColumn(times.name, latest).drop(*times.sides)
