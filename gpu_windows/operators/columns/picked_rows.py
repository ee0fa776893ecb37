"""Partial aggregates that pick one row: first and last, and min_by and max_by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.aggregates.partials import Partial
from gpu_windows.kernels.backend import Backend
from gpu_windows.kernels.cpu import running
from gpu_windows.operators.columns.numeric import one_chunk, sortable, to_numeric
from gpu_windows.operators.columns.partials import PartialColumn, Rows, State, valid_rows
from gpu_windows.planning.plan import ARRIVAL
from gpu_windows.planning.query import Query


class Ranked(NamedTuple):
    """Entries with their rank.

    Parameters
    ----------
    rank : int64[m], in the back end's memory
        The entry of the lowest rank is picked; all candidates rank before the others.
    is_candidate : bool[m]
    value : pyarrow.Array
        The m values of the picked column.
    """

    rank: Any
    is_candidate: NDArray[np.bool_]
    value: pa.Array


class PickedColumn(PartialColumn):
    """The first row by some columns. State: (candidates, value, *sort columns).

    The state of windows has no sort columns: results do not need them. ``candidates`` is int64 (0:
    there is no row); the others are Arrow arrays.
    """

    def __init__(
        self, partial: Partial, name: str, query: Query, order: Sequence[str] = ()
    ) -> None:
        super().__init__(partial, name)
        backwards = partial.descending if partial.by is None else partial.latest
        self.sort = [(column, backwards) for column in order]
        if partial.by is not None:
            self.sort = [(partial.by, partial.descending), *self.sort]
        self._query = query

    @property
    def fields(self) -> list[pa.Field]:
        """Candidates, value, sort columns."""
        value = pa.field(self.name + "v", self._type(str(self.partial.column)))
        sort = [
            pa.field(f"{self.name}s{i}", self._type(column))
            for i, (column, _) in enumerate(self.sort)
        ]
        return [pa.field(self.name + "c", pa.int64()), value, *sort]

    def _type(self, column: str) -> pa.DataType:
        if column in (ARRIVAL, self._query.time):
            return pa.int64()  # event time reaches operators in ticks
        return self._query.schema.field(column).type

    def lift(self, rows: Rows) -> State:
        """Return every row as an entry; a candidate if neither filtered out nor a skipped null."""
        table, partial = rows.table, self.partial
        mask = rows.valid(None, partial.where)
        candidate = mask.copy() if len(mask) else np.ones(len(table), np.bool_)
        for column, skip in ((partial.by, True), (partial.column, partial.skip_nulls)):
            if column is not None and skip:
                candidate &= valid_rows(table.column(column), always=True)
        columns = (str(partial.column), *(column for column, _ in self.sort))
        carried = (one_chunk(table.column(name)).cast(self._type(name)) for name in columns)
        return candidate.astype(np.int64), *carried

    def _rank(self, sort: Sequence[pa.Array], count: int) -> NDArray[np.int64]:
        """Return the rank of each of ``count`` entries; the lowest is picked."""
        del count
        keys = []
        for column, (_, descending) in zip(sort, self.sort, strict=True):
            order = sortable(column)
            keys.append(~order if descending else order)
        if len(keys) == 1:
            return keys[0]
        return rank_of(np.lexsort(keys[::-1]))

    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Pick the first candidate of every group."""
        candidates, *columns = state
        rank = backend.to_device(self._rank(columns[1:], len(candidates)))
        some = backend.to_device(candidates > 0)
        picked = backend.to_host(backend.reduce.pick(groups, rank, some))
        return self._take_or_null(picked, columns)

    def prepare(self, backend: Backend, state: State) -> Ranked:
        """Rank the entries, candidates first."""
        candidates, value, *sort = state
        rank = rank_of(np.lexsort((self._rank(sort, len(candidates)), candidates == 0)))
        return Ranked(backend.to_device(rank), candidates > 0, value)

    def combine_prepared(self, backend: Backend, windows: Any, prepared: Ranked) -> State:
        """Pick the first candidate of every window: (candidates, value)."""
        picked = backend.to_host(backend.combine.pick(windows, prepared.rank))
        picked = np.where(prepared.is_candidate[picked], picked, -1)
        return self._take_or_null(picked, [prepared.value])

    def keep(self, state: State, some: NDArray[np.bool_]) -> State:
        """Replace all entries outside a mask by one without a row."""
        candidates, *columns = state
        there = pa.array(some)
        nothing = (pa.scalar(None, column.type) for column in columns)
        pairs = zip(columns, nothing, strict=True)
        return np.where(some, candidates, 0), *(pc.if_else(there, c, null) for c, null in pairs)

    def running(self, begins: NDArray[np.int64], state: State) -> State:
        """Pick the first candidate so far."""
        candidates, *columns = state
        picked = running.pick(begins, self._rank(columns[1:], len(candidates)), candidates > 0)
        return self._take_or_null(picked, columns)

    def nothing(self) -> State:
        """Return one entry without a row."""
        return np.zeros(1, np.int64), *(pa.nulls(1, field.type) for field in self.fields[1:])

    def _take_or_null(self, index: NDArray[np.int64], columns: Sequence[pa.Array]) -> State:
        found = index >= 0
        positions = pa.array(index, mask=~found)
        return found.astype(np.int64), *(column.take(positions) for column in columns)

    def to_arrow(self, state: State) -> list[pa.Array]:
        """Return candidates, value, sort columns."""
        return [pa.array(state[0]), *state[1:]]

    def from_arrow(self, columns: Sequence[pa.ChunkedArray]) -> State:
        """Read candidates, value, sort columns; null candidates mean no row."""
        return to_numeric(columns[0]).fill_nulls(0), *map(one_chunk, columns[1:])

    def concat(self, states: Sequence[State]) -> State:
        """Concatenate states."""
        first, *rest = zip(*states, strict=True)
        return np.concatenate(first), *(pa.concat_arrays(parts) for parts in rest)

    def take(self, state: State, index: NDArray[Any]) -> State:
        """Select entries by index or mask."""
        positions = np.flatnonzero(index) if index.dtype == np.bool_ else index
        return state[0][index], *(column.take(pa.array(positions)) for column in state[1:])


def rank_of(order: NDArray[Any]) -> NDArray[np.int64]:
    """Return the rank of every entry in an order."""
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks
