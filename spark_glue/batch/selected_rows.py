"""Selects rows of a batch DataFrame in Spark, without Python workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.operators.counters import Counters
from gpu_windows.planning.kinds.select import SelectPlan
from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation


def selected_rows(
    frame: DataFrame, plan: SelectPlan, observation: Observation | None = None
) -> DataFrame:
    """Return the selected columns of rows. ``observation``: is given `row_counts`."""
    if observation is not None:
        frame = frame.observe(observation, *row_counts())
    columns = plan.query.columns.items()
    return frame.select(*(F.col(quote_name(column)).alias(name) for name, column in columns))


def row_counts() -> list[Column]:
    """Return the aggregates that compute one row of counters from rows: each is a result."""
    rows, zero = F.count(F.lit(1)), F.lit(0).cast("long")
    counted = {"rows": rows, "fired": rows}
    return [counted.get(name, zero).alias(name) for name in Counters.names()]
