"""Projections: the columns sent to Python workers, and those of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.ticks import ticks_in, times_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from gpu_windows.planning.plan import Plan
    from gpu_windows.planning.query import Query


def columns_of(frame: DataFrame, plan: Plan, more: Sequence[str] = ()) -> DataFrame:
    """Project to the columns that operators need, event time in ticks, and ``more``."""
    time = plan.query.time
    return frame.select(
        *(
            ticks_in(frame, name).alias(name) if name == time else quote_name(name)
            for name in plan.input_columns
        ),
        *more,
    )


def as_times(frame: DataFrame, ticks: Collection[str], dtype: pa.DataType) -> DataFrame:
    """Convert columns of ticks to times of the type that event times have."""
    return frame.select(
        *(
            times_of(F.col(quote_name(name)), dtype).alias(name)
            if name in ticks
            else quote_name(name)
            for name in frame.columns
        )
    )


def with_times(results: DataFrame, query: Query) -> DataFrame:
    """Convert the bounds of windows, which are ticks, to times."""
    return as_times(results, query.window_columns, query.time_type)


def with_user_names(frame: DataFrame, public: Mapping[str, str]) -> DataFrame:
    """Give columns of expressions the names that the user gave them."""
    names = frame.columns
    if public.keys().isdisjoint(names):  # each projection takes Spark milliseconds to analyze
        return frame
    return frame.select(*(F.col(quote_name(name)).alias(public.get(name, name)) for name in names))
