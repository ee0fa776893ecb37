"""Projections: the columns sent to Python workers, and those of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import DataFrame

    from gpu_windows.planning.plan import Plan


def columns_of(frame: DataFrame, plan: Plan, more: Sequence[str] = ()) -> DataFrame:
    """Project to the columns that operators need, event time in ticks, and ``more``."""
    time = plan.query.time
    return frame.select(
        *(
            F.unix_micros(F.col(quote_name(name))).alias(name) if name == time else quote_name(name)
            for name in plan.input_columns
        ),
        *more,
    )


def as_timestamps(frame: DataFrame, ticks: Collection[str]) -> DataFrame:
    """Convert columns of ticks to TIMESTAMP."""
    return frame.select(
        *(
            F.timestamp_micros(F.col(quote_name(name))).alias(name)
            if name in ticks
            else quote_name(name)
            for name in frame.columns
        )
    )


def with_user_names(frame: DataFrame, public: Mapping[str, str]) -> DataFrame:
    """Give columns of expressions the names that the user gave them."""
    names = frame.columns
    if public.keys().isdisjoint(names):  # each projection takes Spark milliseconds to analyze
        return frame
    return frame.select(*(F.col(quote_name(name)).alias(public.get(name, name)) for name in names))
