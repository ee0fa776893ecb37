"""Whether contestants computed the same thing: on all rows, in any order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.data import SECOND, START

_TIME = pa.timestamp("us", tz="UTC")
#: Columns of every result, in this order.
RESULT_SCHEMA = pa.schema(
    {
        "key": pa.int64(),
        "window_start": _TIME,
        "window_end": _TIME,
        "sum": pa.float64(),
        "count": pa.int64(),
        "max": pa.float64(),
    }
)
#: Columns of the pairs of a join.
PAIRS = ("key", "left_value", "left_ts", "right_value", "right_ts")
#: Columns in which the last bits depend on the order of additions.
INEXACT = frozenset({"sum", "total_sum", "moment_sum", "peak_sum", "product_sum"})
RELATIVE = 1e-9
#: Columns of a `digest`.
DIGEST = (
    "key",
    "start_count",
    "start_sum",
    "length_sum",
    "total_sum",
    "moment_sum",
    "rows_sum",
    "row_moment_sum",
    "peak_sum",
)
#: Columns by which rows are sorted, the last one first.
_ORDER = ("second", "window_start", "key")
#: Results of more rows are compared by `digest`.
MOST_ROWS = 6_000_000
#: Origin of the weights that `digest` gives to windows, in seconds since the epoch.
ORIGIN = START // SECOND


class ResultMismatchError(Exception):
    """Two contestants do not agree, so their times mean nothing."""


def canonical(table: pa.Table) -> pa.Table:
    """Return the columns of `RESULT_SCHEMA`, in that order and with those types."""
    return table.select(RESULT_SCHEMA.names).cast(RESULT_SCHEMA)


def digest(table: pa.Table) -> pa.Table:
    """Reduce a result to one row a key that changes when a window is lost, moved or altered.

    Windows weigh by their start, in seconds, so that swapped values show.
    """
    ticks = table["window_start"].cast(pa.int64())
    start = pc.subtract(pc.divide(ticks, SECOND), ORIGIN)
    terms = {
        "start": start,
        "length": pc.subtract(table["window_end"].cast(pa.int64()), ticks),
        "total": table["sum"],
        "moment": pc.multiply(start.cast(pa.float64()), table["sum"]),
        "rows": table["count"],
        "row_moment": pc.multiply(start, table["count"]),
        "peak": table["max"],
    }
    sums = [(name, "sum") for name in terms]
    grouped = pa.table({"key": table["key"], **terms}).group_by("key")
    return grouped.aggregate([*sums, ("start", "count")]).select(DIGEST)


def require_equal(expected: pa.Table, actual: pa.Table, names: tuple[str, str]) -> None:
    """Compare two results of the same columns, whatever the order of their rows.

    Integers, times and maxima must be the same, sums within `RELATIVE`.

    Raises
    ------
    ResultMismatchError
        With the first rows that differ.
    """
    first, second = names
    if expected.num_rows != actual.num_rows:
        counts = f"{first} has {expected.num_rows:,} rows, {second} {actual.num_rows:,}"
        raise ResultMismatchError(counts)
    left, right = _sorted(expected), _sorted(actual)
    for name in expected.column_names:
        a, b = _numbers(left, name), _numbers(right, name)
        same = np.isclose(a, b, RELATIVE, 0.0, equal_nan=True) if name in INEXACT else a == b
        if not same.all():
            row = int(np.argmin(same))
            there = ", ".join(str(t.slice(row, 1).to_pylist()[0]) for t in (left, right))
            differ = f"{np.count_nonzero(~same):,} rows differ in {name!r}, the first"
            message = f"{first} and {second} disagree: {differ}: {there}"
            raise ResultMismatchError(message)


def _sorted(table: pa.Table) -> pa.Table:
    order: Sequence[str] = [n for n in _ORDER if n in table.column_names]
    return table.take(pa.array(np.lexsort([_numbers(table, name) for name in order])))


def _numbers(table: pa.Table, name: str) -> NDArray[np.generic]:
    column = table[name]
    if column.null_count:
        message = f"{column.null_count:,} nulls in column {name!r} of a result"
        raise ResultMismatchError(message)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    numbers: NDArray[np.generic] = column.to_numpy()
    return numbers
