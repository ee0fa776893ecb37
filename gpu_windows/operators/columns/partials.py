"""Columnar partial aggregates: lift rows, reduce groups, combine slices into windows.

A *state* is a tuple of arrays with one entry per row, slice or window. There is one class per
combination: `FoldedColumn` (sum, minimum, maximum, count) and `MomentsColumn` here, picked rows in
`gpu_windows.operators.columns.picked_rows`, sketches in `gpu_windows.operators.columns.sketches`.
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
from gpu_windows.kernels.cpu import running
from gpu_windows.kernels.lazy_array import LazyArray
from gpu_windows.operators.columns.device_table import kernel_column
from gpu_windows.operators.columns.numeric import (
    ALL,
    NumericColumn,
    TypedNumericColumn,
    in_pieces,
    one_chunk,
    to_numeric,
    upper_words,
    values_of,
)
from gpu_windows.rules import ADD, IDENTITIES, MAX, MIN

State = tuple[Any, ...]

_HOW = {Combine.ADD: ADD, Combine.MIN: MIN, Combine.MAX: MAX}


@dataclass
class Rows:
    """A batch of accepted rows; each column is converted to numbers at most once.

    Parameters
    ----------
    table : pyarrow.Table or DeviceTable
    in_pieces : bool
        Whether the chunks of columns stay apart, because they go to a device.
    """

    table: Any
    in_pieces: bool = False
    _values: dict[tuple[str, int], NDArray[Any]] = field(default_factory=dict)
    _valid: dict[tuple[str | None, str | None], NDArray[np.bool_]] = field(default_factory=dict)

    def numeric(self, column: str, where: str | None = None, word: int = 0) -> NumericColumn:
        """Return a column as numbers; see `valid`, and `Partial` for ``word``."""
        if (column, word) not in self._values:
            self._values[column, word] = self._values_of(kernel_column(self.table, column), word)
        return NumericColumn(self._values[column, word], self.valid(column, where))

    def _values_of(self, column: Any, word: int) -> NDArray[Any]:
        if word:
            return upper_words(one_chunk(column))
        return in_pieces(column).values if self.in_pieces else values_of(one_chunk(column))

    def valid(self, column: str | None, where: str | None = None) -> NDArray[np.bool_]:
        """Return the mask of rows to aggregate; empty: all.

        Parameters
        ----------
        column : str, optional
            Rows where it is null do not count.
        where : str, optional
            A column of booleans; rows where it is not true do not count.
        """
        if (column, where) not in self._valid:
            self._valid[column, where] = self._valid_where(column, where)
        return self._valid[column, where]

    def _valid_where(self, column: str | None, where: str | None) -> NDArray[np.bool_]:
        if where is None:
            return ALL if column is None else valid_rows(kernel_column(self.table, column))
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
        """Arrow fields of the state's columns in a table of partials."""

    @property
    def entry_bytes(self) -> int:
        """Upper bound of the bytes of an entry, about."""
        return 8 * len(self.fields)

    @abstractmethod
    def lift(self, rows: Rows) -> State:
        """Return the lifted state: an entry per row."""

    def materialise(self, state: State, count: int) -> State:
        """Return a lifted state of ``count`` rows in the form that can be concatenated."""
        return state

    @abstractmethod
    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Combine the entries of every group, in their order."""

    def combine(self, backend: Backend, windows: Any, state: State) -> State:
        """Combine the slices of every window."""
        return on_host(self.combine_prepared(backend, windows, self.prepare(backend, state)))

    @abstractmethod
    def prepare(self, backend: Backend, state: State) -> Any:
        """Return a state in the form of `combine_prepared`, whatever the windows."""

    @abstractmethod
    def combine_prepared(self, backend: Backend, windows: Any, prepared: Any) -> State:
        """Combine the slices of every window; `on_host` is for who computes with the result."""

    @abstractmethod
    def running(self, begins: NDArray[np.int64], state: State) -> State:
        """Return running aggregates: each entry with those before it in its run.

        ``begins``: index of the first entry of each run.
        """

    @abstractmethod
    def nothing(self) -> State:
        """Return the identity: one entry of no rows."""

    @abstractmethod
    def to_arrow(self, state: State) -> list[pa.Array]:
        """Return the columns `fields`."""

    @abstractmethod
    def from_arrow(self, columns: Sequence[pa.ChunkedArray]) -> State:
        """Read the columns `fields`."""

    def from_table(self, table: pa.Table) -> State:
        """Read the columns `fields` of a table of state.

        A partial that a later start of the query added has the identity in older entries.

        Raises
        ------
        StateCorruptedError
            If columns of another partial are missing.
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
        """Concatenate states."""
        return tuple(np.concatenate(parts) for parts in zip(*states, strict=True))

    def take(self, state: State, index: NDArray[Any]) -> State:
        """Select entries by position or mask."""
        return tuple(part[index] for part in state)

    def keep(self, state: State, some: NDArray[np.bool_]) -> State:
        """Replace all entries outside a mask by the identity."""
        index = np.where(some, np.arange(len(some)), len(some))
        return self.take(self.concat([state, self.nothing()]), index)


