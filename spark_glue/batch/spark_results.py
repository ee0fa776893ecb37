"""Computes results in Spark, without Python workers.

Those of windows come from Spark's own partials, if windows are one slice: then no partials need to
be combined. Those of selections are rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from pyarrow import types
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows import rules
from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.aggregates.formulas import lower
from gpu_windows.aggregates.partials import ROWS
from gpu_windows.operators.columns.partial_columns import partial_columns
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.slices.preaggregation import UNUSED
from gpu_windows.operators.slices.table import grid_of
from gpu_windows.planning.kinds.select import SelectPlan
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START, WindowQuery
from gpu_windows.planning.kinds.window_plan import WindowPlan, finishes_in_spark
from gpu_windows.planning.own_columns import CHANGE, FIRING, INSERT
from gpu_windows.planning.plan import SLICE, PartialsBy, Plan, is_plan_of
from gpu_windows.spark_glue.columns.calendar_columns import epoch
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.rule_columns import Ticks
from gpu_windows.spark_glue.columns.ticks import times_of
from gpu_windows.spark_glue.columns.types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def selected_rows(rows: DataFrame, plan: SelectPlan) -> DataFrame:
    """Return the selected columns of rows."""
    columns = plan.query.columns.items()
    return rows.select(*(F.col(quote_name(column)).alias(name) for name, column in columns))


def row_counts() -> list[Column]:
    """Return the aggregates that compute one row of counters from rows: each is a result."""
    rows, zero = F.count(F.lit(1)), F.lit(0).cast("long")
    counted = {"rows": rows, "fired": rows}
    return [counted.get(name, zero).alias(name) for name in Counters.names()]


def is_finished_in_spark(plan: Plan) -> TypeGuard[WindowPlan]:
    """Whether Spark computes the results itself."""
    if not (is_plan_of(plan, WindowQuery) and plan.partials_by is PartialsBy.SPARK):
        return False
    return finishes_in_spark(plan.query, grid_of(plan))


def results(partials: DataFrame, plan: WindowPlan) -> DataFrame:
    """Return keys, window bounds (TIMESTAMP) and results from a table of partials."""
    grid: Any = grid_of(plan)
    slice_: Any = Ticks(F.col(SLICE))
    number = rules.last_window(slice_, grid)
    bounds: dict[str, Any] = {
        WINDOW_START: rules.start_of(number, grid),
        WINDOW_END: rules.end_of(number, grid),
    }
    columns = {
        column.partial: [F.col(field.name) for field in column.fields]
        for column in partial_columns(plan)
    }
    formulas = _Columns()
    return partials.where(~_is_unused(plan)).select(
        *(_key(name, plan) for name in plan.query.keys),
        *(_time(bound, plan).alias(name) for name, bound in bounds.items()),
        *(
            lower(each, [columns[partial] for partial in each.partials], formulas).alias(each.name)
            for each in plan.query.function.built_in
        ),
        *_firing(plan),
    )


def _firing(plan: WindowPlan) -> list[Column]:
    """Return the firing columns: every window fires once, at its end."""
    if not plan.query.firing_columns:
        return []
    values = (F.lit(0).cast("long"), F.lit("on_time"))
    firing = [value.alias(field.name) for value, field in zip(values, FIRING, strict=True)]
    return [*firing, F.lit(INSERT).alias(CHANGE.name)] if plan.query.changes else firing


def _key(name: str, plan: WindowPlan) -> Column:
    key = F.col(quote_name(name))
    query = plan.query
    return times_of(key, query.time_type).alias(name) if name == query.time else key


def _time(ticks: Any, plan: WindowPlan) -> Column:
    never_null = F.coalesce(ticks.column, F.lit(0).cast("long"))
    return times_of(never_null, plan.query.time_type)


def totals_of_partials(plan: WindowPlan) -> list[Column]:
    """Return the aggregates that compute one row of counters from a table of partials."""
    rows, slice_ = F.col(ROWS.name), F.col(SLICE)
    of = {
        "rows": F.lit(True),
        "null_timestamp": slice_ == UNUSED + rules.NULL,
        "out_of_range_timestamp": slice_ == UNUSED + rules.OUT_OF_RANGE,
        "gap": _is_unused(plan) & (slice_ >= UNUSED + rules.SENTINELS),
    }
    sums = {name: F.sum(F.when(which, rows)) for name, which in of.items()}
    sums["fired"] = F.sum(F.when(~_is_unused(plan), F.lit(1)))
    zero = F.lit(0).cast("long")
    return [F.coalesce(sums.get(name, zero), zero).alias(name) for name in Counters.names()]


def _is_unused(plan: WindowPlan) -> Column:
    grid = grid_of(plan)
    special = F.col(SLICE) < UNUSED + rules.SENTINELS
    if not rules.is_gap(1, grid):
        return special
    return special | (F.pmod(F.col(SLICE), F.lit(2)) == 1)


class _Columns:
    """Evaluates formulas of aggregates on Spark columns."""

    def at_least_one(self, counts: Column) -> Column:
        return F.greatest(counts, F.lit(1))

    def result(self, bound: BoundAggregate, values: Column, some: Column | None) -> Column:
        dtype = bound.result_type
        if types.is_timestamp(dtype):
            values = times_of(values, dtype)
        elif types.is_date32(dtype):
            values = F.date_add(epoch(), values.cast("int"))
        return (values if some is None else F.when(some, values)).cast(to_spark(dtype))

    def exact_sum(self, bound: BoundAggregate, high: Column, low: Column, some: Column) -> Column:
        exact = _exact(high, low)
        rule = F.lit(f"the sum of BIGINT column {bound.aggregate.column} must fit 64 bits")
        fits = exact.between(F.lit(rules.LONG_MIN), F.lit(rules.LONG_MAX))
        refused = F.raise_error(rule).cast("decimal(38,0)")
        return self.result(bound, F.when(exact.isNull() | fits, exact).otherwise(refused), some)

    def exact_ratio(
        self, bound: BoundAggregate, high: Column, low: Column, counts: Column, some: Column
    ) -> Column:
        return self.result(bound, _exact(high, low).cast("double") / counts, some)


def _exact(high: Column, low: Column) -> Column:
    limb = F.lit(1 << 32).cast("decimal(10,0)")
    return high.cast("decimal(20,0)") * limb + low.cast("decimal(20,0)")
