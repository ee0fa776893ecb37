"""Aggregates in plain Python: the oracle of the kernels, and independent of them.

Each follows its definition in SQL. Sums of integers and decimals are exact; sums of floats are in
order of arrival, as in Flink.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.errors import ArithmeticOverflowError
from gpu_windows.operators.columns import sketches
from gpu_windows.operators.columns.partials import Rows
from gpu_windows.operators.keyed.values import key_part
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.vocabulary.triggers import Row

#: Python value of a column; its type is the column's and known at run time only.
Value = Any

#: Wide enough for every decimal of Arrow's decimal128, whatever the thread's context is.
_DECIMALS = Context(prec=80, rounding=ROUND_HALF_UP)


class Accumulator(ABC):
    """The state of one aggregate over the rows of one key and window."""

    def __init__(self, bound: BoundAggregate) -> None:
        column = bound.aggregate.column
        self.column = column if isinstance(column, str) else None
        self.bound = bound

    @abstractmethod
    def add(self, row: Row) -> None:
        """Add a row, in order of arrival."""

    @abstractmethod
    def result(self) -> Value:
        """Return the aggregate of the rows so far; more may be added."""


class Count(Accumulator):
    """Rows, or the values that are not null."""

    def __init__(self, bound: BoundAggregate) -> None:
        super().__init__(bound)
        self.count = 0

    def add(self, row: Row) -> None:
        """Count the row."""
        if self.column is None or row[self.column] is not None:
            self.count += 1

    def result(self) -> int:
        """Return the count."""
        return self.count


class Rank(Count):
    """Rank: the number of rows before, plus one."""

    def result(self) -> int:
        """Return the rank."""
        return self.count + 1


class OfValues(Accumulator):
    """Base of the aggregates over the values that are not null."""

    def add(self, row: Row) -> None:
        """Add the row's value unless it is null."""
        value = row[self.column or ""]
        if value is not None:
            self.add_value(value)

    @abstractmethod
    def add_value(self, value: Value) -> None:
        """Add a value."""


class Sum(OfValues):
    """Sum of integers or floats."""

    def __init__(self, bound: BoundAggregate) -> None:
        super().__init__(bound)
        self.count = 0
        self.total: Value = 0.0 if types.is_floating(bound.argument_type) else 0

    def add_value(self, value: Value) -> None:
        """Add the value."""
        self.count += 1
        self.total += value

    def result(self) -> Value:
        """Return the sum; null if there was no value."""
        if self.count == 0:
            return None
        if isinstance(self.total, int) and not LONG_MIN <= self.total <= LONG_MAX:
            raise ArithmeticOverflowError(
                "a sum of integers must fit BIGINT", value=self.total, column=self.column
            )
        return self.total


class Mean(Sum):
    """Mean of integers or floats: the sum, exact for integers, divided by the count."""

    def result(self) -> float | None:
        """Return the mean; null if there was no value."""
        return self.total / self.count if self.count else None


class DecimalSum(OfValues):
    """Sum of decimals, as an unscaled integer."""

    def __init__(self, bound: BoundAggregate) -> None:
        super().__init__(bound)
        self.count = 0
        self.unscaled = 0

    def add_value(self, value: Decimal) -> None:
        """Add the value."""
        self.count += 1
        self.unscaled += int(value.scaleb(self.bound.argument_type.scale, _DECIMALS))

    def result(self) -> Decimal | None:
        """Return the sum; null if there was no value."""
        return self.to_decimal(self.unscaled) if self.count else None

    def to_decimal(self, unscaled: int) -> Decimal:
        """Return an unscaled result as a decimal of the result type."""
        dtype: pa.DataType = self.bound.result_type
        value = Decimal(unscaled).scaleb(-dtype.scale, _DECIMALS)
        if abs(unscaled) >= 10**dtype.precision:
            rule = f"a sum of decimals must fit {dtype}"
            raise ArithmeticOverflowError(rule, value=value, column=self.column)
        return value


class DecimalMean(DecimalSum):
    """Mean of decimals, rounded half up (away from zero)."""

    def result(self) -> Decimal | None:
        """Return the mean; null if there was no value."""
        if self.count == 0:
            return None
        dtype = self.bound.result_type
        total = self.unscaled * 10 ** (dtype.scale - self.bound.argument_type.scale)
        half_up = (2 * abs(total) + self.count) // (2 * self.count)
        return self.to_decimal(half_up if total >= 0 else -half_up)


class Extreme(OfValues):
    """Minimum or maximum; NaN is larger than any number."""

    def __init__(self, bound: BoundAggregate, *, descending: bool) -> None:
        super().__init__(bound)
        self.descending = descending
        self.best: Value = None

    def add_value(self, value: Value) -> None:
        """Store the value if it is beyond the best so far; of equal values the earlier stays."""
        if self.best is None or _precedes(value, self.best, descending=self.descending):
            self.best = value

    def result(self) -> Value:
        """Return the extreme; null if there was no value."""
        return self.best


