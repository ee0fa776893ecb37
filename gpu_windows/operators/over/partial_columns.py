"""Partials over frames, whose entries are rows in order."""

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
from gpu_windows.operators.columns.partials import (
    FoldedColumn,
    MomentsColumn,
    PartialColumn,
    Rows,
    State,
)
from gpu_windows.operators.columns.picked_rows import PickedColumn, Ranked
from gpu_windows.planning.plan import OverPlan
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]


class FramedPick(PickedColumn):
    """The row of a frame that comes first by a column, or by its place.

    Entries are rows in order, so the place of an entry is its order of arrival.
    """

    def __init__(self, partial: Partial, name: str, plan: OverPlan) -> None:
        super().__init__(partial, name, plan.query)
        self.sort = [] if partial.by is None else [(partial.by, partial.descending)]

    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Pick the first candidate of every group."""
        candidates, *columns = state
        rank = backend.to_device(self._rank_entries(columns[1:], len(candidates)))
        picked = backend.reduce.pick(groups, rank, backend.to_device(candidates > 0))
        return self._take_or_null(backend.to_host(picked), columns)

    def prepare(self, backend: Backend, state: State) -> Ranked:
        """Rank the candidates, before all entries that are none."""
        candidates, value, *by = state
        rank = self._rank_entries(by, len(candidates))
        if self.partial.by is not None:  # whose values may be as great as what no candidate has
            rank = _dense(rank, candidates)
        rank = np.where(candidates > 0, rank, LONG_MAX)
        return Ranked(backend.to_device(rank), candidates > 0, value)

    def _rank_entries(self, by: Sequence[pa.Array], count: int) -> Ints:
        """Return the rank of every entry; of equals the earlier one is picked."""
        places = np.arange(count)
        if by:
            order = sortable(by[0])
            order = ~order if self.partial.descending else order
            return _rank_of(np.lexsort((~places, order))) if self.partial.latest else order
        return ~places if self.partial.descending else places


class FramedOnce(FoldedColumn):
    """A sum of integers or a count over the different values of a frame.

    State: (addends, codes), the code of a row's value, or -1 where it does not count.
    """

    def __init__(self, partial: Partial, name: str, dtype: pa.DataType) -> None:
        super().__init__(partial, name)
        self._dtype = dtype

    def lift(self, rows: Rows) -> State:
        """Return what each row adds, and the code of its value."""
        count, partial = len(rows.table), self.partial
        valid = rows.valid(partial.column, partial.where)
        counts = np.ones(count, np.bool_) if len(valid) == 0 else valid
        addends = super().materialise(super().lift(rows), count)[0]
        values = one_chunk(rows.table.column(str(partial.column))).cast(self._dtype)
        codes = encoder_for(self._dtype).encode(values)
        return addends.astype(np.int64), np.where(counts, codes, -1)

    def materialise(self, state: State, count: int) -> State:
        """Return it: it is an ordinary state."""
        del count
        return state

    def within(self, first: Ints, after: Ints, state: State) -> State:
        """Return the sum over the different values of each of some frames.

        A row counts where it is in the frame, and the row of its value before it is not. Frames
        move on: those are some frames in a row, of which the first gains what the row adds, and
        the one after the last loses it.

        Parameters
        ----------
        first, after : int64[m]
            The first row of each frame, and the one after its last: neither falls.
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
        """Refuse: different values of two parts may be the same."""
        raise NotImplementedError("different values cannot be added up")


def _dense(rank: Ints, candidates: Ints) -> Ints:
    """Return ranks in the same order, equal ones in that of their places, below any LONG_MAX."""
    return _rank_of(np.lexsort((rank, candidates == 0)))


def _rank_of(order: Ints) -> Ints:
    """Return the place of every entry in an order."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


_BY_COMBINATION: dict[Combine, type[PartialColumn]] = {
    Combine.ADD: FoldedColumn,
    Combine.LEAST: FoldedColumn,
    Combine.GREATEST: FoldedColumn,
    Combine.MOMENTS: MomentsColumn,
}


def framed_columns(plan: OverPlan, partials: Sequence[Partial]) -> list[PartialColumn]:
    """Return the columns of some partials, in their order."""
    return [_make_column(partial, plan) for partial in partials]


def _make_column(partial: Partial, plan: OverPlan) -> PartialColumn:
    name = partial.name
    if partial.combine is Combine.PICK:
        return FramedPick(partial, name, plan)
    if partial.once:
        return FramedOnce(partial, name, plan.query.schema.field(str(partial.column)).type)
    return _BY_COMBINATION[partial.combine](partial, name)
