"""Partial aggregates in columns: lift rows, reduce groups, combine windows, cross as Arrow.

A *state* is a tuple of arrays, one entry of each per row, slice or window. There is one class
for each way to combine: folded (sum, minimum, maximum, count), moments, and picked rows; sketches
are in `gpu_windows.operators.columns.sketches`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.aggregates.partials import Combine, Lift, Partial
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.lanes import ALL, Lane, one_chunk, sortable, to_lane, values_of
from gpu_windows.planning.plan import ARRIVAL
from gpu_windows.query.base import Query
from gpu_windows.rules import ADD, GREATEST, IDENTITIES, LEAST

State = tuple[Any, ...]

_HOW = {Combine.ADD: ADD, Combine.LEAST: LEAST, Combine.GREATEST: GREATEST}


@dataclass
class Rows:
    """A batch of accepted rows, whose columns are converted once."""

    table: pa.Table
    _values: dict[str, NDArray[Any]] = field(default_factory=dict)
    _valid: dict[tuple[str | None, str | None], NDArray[np.bool_]] = field(default_factory=dict)

    def lane(self, column: str, where: str | None = None) -> Lane:
        """Return a column as a lane; see `valid`."""
        if column not in self._values:
            self._values[column] = values_of(one_chunk(self.table.column(column)))
        return Lane(self._values[column], self.valid(column, where))

    def valid(self, column: str | None, where: str | None = None) -> NDArray[np.bool_]:
        """Return which rows count; empty: all.

        Parameters
        ----------
        column : str, optional
            It must not be null.
        where : str, optional
            A column of booleans, which must be true.
        """
        if (column, where) not in self._valid:
            self._valid[column, where] = self._of(column, where)
        return self._valid[column, where]

    def _of(self, column: str | None, where: str | None) -> NDArray[np.bool_]:
        if where is None:
            return ALL if column is None else _valid(self.table.column(column))
        condition = pc.fill_null(self.table.column(where), False)
        true: NDArray[np.bool_] = condition.to_numpy(zero_copy_only=False)
        valid = self.valid(column)
        return true & valid if len(valid) else true


class PartialColumn(ABC):
    """A partial aggregate as columns of a table of slices."""

    def __init__(self, partial: Partial, name: str) -> None:
        self.partial = partial
        self.name = name

    @property
    @abstractmethod
    def fields(self) -> list[pa.Field]:
        """Arrow fields of the columns in a table of partials."""

    @property
    def entry_bytes(self) -> int:
        """About how many bytes an entry takes at most."""
        return 8 * len(self.fields)

    @abstractmethod
    def lift(self, rows: Rows) -> State:
        """Make a state of every row."""

    def materialise(self, state: State, count: int) -> State:
        """Make a lifted state of ``count`` rows a state that can be concatenated."""
        return state

    @abstractmethod
    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Combine the entries of every group, in their order."""

    @abstractmethod
    def combine(self, backend: Backend, windows: Any, state: State) -> State:
        """Combine the slices of every window."""

    @abstractmethod
    def running(self, backend: Backend, begins: Any, state: State) -> State:
        """Combine every entry with those before it in its run; ``begins`` says where runs begin."""

    @abstractmethod
    def nothing(self) -> State:
        """Return the one entry of no row."""

    @abstractmethod
    def to_arrow(self, state: State) -> list[pa.Array]:
        """Return the columns `fields`."""

    @abstractmethod
    def from_arrow(self, columns: Sequence[pa.ChunkedArray]) -> State:
        """Read the columns `fields`."""

    def concat(self, states: Sequence[State]) -> State:
        """Put entries one after the other."""
        return tuple(np.concatenate(parts) for parts in zip(*states, strict=True))

    def take(self, state: State, index: NDArray[Any]) -> State:
        """Select entries by position or mask."""
        return tuple(part[index] for part in state)

    def keep(self, state: State, some: NDArray[np.bool_]) -> State:
        """Put the entry of no row in the place of others."""
        places = np.where(some, np.arange(len(some)), len(some))
        return self.take(self.concat([state, self.nothing()]), places)


