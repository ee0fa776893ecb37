"""Results straight from Spark's own partials, where a window is one slice.

Then there is nothing to combine, and nothing crosses to Python. The lowering is that of
`gpu_windows.operators.columns.lowering`, over columns of Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

from pyarrow import types
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows import rules
from gpu_windows.aggregates.definitions import BoundAggregate, Lift, Lower, Partial
from gpu_windows.operators.columns.partial_columns import partial_columns
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.slices.partial_stage import UNUSED
from gpu_windows.operators.slices.table import grid_of
from gpu_windows.planning.plan import SLICE, PartialsBy, Plan, WindowPlan
from gpu_windows.query.window import FIRING, WINDOW_END, WINDOW_START
from gpu_windows.spark_glue.native import Ticks, quoted
from gpu_windows.spark_glue.types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROWS = "__p0"


def finishes_in_spark(plan: Plan) -> TypeGuard[WindowPlan]:
    """Whether Spark's partials are the results already."""
    if not (isinstance(plan, WindowPlan) and plan.partials_by is PartialsBy.SPARK):
        return False
    return grid_of(plan).span == 1


def results(partials: DataFrame, plan: WindowPlan) -> DataFrame:
    """Return keys, window bounds (TIMESTAMP) and results from a table of partials."""
    grid: Any = grid_of(plan)
    slice_: Any = Ticks(SLICE)
    number = rules.last_window(slice_, grid)
    bounds = {
        WINDOW_START: rules.start_of(number, grid),
        WINDOW_END: rules.end_of(number, grid),
    }
    columns: dict[Partial, list[Column]] = {
        column.partial: [F.col(field.name) for field in column.fields]
        for column in partial_columns(plan)
    }
    return partials.where(~_unused(plan)).select(
        *(_key(name, plan) for name in plan.query.keys),
        *(_timestamp(bound).alias(name) for name, bound in bounds.items()),
        *(_lower(each, columns).alias(each.name) for each in plan.query.function.built_in),
        *_firing(plan),
    )


def _firing(plan: WindowPlan) -> list[Column]:
    """Return the firing columns: here every window fires once, at its end."""
    if not plan.query.firing_columns:
        return []
    values = (F.lit(0).cast("long"), F.lit("on_time"))
    return [value.alias(field.name) for value, field in zip(values, FIRING, strict=True)]


def _key(name: str, plan: WindowPlan) -> Column:
    key = F.col(quoted(name))
    return F.timestamp_micros(key).alias(name) if name == plan.query.time else key


def _timestamp(ticks: Any) -> Column:
    never_null = F.coalesce(F.expr(ticks.sql), F.lit(0).cast("long"))
    return F.timestamp_micros(never_null)


def totals_of_partials(plan: WindowPlan) -> list[Column]:
    """Return the aggregates that make one row of counters of a table of partials."""
    rows, slice_ = F.col(_ROWS), F.col(SLICE)
    of = {
        "rows": F.lit(True),
        "null_timestamp": slice_ == UNUSED + rules.NULL,
        "out_of_range_timestamp": slice_ == UNUSED + rules.OUT_OF_RANGE,
        "gap": _unused(plan) & (slice_ >= UNUSED + rules.SENTINELS),
    }
    sums = {name: F.sum(F.when(which, rows)) for name, which in of.items()}
    sums["fired"] = F.sum(F.when(~_unused(plan), F.lit(1)))
    zero = F.lit(0).cast("long")
    return [F.coalesce(sums.get(name, zero), zero).alias(name) for name in Counters.names()]


def _unused(plan: WindowPlan) -> Column:
    grid = grid_of(plan)
    special = F.col(SLICE) < UNUSED + rules.SENTINELS
    if not rules.is_gap(1, grid):
        return special
    return special | (F.pmod(F.col(SLICE), F.lit(2)) == 1)


def _lower(bound: BoundAggregate, columns: dict[Partial, list[Column]]) -> Column:
    parts = [columns[partial] for partial in bound.partials]
    lowered = _LOWER[bound.definition.lower](bound, parts)
    return lowered.cast(to_spark(bound.result_type))


def _value(bound: BoundAggregate, parts: list[list[Column]]) -> Column:
    if bound.partials[0].lift is Lift.HIGH:
        return _wide_sum(bound, parts)
    value = parts[0][0]
    kind = bound.result_type
    if types.is_floating(kind):
        return value + F.lit(0.0)  # one zero
    if types.is_timestamp(kind):
        return F.timestamp_micros(value)
    return F.date_from_unix_date(value.cast("int")) if types.is_date32(kind) else value


def _exact(parts: list[list[Column]]) -> Column:
    limb = F.lit(1 << 32).cast("decimal(10,0)")
    return parts[0][0].cast("decimal(20,0)") * limb + parts[1][0].cast("decimal(20,0)")


def _wide_sum(bound: BoundAggregate, parts: list[list[Column]]) -> Column:
    exact = _exact(parts)
    rule = F.lit(f"the sum of BIGINT column {bound.aggregate.column} must fit 64 bits")
    fits = exact.between(F.lit(rules.LONG_MIN), F.lit(rules.LONG_MAX))
    return F.when(exact.isNull() | fits, exact).otherwise(F.raise_error(rule).cast("decimal(38,0)"))


def _ratio(_bound: BoundAggregate, parts: list[list[Column]]) -> Column:
    total = parts[0][0] if len(parts) == 2 else _exact(parts).cast("double")
    count = parts[-1][0]
    return F.when(count > 0, total / F.greatest(count, F.lit(1)))


def _spread(bound: BoundAggregate, parts: list[list[Column]]) -> Column:
    n, mean, m2 = parts[0]
    degrees = n - F.lit(bound.aggregate.ddof)
    finite = F.abs(mean) < F.lit(float("inf"))  # NaN is larger than any number
    spread = F.when(finite, m2 / F.greatest(degrees, F.lit(1))).otherwise(F.lit(float("nan")))
    return F.when(degrees > 0, spread)


_LOWER: dict[Lower, Callable[[BoundAggregate, list[list[Column]]], Column]] = {
    Lower.COUNT: lambda _, parts: parts[0][0],
    Lower.VALUE: _value,
    Lower.RATIO: _ratio,
    Lower.SPREAD: _spread,
    Lower.ROOT_SPREAD: lambda bound, parts: F.sqrt(_spread(bound, parts)),
}
