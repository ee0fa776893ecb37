"""State of keys: time of the last row, totals of all rows so far, the last few rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.partials import Partial
from gpu_windows.operators.columns.keys import KeyEncoder, mask_of
from gpu_windows.operators.columns.partials import PartialColumn, State
from gpu_windows.operators.columns.stored_keys import codes_of_entries, columns_of_keys
from gpu_windows.operators.state.entries import LISTS, Entries, lists_of
from gpu_windows.operators.state.keyed_table import KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.rules import LONG_MIN

Ints = NDArray[np.int64]

#: Table name of keys and their last rows in a log; they have no timers.
KEYS = "over keys"
#: Column of the time of the last row of a key.
_LAST = "last"


class KeyState(NamedTuple):
    """State of some keys.

    Parameters
    ----------
    codes : int64[k]
        The keys, each once.
    last : int64[k]
        The times of their last rows.
    totals : mapping of Partial to State
        The partials over all their rows, one entry per key.
    rows : pyarrow.Table
        The last rows of each, in order.
    of_rows : int64[n]
        The keys of ``rows``.
    """

    codes: Ints
    last: Ints
    totals: Mapping[Partial, State]
    rows: pa.Table
    of_rows: Ints

    def __len__(self) -> int:
        return len(self.codes)


class KeyStateStore:
    """State of keys in a store; that of the keys of a call is in memory.

    Parameters
    ----------
    log : StateLog
    keys : KeyEncoder
    columns : mapping of Partial to PartialColumn
        Columns of the totals.
    row_schema : pyarrow.Schema
        Schema of the last rows.
    lacking : pyarrow.Schema
        Columns that last rows of earlier starts may lack.
    """

    def __init__(
        self,
        log: StateLog,
        keys: KeyEncoder,
        columns: Mapping[Partial, PartialColumn],
        row_schema: pa.Schema,
        lacking: pa.Schema,
    ) -> None:
        self._keys, self._columns = keys, columns
        self._table = KeyedTable(log, KEYS, lacking=lacking)
        none = np.empty(0, np.int64)
        nothing = {p: column.take(column.nothing(), none) for p, column in columns.items()}
        self._state = self._nothing = KeyState(none, none, nothing, row_schema.empty_table(), none)

    @property
    def count(self) -> int:
        """Number of keys in the log."""
        return self._table.keys

    def load(self, codes: Ints) -> None:
        """Load some keys; ``codes`` has each once."""
        found = self._table.load(self._keys.hashes()[codes])
        if found is not None:
            self._state = self._concat([self._state, self._read_entries(found)])

    def last_of(self, codes: Ints) -> Ints:
        """Return the time of the last row of keys, or LONG_MIN.

        Keys that are not in memory are read without loading them, because they do not change.
        """
        last = np.full(self._keys.count, LONG_MIN)
        last[self._state.codes] = self._state.last
        others = np.unique(codes[last[codes] == LONG_MIN])
        found = self._table.find(self._keys.hashes()[others]) if len(others) else None
        if found is not None:
            stored = self._read_entries(found)
            last = np.concatenate([last, np.full(self._keys.count - len(last), LONG_MIN)])
            last[stored.codes] = np.maximum(last[stored.codes], stored.last)
        return last[codes]

    def select(self, codes: Ints) -> KeyState:
        """Return the state of some keys, which are in memory."""
        return self._select_mask(mask_of(codes, self._keys.count))

    def put(self, state: KeyState) -> None:
        """Replace the state of some keys."""
        others = ~mask_of(state.codes, self._keys.count)
        self._state = self._concat([self._select_mask(others), state])

    def clear(self) -> None:
        """Delete all keys."""
        self._table.clear()
        self._state = self._nothing

    def save(self) -> None:
        """Write the keys that are in memory."""
        state = self._state
        order = np.argsort(state.codes)
        place = np.empty(self._keys.count, np.int64)
        place[state.codes[order]] = np.arange(len(order))
        by_key = np.argsort(place[state.of_rows], kind="stable")
        lengths = np.bincount(place[state.of_rows], minlength=len(order))
        codes = state.codes[order]
        columns = {
            **columns_of_keys(self._keys, codes),
            _LAST: pa.array(state.last[order]),
            LISTS: lists_of(lengths),
        }
        for partial, column in self._columns.items():
            total = column.take(state.totals[partial], order)
            names = (each.name for each in column.fields)
            columns |= zip(names, column.to_arrow(total), strict=True)
        rows = state.rows.take(pa.array(by_key)) if len(by_key) else None
        self._table.save(Entries(pa.table(columns), rows))

    def _read_entries(self, found: Entries) -> KeyState:
        table = found.table
        codes = codes_of_entries(self._keys, table)
        totals = {partial: column.from_table(table) for partial, column in self._columns.items()}
        rows, all_rows = self._nothing.rows, found.listed_rows
        if all_rows is not None:
            rows = all_rows.select(rows.column_names)
        last = table.column(_LAST).to_numpy()
        return KeyState(codes, last, totals, rows, np.repeat(codes, found.list_lengths))

    def _select_mask(self, selected: NDArray[np.bool_]) -> KeyState:
        """Return the state of the keys whose codes are ``selected``."""
        state = self._state
        of_keys, of_rows = selected[state.codes], selected[state.of_rows]
        totals = {p: self._columns[p].take(total, of_keys) for p, total in state.totals.items()}
        rows = state.rows.filter(pa.array(of_rows))
        return KeyState(
            state.codes[of_keys], state.last[of_keys], totals, rows, state.of_rows[of_rows]
        )

    def _concat(self, parts: Sequence[KeyState]) -> KeyState:
        totals = {
            p: column.concat([part.totals[p] for part in parts])
            for p, column in self._columns.items()
        }
        rows = pa.concat_tables([part.rows for part in parts], promote_options="default")
        rows = rows.combine_chunks()  # else chunks double with each call
        codes, last, of_rows = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("codes", "last", "of_rows")
        )
        return KeyState(codes, last, totals, rows, of_rows)
