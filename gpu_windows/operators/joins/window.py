"""Window joins: the pairs of the rows of many windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.join import KEEPS_LEFT, KEEPS_RIGHT, LEFT_ALONE, Pair, WindowJoin
from gpu_windows.functions.two_inputs import Sides
from gpu_windows.functions.vector_results import Piece
from gpu_windows.functions.vector_window import WindowBatch
from gpu_windows.operators.joins import pairs as join_pairs

Ints = NDArray[np.int64]


def join_windows(function: WindowJoin, batch: WindowBatch) -> Iterator[Piece]:
    """Yield pairs, about `pairs.PAIRS` at a time, then the unmatched rows.

    Yields
    ------
    Piece
        Rows with the columns ``function.output``.
    """
    sides, pair = Sides(batch), function.pair
    how, left, right = pair.how, sides.left, sides.right
    matched_left, matched_right = np.zeros(len(left), np.bool_), np.zeros(len(right), np.bool_)
    for i, j in _number_pairs(batch, sides, pair):
        pairs = _table(pair, batch, left[i], right[j])
        holding = join_pairs.holds(pair.condition, pairs)
        if holding is not None:
            i, j, pairs = i[holding], j[holding], pairs.take(pa.array(holding))
        matched_left[i] = matched_right[j] = True
        if how not in LEFT_ALONE:
            yield Piece(pairs, sides.places[left[i]])
    if how in LEFT_ALONE:
        unpaired = left[matched_left if how == "semi" else ~matched_left]
        rows = batch.rows.select(pair.left).take(pa.array(unpaired))
        yield Piece(rows, sides.places[unpaired])
    else:
        yield _make_unmatched(pair, batch, left[~matched_left], right[~matched_right], sides.places)


def _number_pairs(batch: WindowBatch, sides: Sides, pair: Pair) -> Iterator[tuple[Ints, Ints]]:
    """Yield all pairs of rows of the same window, as indices of left and right rows."""
    rights = sides.counts[1]
    if not pair.null_safe:
        rights = np.where(_has_null_key(batch), 0, rights)
    begins = np.cumsum(sides.counts[1]) - sides.counts[1]
    window = sides.places[sides.left]
    ends = np.cumsum(rights[window])
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, join_pairs.PAIRS):
        number = np.arange(begin, min(begin + join_pairs.PAIRS, total))
        i = np.searchsorted(ends, number, side="right")
        j = begins[window[i]] + number - (ends[i] - rights[window[i]])
        yield i, j


def _has_null_key(batch: WindowBatch) -> NDArray[np.bool_]:
    keys = batch.windows.columns[:-2]  # then come the bounds
    nulls = [key.is_null().to_numpy() for key in keys]
    found: NDArray[np.bool_] = np.logical_or.reduce(nulls)
    return found


def _make_unmatched(pair: Pair, batch: WindowBatch, left: Ints, right: Ints, places: Ints) -> Piece:
    """Return the unmatched rows that the join emits, window by window."""
    none = np.empty(0, np.int64)
    left = left if pair.how in KEEPS_LEFT else none
    right = right if pair.how in KEEPS_RIGHT else none
    i = np.concatenate([left, np.full(len(right), -1)])
    j = np.concatenate([np.full(len(left), -1), right])
    order = np.argsort(places[np.maximum(i, j)], kind="stable")
    i, j = i[order], j[order]
    return Piece(_table(pair, batch, i, j), places[np.maximum(i, j)])


def _table(pair: Pair, batch: WindowBatch, i: Ints, j: Ints) -> pa.Table:
    """Return rows side by side; nulls for index -1."""
    rows: Any = batch.rows
    return pair.table(rows, pa.array(i, mask=i < 0), rows, pa.array(j, mask=j < 0))
