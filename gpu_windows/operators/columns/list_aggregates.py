"""Aggregates that need all values of a window (lists, exact distinct, exact quantiles)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.kernels import backend
from gpu_windows.operators.columns.keys import encoder_for
from gpu_windows.operators.columns.lowering import lower
from gpu_windows.operators.columns.numeric import one_chunk, to_numeric
from gpu_windows.operators.columns.partial_columns import column_of
from gpu_windows.operators.columns.partials import Rows
from gpu_windows.operators.columns.ranges import offsets
from gpu_windows.operators.columns.reducing import reduce_columns

Ints = NDArray[np.int64]


def aggregate_lists(bound: BoundAggregate, rows: pa.Table, lengths: Ints) -> pa.Array:
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
    if bound.aggregate.is_distinct:
        values, lists = _once(values, lists)
    counts = np.bincount(lists, minlength=len(lengths)).astype(np.int64)
    return _FUNCTIONS.get(bound.aggregate.function, _of_partials)(bound, values, lists, counts)


def _once(values: pa.Array, lists: Ints) -> tuple[pa.Array, Ints]:
    """Drop repeated values of each list."""
    codes = encoder_for(values.type).encode(values)
    width = int(codes.max(initial=0)) + 1
    index = np.sort(np.unique(lists * width + codes, return_index=True)[1])
    return values.take(pa.array(index)), lists[index]


def _of_partials(bound: BoundAggregate, values: pa.Array, lists: Ints, counts: Ints) -> pa.Array:
    """Return the results of an aggregate made of partials, by kernels on the CPU."""
    alone = replace(bound, aggregate=replace(bound.aggregate, is_distinct=False, where=None))
    rows = Rows(pa.table({str(bound.aggregate.column): values}))
    columns = [column_of(partial, "") for partial in alone.partials]
    cpu = backend.select("cpu")
    none = np.zeros(len(lists), np.int64)
    groups = cpu.grouping.group(lists, none, len(counts), (0, 0) if len(lists) else None)
    lifted = [column.lift(rows) for column in columns]
    states = reduce_columns(cpu, groups, columns, lifted)
    found = lower(alone, dict(zip(alone.partials, states, strict=True)))
    index = np.cumsum(counts > 0) - 1
    return found.take(pa.array(index, mask=counts == 0))


def _collect_list(_: BoundAggregate, values: pa.Array, lists: Ints, counts: Ints) -> pa.Array:
    del lists
    return pa.ListArray.from_arrays(pa.array(offsets(counts).astype(np.int32)), values)


def _count_distinct(_: BoundAggregate, values: pa.Array, lists: Ints, counts: Ints) -> pa.Array:
    _, found = _once(values, lists)
    return pa.array(np.bincount(found, minlength=len(counts)).astype(np.int64))


def _quantile(bound: BoundAggregate, values: pa.Array, lists: Ints, counts: Ints) -> pa.Array:
    numbers = to_numeric(values.cast(pa.float64(), safe=False)).values
    ranked = np.append(numbers[np.lexsort((numbers, lists))], 0.0)  # NaN comes last
    rank = np.maximum(counts - 1, 0) * float(bound.aggregate.fraction or 0.0)
    lower, upper = np.floor(rank), np.ceil(rank)
    begins = np.cumsum(counts) - counts
    low, high = (ranked[begins + part.astype(np.int64)] for part in (lower, upper))
    with np.errstate(invalid="ignore"):  # infinity times 0, where the result is not used
        between = np.where(lower == upper, low, (upper - rank) * low + (rank - lower) * high)
    return pa.array(between + 0.0, mask=counts == 0)


_FUNCTIONS: dict[str, Callable[[BoundAggregate, pa.Array, Ints, Ints], pa.Array]] = {
    "collect_list": _collect_list,
    "count_distinct": _count_distinct,
    "quantile": _quantile,
}
