"""Aggregates that need all values of a window, of many windows at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.operators.columns.keys import encoder_for
from gpu_windows.operators.columns.lanes import one_chunk, to_lane
from gpu_windows.operators.columns.ranges import offsets

Ints = NDArray[np.int64]


def of_lists(bound: BoundAggregate, rows: pa.Table, lengths: Ints) -> pa.Array:
    """Return the result column of an aggregate over lists of rows.

    Parameters
    ----------
    bound : BoundAggregate
    rows : pyarrow.Table
        The rows of all lists, one list after the other.
    lengths : int64[n]
        Number of rows of every list.
    """
    values = one_chunk(rows.column(str(bound.aggregate.column))).cast(bound.argument_type)
    lists = np.repeat(np.arange(len(lengths)), lengths)
    if bound.aggregate.where is not None:
        true = pc.fill_null(rows.column(str(bound.aggregate.where)), False)
        values, lists = values.filter(true.combine_chunks()), lists[true.to_numpy()]
    if values.null_count:
        lists = lists[values.is_valid().to_numpy(zero_copy_only=False)]
        values = values.drop_null()
    counts = np.bincount(lists, minlength=len(lengths)).astype(np.int64)
    return _FUNCTIONS[bound.aggregate.function](bound, values, lists, counts)


def _collect_list(_: BoundAggregate, values: pa.Array, lists: Ints, counts: Ints) -> pa.Array:
    del lists
    return pa.ListArray.from_arrays(pa.array(offsets(counts).astype(np.int32)), values)


def _count_distinct(_: BoundAggregate, values: pa.Array, lists: Ints, counts: Ints) -> pa.Array:
    codes = encoder_for(values.type).encode(values)
    width = int(codes.max(initial=0)) + 1
    found = np.unique(lists * width + codes) // width
    return pa.array(np.bincount(found, minlength=len(counts)).astype(np.int64))


def _quantile(bound: BoundAggregate, values: pa.Array, lists: Ints, counts: Ints) -> pa.Array:
    numbers = to_lane(values).values.astype(np.float64)
    ranked = np.append(numbers[np.lexsort((numbers, lists))], 0.0)  # NaN comes last
    place = np.maximum(counts - 1, 0) * float(bound.aggregate.fraction or 0.0)
    lower, upper = np.floor(place), np.ceil(place)
    begins = np.cumsum(counts) - counts
    low, high = (ranked[begins + part.astype(np.int64)] for part in (lower, upper))
    with np.errstate(invalid="ignore"):  # infinity times nothing, which is not taken
        between = np.where(lower == upper, low, (upper - place) * low + (place - lower) * high)
    return pa.array(between + 0.0, mask=counts == 0)


_FUNCTIONS: dict[str, Callable[[BoundAggregate, pa.Array, Ints, Ints], pa.Array]] = {
    "collect_list": _collect_list,
    "count_distinct": _count_distinct,
    "quantile": _quantile,
}
