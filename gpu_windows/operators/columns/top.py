"""The first rows of groups in an order of their columns, many groups at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.top import Top
from gpu_windows.functions.vector_results import Piece
from gpu_windows.functions.vectorised import WindowBatch
from gpu_windows.operators.columns.lanes import sortable

Ints = NDArray[np.int64]


def topmost(function: Top, batch: WindowBatch) -> Iterator[Piece]:
    """Yield the first rows of every window, of columns ``function.output``."""
    rows, numbers = first_rows(function, batch.rows.columns, batch.places)
    taken = batch.rows.take(pa.array(rows)).columns[: function.carried]
    found = pa.Table.from_arrays([*taken, pa.array(numbers)], schema=function.output)
    yield Piece(found, batch.places[rows])


def first_rows(
    function: Top, columns: Sequence[pa.ChunkedArray], *groups: Ints
) -> tuple[Ints, Ints]:
    """Return the first rows of every group by their places, and the number of each from 1 on.

    Parameters
    ----------
    function : Top
    columns : sequence of pyarrow.ChunkedArray
        Its columns; of equal rows the earlier one is first.
    *groups : int64[n]
        What says together in which group a row is.

    Returns
    -------
    rows, numbers : int64[m]
        By group, those of a group in their order.
    """
    keys = []
    for place, descending in function.by:
        ranks = sortable(columns[place])
        keys.append(~ranks if descending else ranks)
    order = np.lexsort((*keys[::-1], *groups[::-1]))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = np.any([np.diff(group[order]) != 0 for group in groups], axis=0)
    places = np.arange(len(order))
    numbers = places - np.maximum.accumulate(np.where(is_first, places, 0)) + 1
    within = numbers <= function.count
    return order[within], numbers[within]
