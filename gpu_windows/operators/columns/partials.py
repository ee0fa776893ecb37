"""Partial aggregates in columns: lift rows, reduce groups, combine windows, cross as Arrow.

A *state* is a tuple of arrays, one entry of each per row, slice or window. There is one class
for each way to combine: folded (sum, minimum, maximum, count) and moments; picked rows are in
`gpu_windows.operators.columns.picks`, sketches in `gpu_windows.operators.columns.sketches`.
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
from gpu_windows.errors import StateCorruptedError
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.columns.lanes import (
    ALL,
    Lane,
    TypedLane,
    one_chunk,
    to_lane,
    upper_words,
    values_of,
)
from gpu_windows.rules import ADD, GREATEST, IDENTITIES, LEAST

State = tuple[Any, ...]

_HOW = {Combine.ADD: ADD, Combine.MIN: LEAST, Combine.MAX: GREATEST}


@dataclass
class Rows:
    """A batch of accepted rows, whose columns are converted once.

    Parameters
    ----------
    table : pyarrow.Table or DeviceTable
    """

    table: Any
    _values: dict[tuple[str, int], NDArray[Any]] = field(default_factory=dict)
    _valid: dict[tuple[str | None, str | None], NDArray[np.bool_]] = field(default_factory=dict)

    def lane(self, column: str, where: str | None = None, word: int = 0) -> Lane:
        """Return a column as a lane; see `valid`, and `Partial` of ``word``."""
        if (column, word) not in self._values:
            array = one_chunk(self.table.column(column))
            self._values[column, word] = upper_words(array) if word else values_of(array)
        return Lane(self._values[column, word], self.valid(column, where))

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
            return ALL if column is None else valid_rows(self.table.column(column))
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

    def combine(self, backend: Backend, windows: Any, state: State) -> State:
        """Combine the slices of every window."""
        return self.combine_prepared(backend, windows, self.prepared(backend, state))

    @abstractmethod
    def prepared(self, backend: Backend, state: State) -> Any:
        """Return what of a state `combine_prepared` takes, for any windows."""

    @abstractmethod
    def combine_prepared(self, backend: Backend, windows: Any, prepared: Any) -> State:
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

    def from_table(self, table: pa.Table) -> State:
        """Read the columns `fields` of a table of state.

        Entries from before the start at which a partial began are of no row.

        Raises
        ------
        StateCorruptedError
            If columns are missing of a partial that did not begin later.
        """
        names = [field.name for field in self.fields]
        missing = [name for name in names if name not in table.column_names]
        if missing and (missing != names or not self.partial.since):
            rule = "state has the columns of the partials that were saved"
            raise StateCorruptedError(rule, value=f"no column {', '.join(missing)}")
        if missing:
            return self.take(self.nothing(), np.zeros(len(table), np.int64))
        return self.from_arrow([table.column(name) for name in names])

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
        lane = rows.lane(partial.column, partial.where, partial.word)
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

    def prepared(self, backend: Backend, state: State) -> Any:
        """Return the values in the back end's memory."""
        return backend.to_device(state[0])

    def combine_prepared(self, backend: Backend, windows: Any, prepared: Any) -> State:
        """Fold the slices of every window."""
        return (backend.to_host(backend.combine.combine(self._how, windows, prepared)),)

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
    """Count, mean in two words and sum of squared deviations. State: (n, high, low, m2).

    Of decimals they are those of the unscaled integers.
    """

    @property
    def fields(self) -> list[pa.Field]:
        """Four columns."""
        types = (pa.int64(), pa.float64(), pa.float64(), pa.float64())
        return [pa.field(self.name + end, dtype) for end, dtype in zip("nhls", types, strict=True)]

    def lift(self, rows: Rows) -> State:
        """Return (values, valid)."""
        lane = rows.lane(str(self.partial.column), self.partial.where)
        return lane.values, lane.valid

    def materialise(self, state: State, count: int) -> State:
        """Return (1, value in two words, 0) of every row, zeros of a null."""
        values, valid = state
        if len(valid) == 0:
            return np.ones(count, np.int64), *_words_of(values), np.zeros(count)
        high, low = _words_of(np.where(valid, values, values.dtype.type(0)))
        return valid.astype(np.int64), high, low, np.zeros(count)

    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Combine the entries of every group (`rules.wide_moments`)."""
        parts = map(backend.to_device, state)
        make = backend.reduce.moments_of if len(state) == 2 else backend.reduce.moments
        return tuple(map(backend.keep, make(groups, *parts)))

    def prepared(self, backend: Backend, state: State) -> Any:
        """Return the parts in the back end's memory."""
        return tuple(map(backend.to_device, state))

    def combine_prepared(self, backend: Backend, windows: Any, prepared: Any) -> State:
        """Combine the slices of every window."""
        return tuple(map(backend.to_host, backend.combine.moments(windows, prepared)))

    def running(self, backend: Backend, begins: Any, state: State) -> State:
        """Combine every entry with those before it."""
        found = backend.running.moments(begins, *map(backend.to_device, state))
        return tuple(map(backend.to_host, found))

    def nothing(self) -> State:
        """Return a count of 0."""
        return np.zeros(1, np.int64), np.zeros(1), np.zeros(1), np.zeros(1)

    def to_arrow(self, state: State) -> list[pa.Array]:
        """Return the four parts."""
        return [pa.array(part) for part in state]

    def from_arrow(self, columns: Sequence[pa.ChunkedArray]) -> State:
        """Read the four parts; nulls mean nothing was counted."""
        lanes = [to_lane(column) for column in columns]
        return tuple(
            lane.values if len(lane.valid) == 0 else np.where(lane.valid, lane.values, 0)
            for lane in lanes
        )


def _words_of(values: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers in two words, exactly: see `rules.words_of`."""
    if values.dtype != np.int64:
        high = values.astype(np.float64, copy=False)
        return high, np.zeros(len(high))
    upper, lower = (values >> 32).astype(np.float64), (values & 0xFFFFFFFF).astype(np.float64)
    high = upper * 4294967296.0 + lower
    return high, lower - (high - upper * 4294967296.0)


def entries_within(columns: Sequence[PartialColumn], size: int) -> int:
    """Return how many entries of some columns ``size`` bytes hold, about."""
    return max(1, size // max(1, sum(column.entry_bytes for column in columns)))


def valid_rows(column: pa.ChunkedArray | TypedLane, *, always: bool = False) -> NDArray[np.bool_]:
    """Return which values are not null; empty: all, unless ``always`` says to tell of each."""
    if isinstance(column, TypedLane) and len(column.valid):
        return column.valid
    if isinstance(column, TypedLane) or not column.null_count:
        return np.ones(len(column), np.bool_) if always else ALL
    valid: NDArray[np.bool_] = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return valid
