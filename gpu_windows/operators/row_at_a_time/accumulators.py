"""Accumulators of aggregates in windows: built-in ones by function name, and users'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from pyarrow import types

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.aggregates.user import BoundUserAggregate
from gpu_windows.functions.checked_results import check_not_cut
from gpu_windows.functions.failures import call_user
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
from gpu_windows.user_values import copy_value
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


class MergingAccumulator:
    """A built-in aggregate of merging windows: over the rows of both, in the order of merging."""

    def __init__(self, bound: BoundAggregate) -> None:
        self._bound = bound
        self.rows: list[Row] = []

    def add(self, row: Row) -> None:
        """Add a row."""
        self.rows.append(row)

    def absorb(self, other: Self) -> None:
        """Append the rows of another window."""
        self.rows += other.rows

    def result(self) -> object:
        """Return the aggregate of the rows so far."""
        accumulator = accumulator_of(self._bound)
        for row in self.rows:
            accumulator.add(row)
        return accumulator.result()


class UserAccumulator:
    """The accumulator of a user-defined aggregate."""

    def __init__(self, bound: BoundUserAggregate, display_name: Callable[[str], str]) -> None:
        self.function = bound.function
        self._columns = {display_name(name): name for name in bound.columns}
        self.value = copy_value(self._call(self.function.create_accumulator))

    def add(self, row: Row) -> None:
        """Add a row."""
        seen = {user_name: copy_value(row[name]) for user_name, name in self._columns.items()}
        self._set(self._call(self.function.add, seen, self.value))

    def absorb(self, other: Self) -> None:
        """Merge with the accumulator of another window."""
        self._set(self._call(self.function.merge, self.value, other.value))

    def result(self) -> object:
        """Return the function's result."""
        return self._call(self.function.get_result, copy_value(self.value))

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        def where() -> str:
            of = ", ".join(map(repr, arguments))
            return f"{type(self.function).__name__}.{method.__name__}({of})"

        return call_user(method, where, *arguments)

    def _set(self, value: object) -> None:
        """Set the accumulator; reject a value that a log would truncate, even without a log.

        A new value is copied; the accumulator itself, which ``add`` may have changed, is not.
        """
        if value is not self.value:
            value = copy_value(value)
        self.value = check_not_cut(value, self.function.accumulator, type(self.function).__name__)


def accumulator_of(bound: BoundAggregate) -> Accumulator | Filtered:
    """Return an empty accumulator."""
    make = ACCUMULATORS[bound.aggregate.function]
    is_distinct, where = bound.aggregate.is_distinct, bound.aggregate.where
    accumulator = Distinct(bound, lambda: make(bound)) if is_distinct else make(bound)
    return Filtered(accumulator, where) if isinstance(where, str) else accumulator


def window_accumulator(
    bound: BoundAggregate | BoundUserAggregate,
    display_name: Callable[[str], str],
    *,
    merges: bool,
) -> Any:
    """Return an empty accumulator of a window; ``merges``: whether windows merge."""
    if isinstance(bound, BoundUserAggregate):
        return UserAccumulator(bound, display_name)
    return MergingAccumulator(bound) if merges else accumulator_of(bound)
