"""Accumulators of aggregates, by function name."""

from __future__ import annotations

from collections.abc import Callable

from pyarrow import types

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.operators.row_at_a_time.aggregates import (
    Accumulator,
    ApproximateCountDistinct,
    ApproximateQuantile,
    ArgExtreme,
    CollectList,
    Count,
    CountDistinct,
    DecimalMean,
    DecimalSum,
    Distinct,
    Extreme,
    First,
    Last,
    Mean,
    Quantile,
    Rank,
    StandardDeviation,
    Sum,
    Variance,
)
from gpu_windows.vocabulary.triggers import Row


def _sum(bound: BoundAggregate) -> Accumulator:
    return DecimalSum(bound) if types.is_decimal(bound.argument_type) else Sum(bound)


def _mean(bound: BoundAggregate) -> Accumulator:
    return DecimalMean(bound) if types.is_decimal(bound.argument_type) else Mean(bound)


#: Function name to the maker of its accumulators. False precedes true, so the conjunction of
#: booleans is their minimum and the disjunction their maximum.
ACCUMULATORS: dict[str, Callable[[BoundAggregate], Accumulator]] = {
    "count": Count,
    "rank": Rank,
    "dense_rank": CountDistinct,  # of times
    "sum": _sum,
    "mean": _mean,
    "min": lambda bound: Extreme(bound, descending=False),
    "max": lambda bound: Extreme(bound, descending=True),
    "bool_and": lambda bound: Extreme(bound, descending=False),
    "bool_or": lambda bound: Extreme(bound, descending=True),
    "variance": Variance,
    "stddev": StandardDeviation,
    "first": First,
    "last": Last,
    "arg_min": lambda bound: ArgExtreme(bound, descending=False),
    "arg_max": lambda bound: ArgExtreme(bound, descending=True),
    "collect_list": CollectList,
    "count_distinct": CountDistinct,
    "quantile": Quantile,
    "approx_count_distinct": ApproximateCountDistinct,
    "approx_quantile": ApproximateQuantile,
}


class Filtered:
    """An aggregate with a FILTER clause: over the rows of which a column is true."""

    def __init__(self, accumulator: Accumulator, where: str) -> None:
        self.accumulator = accumulator
        self._where = where

    def add(self, row: Row) -> None:
        """Add a row if the column is true."""
        if row[self._where]:
            self.accumulator.add(row)

    def result(self) -> object:
        """Return the aggregate of the rows so far."""
        return self.accumulator.result()


def accumulator_of(bound: BoundAggregate) -> Accumulator | Filtered:
    """Return an empty accumulator."""
    accumulator = ACCUMULATORS[bound.aggregate.function](bound)
    if bound.aggregate.is_distinct:
        made = ACCUMULATORS[bound.aggregate.function]
        accumulator = Distinct(bound, lambda: made(bound))
    where = bound.aggregate.where
    return Filtered(accumulator, where) if isinstance(where, str) else accumulator