class FoldedColumn(PartialColumn):
    """Count, sum, minimum or maximum. State: (values,)."""

    @property
    def fields(self) -> list[pa.Field]:
        """One column of the lane's type."""
        lane = pa.float64() if self.partial.lane == "float64" else pa.int64()
        return [pa.field(self.name, lane)]

    @property
    def _how(self) -> int:
        return _HOW[self.partial.combine]

    def lift(self, rows: Rows) -> State:
        """Return (values, valid), the values whole; None for a count."""
        partial = self.partial
        if partial.column is None or partial.lift in (Lift.ONE, Lift.NEW):
            return None, rows.valid(partial.column, partial.where)
        lane = rows.lane(partial.column, partial.where)
        return lane.values, lane.valid

    def materialise(self, state: State, count: int) -> State:
        """Make a lifted state of ``count`` rows an ordinary one: nulls become the identity."""
        values, valid = state
        if values is None:
            ones = np.ones(count, np.int64) if len(valid) == 0 else valid.astype(np.int64)
            return (ones,)
        if self.partial.lift is Lift.HIGH:
            values = rules.high_half(values)
        elif self.partial.lift is Lift.LOW:
            values = rules.low_half(values)
        return self._filled(Lane(values, valid))

    def _filled(self, lane: Lane) -> State:
        """Return the state of a lane: nulls become the identity."""
        if len(lane.valid) == 0:
            return (lane.values,)
        return (np.where(lane.valid, lane.values, self._identity),)

    @property
    def _identity(self) -> Any:
        return np.array(IDENTITIES[self._how, self.partial.lane], self.partial.lane)

    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Fold the valid entries of every group; the identity where there is none."""
        values, valid = state if len(state) == 2 else (*state, ALL)
        mask = backend.to_device(valid)
        if values is None:
            return (backend.keep(backend.reduce.count(groups, mask)),)
        lane = backend.to_device(values)
        if len(state) == 2 and self.partial.lift in (Lift.HIGH, Lift.LOW):
            high, low = backend.reduce.exact_sum(groups, lane, mask)
            return (backend.keep(high if self.partial.lift is Lift.HIGH else low),)
        return (backend.keep(backend.reduce.reduce(self._how, groups, lane, mask)),)

    def combine(self, backend: Backend, windows: Any, state: State) -> State:
        """Fold the slices of every window."""
        lane = backend.to_device(state[0])
        return (backend.to_host(backend.combine.combine(self._how, windows, lane)),)

    def running(self, backend: Backend, begins: Any, state: State) -> State:
        """Fold."""
        lane = backend.to_device(state[0])
        return (backend.to_host(backend.running.fold(self._how, begins, lane)),)

    def nothing(self) -> State:
        """Return the identity."""
        return (self._identity.reshape(1),)

    def keep(self, state: State, some: NDArray[np.bool_]) -> State:
        """Put the identity in the place of others."""
        return (np.where(some, state[0], self._identity),)

    def to_arrow(self, state: State) -> list[pa.Array]:
        """Return the values."""
        return [pa.array(state[0])]

    def from_arrow(self, columns: Sequence[pa.ChunkedArray]) -> State:
        """Read the values; a null is the identity."""
        return self._filled(to_lane(columns[0]))


class MomentsColumn(PartialColumn):
    """Count, mean and sum of squared deviations. State: (n, mean, m2)."""

    @property
    def fields(self) -> list[pa.Field]:
        """Three columns."""
        types = (pa.int64(), pa.float64(), pa.float64())
        return [pa.field(self.name + end, dtype) for end, dtype in zip("nms", types, strict=True)]

    def lift(self, rows: Rows) -> State:
        """Return (1, value, 0), or (0, 0, 0) for a null."""
        column = rows.table.column(str(self.partial.column))
        lane = rows.lane(str(self.partial.column), self.partial.where)
        scale = 10.0**column.type.scale if pa.types.is_decimal(column.type) else 1.0
        count = len(lane.values)
        n = np.ones(count, np.int64) if len(lane.valid) == 0 else lane.valid.astype(np.int64)
        mean = lane.values.astype(np.float64) / scale
        if len(lane.valid):
            mean = np.where(lane.valid, mean, 0.0)
        return n, mean, np.zeros(count)

    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Combine the entries of every group by Chan's formula."""
        found = backend.reduce.moments(groups, *map(backend.to_device, state))
        return tuple(map(backend.keep, found))

    def combine(self, backend: Backend, windows: Any, state: State) -> State:
        """Combine the slices of every window by Chan's formula."""
        found = backend.combine.moments(windows, tuple(map(backend.to_device, state)))
        return tuple(map(backend.to_host, found))

    def running(self, backend: Backend, begins: Any, state: State) -> State:
        """Combine by Chan's formula."""
        found = backend.running.moments(begins, *map(backend.to_device, state))
        return tuple(map(backend.to_host, found))

    def nothing(self) -> State:
        """Return a count of 0."""
        return np.zeros(1, np.int64), np.zeros(1), np.zeros(1)

    def to_arrow(self, state: State) -> list[pa.Array]:
        """Return the three parts."""
        return [pa.array(part) for part in state]

    def from_arrow(self, columns: Sequence[pa.ChunkedArray]) -> State:
        """Read the three parts; nulls mean nothing was counted."""
        lanes = [to_lane(column) for column in columns]
        return tuple(
            lane.values if len(lane.valid) == 0 else np.where(lane.valid, lane.values, 0)
            for lane in lanes
        )


