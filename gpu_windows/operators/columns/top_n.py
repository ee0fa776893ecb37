"""Top-N: the first rows of many groups at once, ordered by columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types

from gpu_windows.functions.top import Ranking, Top
from gpu_windows.functions.vector_results import Piece
from gpu_windows.functions.vector_window import WindowBatch
from gpu_windows.operators.columns.numeric import sortable, to_numeric
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]
#: A column, and whether its order descends.
Ordered = tuple[pa.ChunkedArray, bool]


def evaluate_top(function: Top, batch: WindowBatch) -> Iterator[Piece]:
    """Yield the first rows of every window, with the columns of ``function.output``."""
    by = [(batch.rows.column(place), descending) for place, descending in function.by]
    rows, numbers = first_rows(function.count, by, batch.places)
    columns = batch.rows.take(pa.array(rows)).columns[: function.carried_count]
    found = pa.Table.from_arrays([*columns, pa.array(numbers)], schema=function.output)
    yield Piece(found, batch.places[rows])


def select_top_results(
    ranking: Ranking, keys: Sequence[str], bounds: Sequence[str], table: pa.Table
) -> pa.Table:
    """Return the results of the first keys of every window, with their rank number.

    Parameters
    ----------
    ranking : Ranking
    keys : sequence of str
        The key columns.
    bounds : sequence of str
        Columns of the start and the end of windows.
    table : pyarrow.Table
        Results; all of a window, for each window that it has.
    """
    by = [(table.column(name), descending) for name, descending in ranking.by]
    ties = (table.column(name) for name in keys)
    by += [(column, False) for column in ties if not types.is_nested(column.type)]
    start, end = (to_numeric(table.column(name)).values for name in bounds)
    per = (sortable(table.column(name)) for name in ranking.per)
    rows, numbers = first_rows(ranking.count, by, end, start, *per)
    field = pa.field(ranking.number, pa.int64(), nullable=False)
    return table.take(pa.array(rows)).append_column(field, pa.array(numbers))


def first_rows(count: int, by: Sequence[Ordered], *groups: Ints) -> tuple[Ints, Ints]:
    """Return the indices of the first rows of every group, and their rank numbers from 1.

    Parameters
    ----------
    count : int
        Maximum of rows per group.
    by : sequence of (pyarrow.ChunkedArray, bool)
        Sort columns of n values, and whether each is descending; ties keep the order of rows.
    *groups : int64[n]
        Rows with equal values in all of these are a group.

    Returns
    -------
    rows, numbers : int64[m]
        Sorted by group, then by rank.
    """
    keys = []
    for column, descending in by:
        ranks = sortable(column)
        keys.append(~ranks if descending else ranks)
    packed = _pack(groups)
    order = keys[0].argsort(kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])
    for group in packed[::-1]:
        order = order[group[order].argsort(kind="stable")]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = np.any([np.diff(group[order]) != 0 for group in packed], axis=0)
    positions = np.arange(len(order))
    numbers = positions - np.maximum.accumulate(np.where(is_first, positions, 0)) + 1
    within = numbers <= count
    return order[within], numbers[within]


def _pack(groups: Sequence[Ints]) -> Sequence[NDArray[Any]]:
    """Return fewer arrays that define the same groups in the same order, if they fit 64 bits.

    Values of up to 16 bits become uint16, which NumPy sorts by radix.
    """
    if len(groups[0]) == 0:
        return groups
    bounds = [(int(group.min()), int(group.max())) for group in groups]
    widths = [high - low + 1 for low, high in bounds]
    if math.prod(widths) > LONG_MAX:
        return groups
    packed = np.zeros(len(groups[0]), np.int64)
    for group, (low, _), width in zip(groups, bounds, widths, strict=True):
        packed = packed * width + (group - low)
    return [packed.astype(np.uint16) if math.prod(widths) <= 1 << 16 else packed]
