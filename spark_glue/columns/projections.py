"""Projections: the columns sent to Python workers, and those of results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.ticks import ticks_in, times_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gpu_windows.planning.plan import Plan


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


def as_times(frame: DataFrame, times: Mapping[str, pa.DataType]) -> DataFrame:
    """Convert columns of ticks to times of the given types."""
    names = frame.columns
    if times.keys().isdisjoint(names):  # each projection takes Spark milliseconds to analyze
        return frame
    return frame.select(
        *(
            times_of(F.col(quote_name(name)), times[name]).alias(name)
            if name in times
            else quote_name(name)
            for name in names
        )
    )


def with_user_names(frame: DataFrame, public: Mapping[str, str]) -> DataFrame:
    """Give columns of expressions the names that the user gave them."""
    names = frame.columns
    if public.keys().isdisjoint(names):  # see `as_times`
        return frame
    return frame.select(*(F.col(quote_name(name)).alias(public.get(name, name)) for name in names))


def public_rows(
    rows: pa.Table,
    public: Mapping[str, str],
    times: Mapping[str, pa.DataType],
    own: Collection[str],
) -> pa.Table:
    """Return rows of an operator with the names and types of columns that users see.

    Parameters
    ----------
    rows : pyarrow.Table
    public : mapping of str to str
        Names of columns to those that the user gave them.
    times : mapping of str to pyarrow.DataType
        Columns of ticks, and what they become.
    own : collection of str
        Internal columns, which are left out.
    """
    columns = {
        name: rows[name].cast(times[name]) if name in times else rows[name]
        for name in rows.column_names
        if name not in own
    }
    return pa.table({public.get(name, name): found for name, found in columns.items()})