def on_host(state: State) -> State:
    """Return a state with NumPy's arrays in the place of those that are still on a device."""
    return tuple(np.asarray(part) if isinstance(part, LazyArray) else part for part in state)


class FoldedColumn(PartialColumn):
    """Count, sum, minimum or maximum. State: (values,)."""

    @property
    def fields(self) -> list[pa.Field]:
        """One column, int64 or float64."""
        dtype = pa.float64() if self.partial.lane == "float64" else pa.int64()
        return [pa.field(self.name, dtype)]

    @property
    def _how(self) -> int:
        return _HOW[self.partial.combine]

    def lift(self, rows: Rows) -> State:
        """Return (values, valid); values are None for a count."""
        partial = self.partial
        if partial.column is None or partial.lift in (Lift.ONE, Lift.NEW):
            return None, rows.valid(partial.column, partial.where)
        numeric = rows.numeric(partial.column, partial.where, partial.word)
        return numeric.values, numeric.valid

    def materialise(self, state: State, count: int) -> State:
        """Return a lifted state of ``count`` rows as an ordinary one: nulls become the identity."""
        values, valid = state
        if values is None:
            ones = np.ones(count, np.int64) if len(valid) == 0 else valid.astype(np.int64)
            return (ones,)
        if self.partial.lift is Lift.HIGH:
            values = rules.high_half(values)
        elif self.partial.lift is Lift.LOW:
            values = rules.low_half(values)
        return (NumericColumn(values, valid).fill_nulls(self._identity),)

    @property
    def _identity(self) -> Any:
        return np.array(IDENTITIES[self._how, self.partial.lane], self.partial.lane)

    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Fold the valid entries of every group; the identity where there is none."""
        values, valid = state if len(state) == 2 else (*state, ALL)
        mask = backend.to_device(valid)
        if values is None:
            return (backend.keep(backend.reduce.count(groups, mask)),)
        on_device = backend.to_device(values)
        if len(state) == 2 and self.partial.lift in (Lift.HIGH, Lift.LOW):
            high, low = backend.reduce.exact_sum(groups, on_device, mask)
            return (backend.keep(high if self.partial.lift is Lift.HIGH else low),)
        return (backend.keep(backend.reduce.reduce(self._how, groups, on_device, mask)),)

    def prepare(self, backend: Backend, state: State) -> Any:
        """Return the values in the back end's memory."""
        return backend.to_device(state[0])

    def combine_prepared(self, backend: Backend, windows: Any, prepared: Any) -> State:
        """Fold the slices of every window."""
        return (backend.deliver(backend.combine.combine(self._how, windows, prepared)),)

    def running(self, begins: NDArray[np.int64], state: State) -> State:
        """Fold each entry with those before it in its run."""
        return (running.fold(self._how, begins, np.asarray(state[0])),)

    def nothing(self) -> State:
        """Return the identity."""
        return (self._identity.reshape(1),)

    def keep(self, state: State, some: NDArray[np.bool_]) -> State:
        """Replace all entries outside a mask by the identity."""
        return (np.where(some, state[0], self._identity),)

    def to_arrow(self, state: State) -> list[pa.Array]:
        """Return the values."""
        return [pa.array(state[0])]

    def from_arrow(self, columns: Sequence[pa.ChunkedArray]) -> State:
        """Read the values; a null is the identity."""
        return (to_numeric(columns[0]).fill_nulls(self._identity),)


