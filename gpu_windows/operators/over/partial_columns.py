"""Partials over frames, whose entries are rows in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.partials import Combine, Partial
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.lanes import sortable
from gpu_windows.operators.columns.partials import (
    FoldedColumn,
    MomentsColumn,
    PartialColumn,
    State,
)
from gpu_windows.operators.columns.picks import PickedColumn, Ranked
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
        rank = backend.to_device(self._ranked(columns[1:], len(candidates)))
        picked = backend.reduce.pick(groups, rank, backend.to_device(candidates > 0))
        return self._take_or_null(backend.to_host(picked), columns)

    def prepared(self, backend: Backend, state: State) -> Ranked:
        """Rank the candidates, before all entries that are none."""
        candidates, value, *by = state
        rank = self._ranked(by, len(candidates))
        if self.partial.by is not None:  # whose values may be as great as what no candidate has
            rank = _dense(rank, candidates)
        rank = np.where(candidates > 0, rank, LONG_MAX)
        return Ranked(backend.to_device(rank), candidates > 0, value)

    def _ranked(self, by: Sequence[pa.Array], count: int) -> Ints:
        """Return the rank of every entry; of equals the earlier one is picked."""
        places = np.arange(count)
        if by:
            order = sortable(by[0])
            order = ~order if self.partial.descending else order
            return _placed(np.lexsort((~places, order))) if self.partial.latest else order
        return ~places if self.partial.descending else places


def _dense(rank: Ints, candidates: Ints) -> Ints:
    """Return ranks in the same order, equal ones in that of their places, below any LONG_MAX."""
    return _placed(np.lexsort((rank, candidates == 0)))


def _placed(order: Ints) -> Ints:
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
    return [
        FramedPick(partial, f"__p{i}", plan)
        if partial.combine is Combine.PICK
        else _BY_COMBINATION[partial.combine](partial, f"__p{i}")
        for i, partial in enumerate(partials)
    ]