class Variance(OfValues):
    """Variance, by Welford's recurrence in order of arrival, the mean in two words.

    For decimals, the variance of the unscaled integers is scaled in the end.

    Source: Welford, "Note on a Method for Calculating Corrected Sums of Squares and Products"
    (Technometrics, 1962).
    """

    def __init__(self, bound: BoundAggregate) -> None:
        super().__init__(bound)
        self.count = 0
        self.high = 0.0
        self.low = 0.0
        self.squares = 0.0

    def add_value(self, value: Value) -> None:
        """Update the mean and the sum of squared deviations."""
        argument = self.bound.argument_type
        if types.is_decimal(argument):
            value = int(value.scaleb(argument.scale, _DECIMALS))
        number = float(value)
        rest = float(value - int(number)) if isinstance(value, int) else 0.0
        self.count += 1
        if self.count == 1:
            self.high, self.low = number, rest
            return
        deviation = (number - self.high) + (rest - self.low)
        step = deviation / self.count
        self.squares += deviation * step * (self.count - 1)
        before, self.high = self.high, self.high + step
        if math.isfinite(self.high):
            self.low = math.fsum((before, -self.high, step, self.low))

    def result(self) -> float | None:
        """Return the variance; null for fewer than ``ddof + 1`` values."""
        degrees = self.count - self.bound.aggregate.ddof
        if degrees <= 0:
            return None
        if not math.isfinite(self.high):
            return math.nan
        argument = self.bound.argument_type
        scale = argument.scale if types.is_decimal(argument) else 0
        return self.squares / degrees / 100.0**scale


class StandardDeviation(Variance):
    """Square root of the variance."""

    def result(self) -> float | None:
        """Return the standard deviation; null for fewer than ``ddof + 1`` values."""
        variance = super().result()
        return None if variance is None else math.sqrt(variance)


class First(Accumulator):
    """Value of the first row, which may be null unless nulls are skipped."""

    def __init__(self, bound: BoundAggregate) -> None:
        super().__init__(bound)
        self.found = False
        self.value: Value = None

    def add(self, row: Row) -> None:
        """Take the row's value if it is the first."""
        if not self.found:
            self.offer(row[self.column or ""])

    def offer(self, value: Value) -> None:
        """Store the value, unless it is a null to be skipped."""
        if value is not None or not self.bound.aggregate.skip_nulls:
            self.found, self.value = True, value

    def result(self) -> Value:
        """Return the value."""
        return self.value


class Last(First):
    """Value of the last row, which may be null unless nulls are skipped."""

    def add(self, row: Row) -> None:
        """Replace the value by the row's."""
        self.offer(row[self.column or ""])


class ArgExtreme(Accumulator):
    """Value of the row with the minimal or maximal ``by``; rows with a null ``by`` are skipped."""

    def __init__(self, bound: BoundAggregate, *, descending: bool) -> None:
        super().__init__(bound)
        by = bound.aggregate.by
        self.by = by if isinstance(by, str) else ""
        self.descending = descending
        self.best: Value = None
        self.value: Value = None

    def add(self, row: Row) -> None:
        """Store the row's value if its ``by`` is beyond the best; of ties the earlier stays."""
        by = row[self.by]
        if by is None:
            return
        if self.best is None or self._is_better(by):
            self.best, self.value = by, row[self.column or ""]

    def _is_better(self, by: Value) -> bool:
        if self.bound.aggregate.first:
            return _precedes(by, self.best, descending=self.descending)
        return not _precedes(self.best, by, descending=self.descending)

    def result(self) -> Value:
        """Return the value, which may be null."""
        return self.value


def _precedes(left: Value, right: Value, *, descending: bool) -> bool:
    """Whether ``left`` comes strictly before ``right``; NaN is larger than any number."""
    if descending:
        left, right = right, left
    left_is_nan, right_is_nan = left != left, right != right  # noqa: PLR0124
    if left_is_nan or right_is_nan:
        return not left_is_nan
    return bool(left < right)


class CollectList(OfValues):
    """The values that are not null."""

    def __init__(self, bound: BoundAggregate) -> None:
        super().__init__(bound)
        self.values: list[Value] = []

    def add_value(self, value: Value) -> None:
        """Append the value."""
        self.values.append(value)

    def result(self) -> Value:
        """Return the list."""
        return list(self.values)


class Distinct(CollectList):
    """An aggregate over the distinct values, in order of first appearance."""

    def __init__(self, bound: BoundAggregate, made: Callable[[], Accumulator]) -> None:
        super().__init__(bound)
        self._made = made

    def result(self) -> Value:
        """Return the aggregate of the distinct values."""
        accumulator, different = self._made(), dict[Any, Value]()
        for value in self.values:
            different.setdefault(key_part(value), value)
        for value in different.values():
            accumulator.add({str(self.column): value})
        return accumulator.result()


class CountDistinct(CollectList):
    """Number of distinct values."""

    def result(self) -> int:
        """Return the number of distinct values; all NaN are one."""
        return len({key_part(value) for value in self.values})


class Quantile(CollectList):
    """A quantile, between two values by linear interpolation."""

    def result(self) -> float | None:
        """Return the quantile; null over no value."""
        if not self.values:
            return None
        ranked = sorted(map(float, self.values), key=lambda value: (math.isnan(value), value))
        place = (len(ranked) - 1) * float(self.bound.aggregate.fraction or 0.0)
        lower, upper = math.floor(place), math.ceil(place)
        if lower == upper:
            return ranked[lower] + 0.0
        return (upper - place) * ranked[lower] + (place - lower) * ranked[upper] + 0.0


class ApproximateCountDistinct(CollectList):
    """Estimated number of distinct values, by one sketch."""

    def result(self) -> int:
        """Return the estimate."""
        column = sketches.DistinctColumn(replace(self.bound.partials[0], where=None), "")
        sketch = column.make()
        values = pa.array(self.values, self.bound.argument_type)
        rows = Rows(pa.table({str(self.column): values}))
        column.feed(sketch, column.lift(rows)[0])
        return sketches.distinct(sketch)


class ApproximateQuantile(CollectList):
    """A quantile by one sketch of all values."""

    def result(self) -> float | None:
        """Return the value."""
        column = sketches.QuantilesColumn(self.bound.partials[0], "")
        sketch = column.make()
        column.feed(sketch, np.array(self.values, np.float64))
        return sketches.quantile(sketch, self.bound.aggregate.fraction or 0.0)