class MomentsColumn(PartialColumn):
    """Count, mean in two words and sum of squared deviations. State: (n, high, low, m2).

    For decimals, of the unscaled integers.
    """

    @property
    def fields(self) -> list[pa.Field]:
        """Four columns."""
        types = (pa.int64(), pa.float64(), pa.float64(), pa.float64())
        return [pa.field(self.name + end, dtype) for end, dtype in zip("nhls", types, strict=True)]

    def lift(self, rows: Rows) -> State:
        """Return (values, valid)."""
        numeric = rows.numeric(str(self.partial.column), self.partial.where)
        return numeric.values, numeric.valid

    def materialise(self, state: State, count: int) -> State:
        """Return (1, value in two words, 0) of every row, zeros of a null."""
        values, valid = state
        if len(valid) == 0:
            return np.ones(count, np.int64), *_words_of(values), np.zeros(count)
        high, low = _words_of(np.where(valid, values, values.dtype.type(0)))
        return valid.astype(np.int64), high, low, np.zeros(count)

    def reduce(self, backend: Backend, groups: Any, state: State) -> State:
        """Combine the entries of every group (`rules.partials.wide_moments`)."""
        parts = map(backend.to_device, state)
        make = backend.reduce.moments_of if len(state) == 2 else backend.reduce.moments
        return tuple(map(backend.keep, make(groups, *parts)))

    def prepare(self, backend: Backend, state: State) -> Any:
        """Return the parts in the back end's memory."""
        return tuple(map(backend.to_device, state))

    def combine_prepared(self, backend: Backend, windows: Any, prepared: Any) -> State:
        """Combine the slices of every window."""
        return tuple(map(backend.deliver, backend.combine.moments(windows, prepared)))

    def running(self, begins: NDArray[np.int64], state: State) -> State:
        """Combine every entry with those before it."""
        return running.moments(begins, *map(np.asarray, state))

    def nothing(self) -> State:
        """Return a count of 0."""
        return np.zeros(1, np.int64), np.zeros(1), np.zeros(1), np.zeros(1)

    def to_arrow(self, state: State) -> list[pa.Array]:
        """Return the four parts."""
        return [pa.array(part) for part in state]

    def from_arrow(self, columns: Sequence[pa.ChunkedArray]) -> State:
        """Read the four parts; nulls mean nothing was counted."""
        return tuple(to_numeric(column).fill_nulls(0) for column in columns)


def _words_of(values: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split numbers into two words, exactly: see `rules.partials.words_of`."""
    if values.dtype != np.int64:
        high = values.astype(np.float64, copy=False)
        return high, np.zeros(len(high))
    upper, lower = (values >> 32).astype(np.float64), (values & 0xFFFFFFFF).astype(np.float64)
    high = upper * 4294967296.0 + lower
    return high, lower - (high - upper * 4294967296.0)


def entries_within(columns: Sequence[PartialColumn], size: int) -> int:
    """Return about how many entries of some columns fit ``size`` bytes."""
    return max(1, size // max(1, sum(column.entry_bytes for column in columns)))


def valid_rows(
    column: pa.ChunkedArray | TypedNumericColumn, *, always: bool = False
) -> NDArray[np.bool_]:
    """Return the mask of values that are not null; if all are, it is empty unless ``always``."""
    if isinstance(column, TypedNumericColumn) and len(column.valid):
        return column.valid
    if isinstance(column, TypedNumericColumn) or not column.null_count:
        return np.ones(len(column), np.bool_) if always else ALL
    valid: NDArray[np.bool_] = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return valid
