"""Approximate aggregates by sketches of the DataSketches library, small for any number of rows."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.built_in import check_fraction
from gpu_windows.errors import QueryError, require_extra

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


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

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "page": ["home", "cart", "home"]}))
    >>> threes = clicks.key_by("user").count_window(3)
    >>> threes.aggregate(pages=gw.approx_count_distinct("page"))["pages"].to_pylist()
    [2]
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

    Examples
    --------
    >>> calls = gw.stream(pa.table({"host": ["a"] * 4, "ms": [10, 20, 30, 90]}))
    >>> fours = calls.key_by("host").count_window(4)
    >>> fours.aggregate(median=gw.approx_quantile("ms", 0.5))["median"].to_pylist()
    [20.0]
    """
    size = _size("k of a quantile sketch", k, 8, 65_535)
    _require_datasketches()
    return Aggregate("approx_quantile", column, fraction=check_fraction(fraction), sketch_size=size)


def _size(what: str, value: object, min_size: int, max_size: int) -> int:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (whole and min_size <= int(value) <= max_size):  # type: ignore[call-overload]
        raise QueryError(f"{what} must be in [{min_size}, {max_size}]", value=repr(value))
    return int(value)  # type: ignore[call-overload, no-any-return]


def _require_datasketches() -> None:
    require_extra("datasketches", "sketches", "an approximate aggregate, on all nodes,")