class PickedColumn(PartialColumn):
    """The row that comes first by some columns. State: (candidates, value, *sort columns).

    ``candidates`` is int64 (0: there is none); the others are Arrow arrays.
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
        """Take every row as its own candidate, if it is one."""
        table, partial = rows.table, self.partial
        chosen = rows.valid(None, partial.where)
        candidate = chosen.copy() if len(chosen) else np.ones(len(table), np.bool_)
        for column, skip in ((partial.by, True), (partial.column, partial.skip_nulls)):
            if column is not None and skip:
                candidate &= _valid(table.column(column), always=True)
        columns = (str(partial.column), *(column for column, _ in self.sort))
        carried = (one_chunk(table.column(name)).cast(self._type(name)) for name in columns)
        return candidate.astype(np.int64), *carried

    def _rank(self, sort: Sequence[pa.Array]) -> NDArray[np.int64]:
        keys = []
        for column, (_, descending) in zip(sort, self.sort, strict=True):
            order = sortable(column)
            keys.append(~order if descending else order)
        if len(keys) == 1:
            return keys[0]
        place = np.lexsort(keys[::-1])
        rank = np.empty(len(place), np.int64)
        rank[place] = np.arange(len(place))
        return rank

    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Pick the first candidate of every group."""
        candidates, *columns = state
        rank = backend.to_device(self._rank(columns[1:]))
        some = backend.to_device(candidates > 0)
        picked = backend.to_host(backend.reduce.pick(groups, rank, some))
        return self._take_or_null(picked, columns)

    def combine(self, backend: Backend, windows: Any, state: State) -> State:
        """Pick the first candidate of every window."""
        candidates, *columns = state
        place = np.lexsort((self._rank(columns[1:]), candidates == 0))
        rank = np.empty(len(place), np.int64)
        rank[place] = np.arange(len(place))
        picked = backend.to_host(backend.combine.pick(windows, backend.to_device(rank)))
        return self._take_or_null(np.where(candidates[picked] > 0, picked, -1), columns)

    def running(self, backend: Backend, begins: Any, state: State) -> State:
        """Pick the first candidate so far."""
        candidates, *columns = state
        rank = backend.to_device(self._rank(columns[1:]))
        some = backend.to_device(candidates > 0)
        picked = backend.to_host(backend.running.pick(begins, rank, some))
        return self._take_or_null(picked, columns)

    def nothing(self) -> State:
        """Return no candidate."""
        return np.zeros(1, np.int64), *(pa.nulls(1, field.type) for field in self.fields[1:])

    def _take_or_null(self, index: NDArray[np.int64], columns: Sequence[pa.Array]) -> State:
        found = index >= 0
        places = pa.array(index, mask=~found)
        return found.astype(np.int64), *(column.take(places) for column in columns)

    def to_arrow(self, state: State) -> list[pa.Array]:
        """Return candidates, value, sort columns."""
        return [pa.array(state[0]), *state[1:]]

    def from_arrow(self, columns: Sequence[pa.ChunkedArray]) -> State:
        """Read candidates, value, sort columns."""
        return to_lane(columns[0]).values, *map(one_chunk, columns[1:])

    def concat(self, states: Sequence[State]) -> State:
        """Put entries one after the other."""
        first, *rest = zip(*states, strict=True)
        return np.concatenate(first), *(pa.concat_arrays(parts) for parts in rest)

    def take(self, state: State, index: NDArray[Any]) -> State:
        """Select entries by position or mask."""
        places = np.flatnonzero(index) if index.dtype == np.bool_ else index
        return state[0][index], *(column.take(pa.array(places)) for column in state[1:])


def entries_within(columns: Sequence[PartialColumn], size: int) -> int:
    """Return how many entries of some columns ``size`` bytes hold, about."""
    return max(1, size // max(1, sum(column.entry_bytes for column in columns)))


def _valid(column: pa.ChunkedArray, *, always: bool = False) -> NDArray[np.bool_]:
    if not column.null_count:
        return np.ones(len(column), np.bool_) if always else ALL
    valid: NDArray[np.bool_] = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return valid
