"""Computes partials of slices by Spark's own aggregation: rows stay out of Python workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyarrow import types
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows import rules
from gpu_windows.aggregates.partials import Combine, Lift, Partial
from gpu_windows.operators.columns.partial_columns import partial_columns
from gpu_windows.operators.slices.preaggregation import UNUSED
from gpu_windows.operators.slices.table import grid_of
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import SLICE
from gpu_windows.spark_glue.columns.calendar_columns import UNIT, epoch, with_unit
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.projections import columns_of
from gpu_windows.spark_glue.columns.rule_columns import Ticks
from gpu_windows.spark_glue.columns.ticks import ticks_of
from gpu_windows.vocabulary.windows.calendar import CalendarWindows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame


def with_slice(frame: DataFrame, plan: WindowPlan) -> DataFrame:
    """Add the slice of a row, or ``UNUSED + status`` without a usable timestamp."""
    grid, query = grid_of(plan), plan.query
    time = F.col(quote_name(query.time))
    unit = time
    if isinstance(query.assigner, CalendarWindows):
        frame = with_unit(frame, query.time, query.assigner)
        unit = F.col(UNIT)
    number: Any = Ticks(unit)
    slices = (
        F.when(time.between(*query.usable_ticks), rules.slice_of(number, grid).column)
        .when(time.isNull(), F.lit(UNUSED + rules.NULL))
        .otherwise(F.lit(UNUSED + rules.OUT_OF_RANGE))
    )
    return frame.withColumn(SLICE, slices)


def spark_partials(rows: DataFrame, plan: WindowPlan) -> DataFrame:
    """Aggregate rows to a table of partials (see `gpu_windows.operators.slices.preaggregation`)."""
    frame = columns_of(rows, plan)
    keys = [F.col(quote_name(name)) for name in plan.query.keys]
    names = [field.name for column in partial_columns(plan) for field in column.fields]
    values = [value for partial in plan.partials for value in _aggregates(partial, plan)]
    parts = [value.alias(name) for name, value in zip(names, values, strict=True)]
    return with_slice(frame, plan).groupBy(*keys, SLICE).agg(*parts)


def _aggregates(partial: Partial, plan: WindowPlan) -> Iterator[Column]:
    if partial.lift is Lift.ONE:
        value = F.lit(1) if partial.column is None else F.col(quote_name(partial.column))
        yield F.count(_among(value, partial))
        return
    value = _among(_lane(str(partial.column), plan), partial)
    if partial.lift is Lift.HIGH:
        value = F.shiftright(value, 32)
    elif partial.lift is Lift.LOW:
        value = value.bitwiseAND(F.lit(0xFFFFFFFF))
    fold = {Combine.ADD: F.sum, Combine.MIN: F.min, Combine.MAX: F.max}
    yield fold[partial.combine](value)


def _among(value: Column, partial: Partial) -> Column:
    """Return a value, null in rows that do not meet the aggregate's condition."""
    return value if partial.where is None else F.when(F.col(quote_name(partial.where)), value)


def _lane(name: str, plan: WindowPlan) -> Column:
    """Return a column as the BIGINT or DOUBLE that a kernel would get."""
    dtype, column = plan.query.schema.field(name).type, F.col(quote_name(name))
    if name == plan.query.time:
        return column  # projected to ticks before
    if types.is_timestamp(dtype):
        return ticks_of(column, dtype)
    if types.is_date32(dtype):
        return F.datediff(column, epoch()).cast("long")
    return column.cast("double" if types.is_floating(dtype) else "long")
