"""Partials over frames; their entries are rows in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.partials import Combine, Partial
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.keys import encoder_for
from gpu_windows.operators.columns.numeric import one_chunk, sortable
from gpu_windows.operators.columns.partial_columns import column_of
from gpu_windows.operators.columns.partials import FoldedColumn, PartialColumn, Rows, State
from gpu_windows.operators.columns.picked_rows import PickedColumn, Ranked, rank_of
from gpu_windows.planning.kinds.over import OverPlan
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]


class FramedPick(PickedColumn):
    """The first row of a frame by a column, or by its order of arrival.

    Entries are rows in order, so the index of an entry is its order of arrival.
    """

    def __init__(self, partial: Partial, name: str, plan: OverPlan) -> None:
        super().__init__(partial, name, plan.query)
        self.sort = [] if partial.by is None else [(partial.by, partial.descending)]

    def prepare(self, backend: Backend, state: State) -> Ranked:
        """Rank the entries, candidates first."""
        candidates, value, *by = state
        rank = self._rank(by, len(candidates))
        if self.partial.by is not None:  # its values may be as great as the rank of others
            rank = rank_of(np.lexsort((rank, candidates == 0)))
        rank = np.where(candidates > 0, rank, LONG_MAX)
        return Ranked(backend.to_device(rank), candidates > 0, value)

    def _rank(self, sort: Sequence[pa.Array], count: int) -> Ints:
        """Return the rank of every entry; of ties the earlier one is picked."""
        ranks = np.arange(count)
        if sort:
            order = sortable(sort[0])
            order = ~order if self.partial.descending else order
            return rank_of(np.lexsort((~ranks, order))) if self.partial.latest else order
        return ~ranks if self.partial.descending else ranks


class FramedOnce(FoldedColumn):
    """A sum of integers or a count over the distinct values of a frame.

    State: (addends, codes): the code of a row's value, or -1 if it does not count.
    """

    def __init__(self, partial: Partial, name: str, dtype: pa.DataType) -> None:
        super().__init__(partial, name)
        self._dtype = dtype

    def lift(self, rows: Rows) -> State:
        """Return the addend of each row, and the code of its value."""
        count, partial = len(rows.table), self.partial
        valid = rows.valid(partial.column, partial.where)
        counts = np.ones(count, np.bool_) if len(valid) == 0 else valid
        addends = super().materialise(super().lift(rows), count)[0]
        values = one_chunk(rows.table.column(str(partial.column))).cast(self._dtype)
        codes = encoder_for(self._dtype).encode(values)
        return addends.astype(np.int64), np.where(counts, codes, -1)

    def materialise(self, state: State, count: int) -> State:
        """Return the state: it can be concatenated as it is."""
        del count
        return state

    def within(self, first: Ints, after: Ints, state: State) -> State:
        """Return the sum over the distinct values of each frame.

        A row counts in the frames that contain it, but not the previous row of the same value.
        Frames only move forward, so these are consecutive: the row's addend is added at the first
        of them, and subtracted after the last.

        Parameters
        ----------
        first, after : int64[m]
            The first row of each frame, and the one after its last: both non-decreasing.
        """
        addends, codes = state
        rows = np.flatnonzero(codes >= 0)
        values = codes[rows]
        if values.max(initial=0) < 1 << 16:
            values = values.astype(np.uint16)  # NumPy sorts 16 bits by radix
        by_value = rows[np.argsort(values, kind="stable")]
        again = np.flatnonzero(np.diff(codes[by_value]) == 0) + 1
        before = np.full(len(codes), -1)
        before[by_value[again]] = by_value[again - 1]
        begin = np.maximum(
            np.searchsorted(after, rows, "right"), np.searchsorted(first, before[rows], "right")
        )
        end = np.searchsorted(first, rows, "right")
        some = begin < end
        change = np.zeros(len(first) + 1, np.int64)
        np.add.at(change, begin[some], addends[rows[some]])
        np.subtract.at(change, end[some], addends[rows[some]])
        return (np.cumsum(change[:-1]),)

    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Reject: two parts may have the same values."""
        raise NotImplementedError("distinct sums of several parts cannot be combined")


def framed_columns(plan: OverPlan, partials: Sequence[Partial]) -> list[PartialColumn]:
    """Return the columns of some partials, in their order."""
    return [_make_column(partial, plan) for partial in partials]


def _make_column(partial: Partial, plan: OverPlan) -> PartialColumn:
    name = partial.name
    if partial.combine is Combine.PICK:
        return FramedPick(partial, name, plan)
    if partial.once:
        return FramedOnce(partial, name, plan.query.schema.field(str(partial.column)).type)
    return column_of(partial, name)
