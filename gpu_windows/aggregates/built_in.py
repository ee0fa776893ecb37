"""The built-in aggregates, as users call them."""

from __future__ import annotations

import math
from importlib.util import find_spec
from numbers import Integral, Real
from typing import TYPE_CHECKING

from gpu_windows.aggregates.aggregate import Aggregate, Framed
from gpu_windows.errors import InvalidFrameError, QueryError, UnsupportedAggregateError
from gpu_windows.vocabulary.frames import BEFORE_NOW, Range, Rows
from gpu_windows.vocabulary.options import is_whole

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


def count(column: str | Column | None = None) -> Aggregate:
    """Count rows, or the values of ``column`` that are not null. Result: BIGINT."""
    return Aggregate("count", column)


def sum_(column: str | Column) -> Aggregate:
    """Sum. Result: BIGINT for integers, DOUBLE for floats, DECIMAL(p + 10, s) for decimals."""
    return Aggregate("sum", column)


def min_(column: str | Column) -> Aggregate:
    """Minimum, NaN being larger than any number. Result: the column's type."""
    return Aggregate("min", column)


def max_(column: str | Column) -> Aggregate:
    """Maximum, NaN being larger than any number. Result: the column's type."""
    return Aggregate("max", column)


def mean(column: str | Column) -> Aggregate:
    """Arithmetic mean. Result: DOUBLE, or DECIMAL(p + 4, s + 4) rounded half up."""
    return Aggregate("mean", column)


def variance(column: str | Column, *, ddof: int = 1) -> Aggregate:
    """Variance (sample, or population with ``ddof=0``); null for fewer than ``ddof + 1`` values.

    It is within 1e-13 of the exact one, relative, also where values are 1e9 standard deviations
    away from 0. A value that is infinite or NaN makes it NaN; equal values have one of exactly 0.
    """
    return Aggregate("variance", column, ddof=_ddof(ddof))


def stddev(column: str | Column, *, ddof: int = 1) -> Aggregate:
    """Square root of `variance`."""
    return Aggregate("stddev", column, ddof=_ddof(ddof))


def first(column: str | Column, *, ignore_nulls: bool = False) -> Aggregate:
    """Value of the first row that arrived; see ``arrival_order`` for what that is on Spark."""
    return Aggregate("first", column, skip_nulls=ignore_nulls)


def last(column: str | Column, *, ignore_nulls: bool = False) -> Aggregate:
    """Value of the last row that arrived; see ``arrival_order`` for what that is on Spark."""
    return Aggregate("last", column, skip_nulls=ignore_nulls)


def arg_min(column: str | Column, by: str | Column, *, first: bool = True) -> Aggregate:
    """Value of ``column`` in the row with the minimum of ``by`` (Spark: min_by).

    Rows whose ``by`` is null do not count; NaN is larger than any number. The value may be null.

    Parameters
    ----------
    column, by : str or Column
    first : bool
        Which of several rows with that ``by``: the first in order of arrival, or the last.
    """
    return Aggregate("arg_min", column, by, first=_flag("first", first))


def arg_max(column: str | Column, by: str | Column, *, first: bool = True) -> Aggregate:
    """Value of ``column`` in the row with the maximum of ``by`` (Spark: max_by).

    Nulls, NaN and ``first`` work as in `arg_min`: ``arg_max("price", "ts", first=False)`` is the
    price in the last arrived row with the latest time.
    """
    return Aggregate("arg_max", column, by, first=_flag("first", first))


def bool_and(column: str | Column) -> Aggregate:
    """Whether every value that is not null is true. Result: BOOLEAN."""
    return Aggregate("bool_and", column)


def bool_or(column: str | Column) -> Aggregate:
    """Whether any value is true. Result: BOOLEAN."""
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
    """All values that are not null, in order of arrival. Result: ARRAY."""
    return Aggregate("collect_list", column)


def count_distinct(column: str | Column) -> Aggregate:
    """Number of distinct values that are not null; all NaN are equal. Result: BIGINT."""
    return Aggregate("count_distinct", column)


def quantile(column: str | Column, fraction: float) -> Aggregate:
    """Exact quantile, between two values by linear interpolation (Spark: percentile).

    NaN is larger than any number; between an infinite value and a finite one it is infinite, where
    Spark has NaN. Result: DOUBLE; null over no value.
    """
    return Aggregate("quantile", column, fraction=_fraction(fraction))


