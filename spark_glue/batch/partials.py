"""Computes partials of slices by Spark's own aggregation: rows stay out of Python workers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
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
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.ticks import ticks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Ticks:
    """A BIGINT expression in SQL on which `gpu_windows.rules` can be evaluated.

    ``//`` and ``%`` round towards minus infinity, as in the rules.
    """

    sql: str

    def __add__(self, other: Any) -> Ticks:
        return Ticks(f"({self.sql} + {_sql(other)})")

    def __sub__(self, other: Any) -> Ticks:
        return Ticks(f"({self.sql} - {_sql(other)})")

    def __radd__(self, other: Any) -> Ticks:
        return Ticks(f"({_sql(other)} + {self.sql})")

    def __mul__(self, other: Any) -> Ticks:
        return Ticks(f"({self.sql} * {_sql(other)})")

    def __rmul__(self, other: Any) -> Ticks:
        return Ticks(f"({_sql(other)} * {self.sql})")

    def __floordiv__(self, other: int) -> Ticks:
        return Ticks(f"(({self.sql} - {(self % other).sql}) div {_sql(other)})")

    def __rshift__(self, bits: int) -> Ticks:
        return Ticks(f"shiftright({self.sql}, {bits})")

    def __mod__(self, other: int) -> Ticks:
        return Ticks(f"pmod({self.sql}, {_sql(other)})")


def _sql(value: Any) -> str:
    if isinstance(value, Ticks):
        return value.sql
    return f"{int(value)}L" if value >= 0 else f"({int(value)}L)"


def slice_column(plan: WindowPlan) -> Column:
    """Return the slice of a row, or ``UNUSED + status`` without a usable timestamp."""
    grid = grid_of(plan)
    time = quote_name(plan.query.time)
    low, high = rules.earliest_unit(grid), rules.latest_unit(grid)
    index = rules.slice_of(Ticks(time), grid)
    return (
        F.when(F.expr(f"{time} between {low}L and {high}L"), F.expr(index.sql))
        .when(F.expr(f"{time} is null"), F.lit(UNUSED + rules.NULL))
        .otherwise(F.lit(UNUSED + rules.OUT_OF_RANGE))
    )


def spark_partials(frame: DataFrame, plan: WindowPlan) -> DataFrame:
    """Aggregate rows to a table of partials (see `gpu_windows.operators.slices.preaggregation`)."""
    keys = [F.col(quote_name(name)) for name in plan.query.keys]
    names = [field.name for column in partial_columns(plan) for field in column.fields]
    values = [value for partial in plan.partials for value in _aggregates(partial, plan)]
    parts = [value.alias(name) for name, value in zip(names, values, strict=True)]
    return frame.groupBy(*keys, slice_column(plan).alias(SLICE)).agg(*parts)


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


def epoch() -> Column:
    """Return the day from which dates are counted.

    The functions of Spark that count from it by themselves have no version for the GPU.
    """
    return F.lit(date(1970, 1, 1))


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
