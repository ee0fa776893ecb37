"""The built-in aggregates, as users call them."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.errors import QueryError

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


def count(column: str | Column | None = None) -> Aggregate:
    """Count rows, or the values of ``column`` that are not null. Result: BIGINT.

    Parameters
    ----------
    column : str or Column, optional
        Column whose non-null values are counted; default: count rows.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a", "a", "a"], "amount": [1, None, 4]}))
    >>> threes = sales.key_by("shop").count_window(3)
    >>> counts = threes.aggregate(n=gw.count(), amounts=gw.count("amount"))
    >>> counts.select(["n", "amounts"]).to_pylist()
    [{'n': 3, 'amounts': 2}]
    """
    return Aggregate("count", column)


def sum_(column: str | Column) -> Aggregate:
    """Sum. Result: BIGINT for integers, DOUBLE for floats, DECIMAL(p + 10, s) for decimals.

    Parameters
    ----------
    column : str or Column
        Integers, floats or decimals; nulls are ignored.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a", "a", "a"], "amount": [1, None, 4]}))
    >>> threes = sales.key_by("shop").count_window(3)
    >>> threes.aggregate(total=gw.sum("amount"))["total"].to_pylist()
    [5]
    """
    return Aggregate("sum", column)


def min_(column: str | Column) -> Aggregate:
    """Minimum, NaN being larger than any number. Result: the column's type.

    Parameters
    ----------
    column : str or Column
        Numbers, booleans, dates, timestamps, text or binary; nulls are ignored.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a", "a", "a"], "amount": [2, None, 4]}))
    >>> threes = sales.key_by("shop").count_window(3)
    >>> threes.aggregate(least=gw.min("amount"))["least"].to_pylist()
    [2]
    """
    return Aggregate("min", column)


def max_(column: str | Column) -> Aggregate:
    """Maximum, NaN being larger than any number. Result: the column's type.

    Parameters
    ----------
    column : str or Column
        Numbers, booleans, dates, timestamps, text or binary; nulls are ignored.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a", "a", "a"], "amount": [2.5, float("nan"), 4.0]}))
    >>> threes = sales.key_by("shop").count_window(3)
    >>> threes.aggregate(greatest=gw.max("amount"))["greatest"].to_pylist()
    [nan]
    """
    return Aggregate("max", column)


def mean(column: str | Column) -> Aggregate:
    """Arithmetic mean. Result: DOUBLE, or DECIMAL(p + 4, s + 4) rounded half up.

    Parameters
    ----------
    column : str or Column
        Integers, floats or decimals; nulls are ignored.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a", "a", "a"], "amount": [1, None, 4]}))
    >>> threes = sales.key_by("shop").count_window(3)
    >>> threes.aggregate(mean=gw.mean("amount"))["mean"].to_pylist()
    [2.5]
    """
    return Aggregate("mean", column)


def variance(column: str | Column, *, ddof: int = 1) -> Aggregate:
    """Variance (sample, or population with ``ddof=0``); null for fewer than ``ddof + 1`` values.

    It is within 1e-13 of the exact one, relative, also where values are 1e9 standard deviations
    away from 0. A value that is infinite or NaN makes it NaN; equal values have one of exactly 0.

    Parameters
    ----------
    column : str or Column
        Integers, floats or decimals of up to 18 digits; nulls are ignored.
    ddof : {1, 0}
        1: of a sample; 0: of the population.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a", "a"], "amount": [1, 3]})).key_by("shop")
    >>> sales.count_window(2).aggregate(
    ...     sample=gw.variance("amount"), population=gw.variance("amount", ddof=0)
    ... ).select(["sample", "population"]).to_pylist()
    [{'sample': 2.0, 'population': 1.0}]
    """
    return Aggregate("variance", column, ddof=_ddof(ddof))


def stddev(column: str | Column, *, ddof: int = 1) -> Aggregate:
    """Square root of `variance`.

    Parameters
    ----------
    column : str or Column
        Integers, floats or decimals of up to 18 digits; nulls are ignored.
    ddof : {1, 0}
        1: of a sample; 0: of the population.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a", "a"], "amount": [1, 3]})).key_by("shop")
    >>> sales.count_window(2).aggregate(s=gw.stddev("amount", ddof=0))["s"].to_pylist()
    [1.0]
    """
    return Aggregate("stddev", column, ddof=_ddof(ddof))


def first(column: str | Column, *, ignore_nulls: bool = False) -> Aggregate:
    """Value of the first row that arrived; see ``arrival_order`` for what that is on Spark.

    Parameters
    ----------
    column : str or Column
        Any type.
    ignore_nulls : bool
        Whether to take the first value that is not null.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann", "ann"], "page": [None, "home"]}))
    >>> pairs = clicks.key_by("user").count_window(2)
    >>> pairs.aggregate(page=gw.first("page", ignore_nulls=True))["page"].to_pylist()
    ['home']
    """
    return Aggregate("first", column, skip_nulls=ignore_nulls)


def last(column: str | Column, *, ignore_nulls: bool = False) -> Aggregate:
    """Value of the last row that arrived; see ``arrival_order`` for what that is on Spark.

    Parameters
    ----------
    column : str or Column
        Any type.
    ignore_nulls : bool
        Whether to take the last value that is not null.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann", "ann"], "page": ["home", "cart"]}))
    >>> pairs = clicks.key_by("user").count_window(2)
    >>> pairs.aggregate(page=gw.last("page"))["page"].to_pylist()
    ['cart']
    """
    return Aggregate("last", column, skip_nulls=ignore_nulls)


def arg_min(column: str | Column, by: str | Column, *, first: bool = True) -> Aggregate:
    """Value of ``column`` in the row with the minimum of ``by`` (Spark: min_by).

    Rows whose ``by`` is null do not count; NaN is larger than any number. The value may be null.

    Parameters
    ----------
    column, by : str or Column
    first : bool
        Which of several rows with that ``by``: the first in order of arrival, or the last.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a", "a"], "item": ["tea", "oil"], "price": [3, 9]}))
    >>> pairs = sales.key_by("shop").count_window(2)
    >>> pairs.aggregate(cheapest=gw.arg_min("item", by="price"))["cheapest"].to_pylist()
    ['tea']
    """
    return Aggregate("arg_min", column, by, first=_flag("first", first))


def arg_max(column: str | Column, by: str | Column, *, first: bool = True) -> Aggregate:
    """Value of ``column`` in the row with the maximum of ``by`` (Spark: max_by).

    Nulls, NaN and ``first`` work as in `arg_min`: ``arg_max("price", "ts", first=False)`` is the
    price in the last arrived row with the latest time.

    Parameters
    ----------
    column, by : str or Column
    first : bool
        Which of several rows with that ``by``: the first in order of arrival, or the last.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a", "a"], "item": ["tea", "oil"], "price": [3, 9]}))
    >>> pairs = sales.key_by("shop").count_window(2)
    >>> pairs.aggregate(dearest=gw.arg_max("item", by="price"))["dearest"].to_pylist()
    ['oil']
    """
    return Aggregate("arg_max", column, by, first=_flag("first", first))


def bool_and(column: str | Column) -> Aggregate:
    """Whether every value that is not null is true. Result: BOOLEAN.

    Parameters
    ----------
    column : str or Column
        Booleans; nulls are ignored.

    Examples
    --------
    >>> checks = gw.stream(pa.table({"host": ["a", "a"], "passed": [True, False]}))
    >>> pairs = checks.key_by("host").count_window(2)
    >>> pairs.aggregate(all=gw.bool_and("passed"))["all"].to_pylist()
    [False]
    """
    return Aggregate("bool_and", column)


def bool_or(column: str | Column) -> Aggregate:
    """Whether any value is true. Result: BOOLEAN.

    Parameters
    ----------
    column : str or Column
        Booleans; nulls are ignored.

    Examples
    --------
    >>> checks = gw.stream(pa.table({"host": ["a", "a"], "passed": [True, False]}))
    >>> pairs = checks.key_by("host").count_window(2)
    >>> pairs.aggregate(any=gw.bool_or("passed"))["any"].to_pylist()
    [True]
    """
    return Aggregate("bool_or", column)


def _flag(name: str, value: bool) -> bool:  # noqa: FBT001
    if not isinstance(value, bool):
        raise QueryError(f"{name} must be True or False", value=value)
    return value


def _ddof(ddof: int) -> int:
    if ddof not in (0, 1):
        raise QueryError("ddof must be 0 (population) or 1 (sample)", value=ddof)
    return ddof


# ---- aggregates that need all values of a window


def collect_list(column: str | Column) -> Aggregate:
    """All values that are not null, in order of arrival. Result: ARRAY.

    Parameters
    ----------
    column : str or Column
        Any type.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "page": ["home", None, "cart"]}))
    >>> threes = clicks.key_by("user").count_window(3)
    >>> threes.aggregate(pages=gw.collect_list("page"))["pages"].to_pylist()
    [['home', 'cart']]
    """
    return Aggregate("collect_list", column)


def count_distinct(column: str | Column) -> Aggregate:
    """Number of distinct values that are not null; all NaN are equal. Result: BIGINT.

    Parameters
    ----------
    column : str or Column
        Numbers, booleans, dates, timestamps, text or binary.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "page": ["home", "cart", "home"]}))
    >>> threes = clicks.key_by("user").count_window(3)
    >>> threes.aggregate(pages=gw.count_distinct("page"))["pages"].to_pylist()
    [2]
    """
    return Aggregate("count_distinct", column)


def quantile(column: str | Column, fraction: float) -> Aggregate:
    """Exact quantile, between two values by linear interpolation (Spark: percentile).

    NaN is larger than any number; between an infinite value and a finite one it is infinite, where
    Spark has NaN. Result: DOUBLE; null over no value.

    Parameters
    ----------
    column : str or Column
        Integers, floats or decimals; nulls are ignored.
    fraction : float
        In [0, 1]: 0.5 for the median.

    Examples
    --------
    >>> calls = gw.stream(pa.table({"host": ["a"] * 5, "ms": [10, 20, 30, 40, 90]}))
    >>> fives = calls.key_by("host").count_window(5)
    >>> fives.aggregate(q75=gw.quantile("ms", 0.75))["q75"].to_pylist()
    [40.0]
    """
    return Aggregate("quantile", column, fraction=check_fraction(fraction))


def median(column: str | Column) -> Aggregate:
    """Quantile of 0.5.

    Parameters
    ----------
    column : str or Column
        Integers, floats or decimals; nulls are ignored.

    Examples
    --------
    >>> calls = gw.stream(pa.table({"host": ["a"] * 4, "ms": [10, 20, 30, 90]}))
    >>> fours = calls.key_by("host").count_window(4)
    >>> fours.aggregate(median=gw.median("ms"))["median"].to_pylist()
    [25.0]
    """
    return quantile(column, 0.5)


def check_fraction(value: object) -> float:
    """Return the fraction of a quantile as a float.

    Raises
    ------
    QueryError
        If it is not a number in [0, 1].
    """
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not 0.0 <= number <= 1.0:
        raise QueryError("the fraction of a quantile must be in [0, 1]", value=repr(value))
    return number