def median(column: str | Column) -> Aggregate:
    """Quantile of 0.5."""
    return quantile(column, 0.5)


# ---- sketches of the DataSketches library: approximate, and small however many rows there are


def approx_count_distinct(column: str | Column, *, lg_k: int = 12) -> Aggregate:
    """Approximate number of distinct values that are not null, by HyperLogLog. Result: BIGINT.

    The relative standard error is about 0.83 / sqrt(2 ** lg_k): 1.3 % by default, in 4 KiB a window
    at most. The same rows always give the same estimate. Needs the extra ``sketches``.

    Parameters
    ----------
    column : str or Column
        Numbers, booleans, dates, timestamps or strings.
    lg_k : int
        Base 2 logarithm of the number of registers, 7 to 21.
    """
    size = _size("lg_k of a distinct sketch", lg_k, 7, 21)
    _require_datasketches()
    return Aggregate("approx_count_distinct", column, sketch_size=size)


def approx_quantile(column: str | Column, fraction: float, *, k: int = 200) -> Aggregate:
    """The smallest value whose rank is about ``fraction``, by a KLL sketch. Result: DOUBLE.

    It is a value of the column (as DOUBLE), not interpolated as in `quantile`: the median of 1 and
    2 is 1. The rank is off by at most about 2.3 / k ** 0.9 with 99 % confidence, 1.3 % by
    default, and exact up to some k values. NaN is skipped; null over no other value. The library
    draws random numbers, so of many rows the result may differ from run to run, within that error.
    Needs the extra ``sketches``.

    Parameters
    ----------
    column : str or Column
        Integers or floats.
    fraction : float
        In [0, 1]: 0.5 for the median.
    k : int
        Size of the sketch, 8 to 65,535.
    """
    size = _size("k of a quantile sketch", k, 8, 65_535)
    _require_datasketches()
    return Aggregate("approx_quantile", column, fraction=_fraction(fraction), sketch_size=size)


def _fraction(value: object) -> float:
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not 0.0 <= number <= 1.0:
        raise QueryError("the fraction of a quantile must be in [0, 1]", value=repr(value))
    return number


def _size(what: str, value: object, min_size: int, max_size: int) -> int:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (whole and min_size <= int(value) <= max_size):  # type: ignore[call-overload]
        raise QueryError(f"{what} must be in [{min_size}, {max_size}]", value=repr(value))
    return int(value)  # type: ignore[call-overload, no-any-return]


def _require_datasketches() -> None:
    if find_spec("datasketches") is None:
        rule = "approximate aggregates need the extra `sketches`, on all nodes"
        raise UnsupportedAggregateError(rule, value="pip install 'gpu-windows[sketches]'")


# ---- for OVER alone


def lag(column: str | Column, rows: int = 1) -> Framed:
    """Value of the row ``rows`` rows before, in order of time; null if it does not exist.

    For `KeyedStream.over`.
    """
    return Framed(first(column), Rows(*_single_row("lag", column, rows, before=True)))


def lead(column: str | Column, rows: int = 1) -> Framed:
    """Value of the row ``rows`` rows after, in order of time; null if it does not exist.

    For `KeyedStream.over`; not on streams.
    """
    return Framed(first(column), Rows(*_single_row("lead", column, rows, before=False)))


def row_number() -> Framed:
    """Number of the row among those of its key in order of time, from 1. Result: BIGINT."""
    return Framed(count(), Rows())


def rank() -> Framed:
    """One more than the number of rows of the key with an earlier time. Result: BIGINT."""
    return Framed(Aggregate("rank"), Range(None, BEFORE_NOW))


def dense_rank() -> Framed:
    """Number of the row's time among the distinct times of the key, from 1. Result: BIGINT."""
    return Framed(Aggregate("dense_rank"), Range())


def _single_row(name: str, column: str | Column, rows: int, *, before: bool) -> tuple[int, int]:
    """Return the bounds of a frame of one row."""
    if column is None:
        raise InvalidFrameError(f"{name} takes a column", value=None)
    if not is_whole(rows) or rows < 1:
        raise InvalidFrameError(f"{name} takes a positive number of rows", value=repr(rows))
    return (rows, -rows) if before else (-rows, rows)
