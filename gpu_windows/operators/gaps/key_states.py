"""State of filled keys: the last window emitted, the last one with rows, and its values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import one_chunk
from gpu_windows.operators.columns.stored_keys import codes_of_entries, columns_of_keys
from gpu_windows.operators.gaps.gaps import NONE
from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.keyed_table import TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.rules import LONG_MIN

Ints = NDArray[np.int64]

#: Table name of keys in a log; the timer of a key is the next watermark at which it is filled.
KEYS = "filled keys"
#: Columns of entries, beside the keys and the carried values.
_EMITTED, _WITH_ROWS = "emitted", "with_rows"


class KeyStates:
    """State of the keys in memory, by code.

    Parameters
    ----------
    keys : KeyEncoder
    carried : pyarrow.Schema
        Results of the last window with rows that are stored.

    Attributes
    ----------
    emitted : int64[count]
        Number of the last window emitted; LONG_MIN: the key is unknown.
    with_rows : int64[count]
        Number of the last window with rows, or LONG_MIN.
    values : pyarrow.Table
        Carried values.
    value_at : int64[count]
        Index of the values of each key, or `NONE`.
    """

    def __init__(self, keys: KeyEncoder, carried: pa.Schema) -> None:
        self.keys = keys
        self.emitted = self.with_rows = self.value_at = np.empty(0, np.int64)
        # a column of no meaning, because a table without columns has no length
        self._schema = pa.schema([*carried, pa.field("", pa.null())])
        self.values = self._schema.empty_table()

    def grow(self) -> None:
        """Extend the arrays to all keys of the encoder."""
        more = self.keys.count - len(self.emitted)
        if more > 0:
            unknown = np.full(more, LONG_MIN)
            self.emitted = np.concatenate([self.emitted, unknown])
            self.with_rows = np.concatenate([self.with_rows, unknown])
            self.value_at = np.concatenate([self.value_at, np.full(more, NONE)])

    @property
    def known_codes(self) -> Ints:
        """The codes of known keys."""
        return np.flatnonzero(self.emitted != LONG_MIN)

    def forget(self, codes: Ints) -> None:
        """Remove keys."""
        self.emitted[codes] = self.with_rows[codes] = LONG_MIN
        self.value_at[codes] = NONE

    def set_values(self, codes: Ints, rows: pa.Table) -> None:
        """Replace the carried values of keys; ``codes`` has each once."""
        columns = [rows.column(name) for name in self._schema.names[:-1]]
        new = pa.Table.from_arrays([*columns, pa.nulls(len(codes))], schema=self._schema)
        self.value_at[codes] = len(self.values) + np.arange(len(codes))
        self.values = pa.concat_tables([self.values, new])
        if len(self.values) > 2 * len(self.known_codes) + len(codes):
            self._compact()

    def _compact(self) -> None:
        """Drop the values that no key has any longer."""
        codes = np.flatnonzero(self.value_at != NONE)
        self.values = self.values.take(pa.array(self.value_at[codes])).combine_chunks()
        self.value_at[codes] = np.arange(len(codes))


class StoredKeyStates:
    """State of keys in a store.

    Parameters
    ----------
    states : KeyStates
        Of the keys in memory.
    log : StateLog
    """

    def __init__(self, states: KeyStates, log: StateLog) -> None:
        self._states, self.log = states, log
        self.table = KeyedTable(log, KEYS)

    def load(self, codes: Ints) -> None:
        """Load some keys; ``codes`` has each once."""
        self._add(self.table.load(self._states.keys.hashes()[codes]))

    def load_due(self, watermark: int) -> None:
        """Load the keys that have windows to fill up to a watermark."""
        self._add(self.table.load_due(watermark))

    def _add(self, found: Entries | None) -> None:
        if found is None:
            return
        states, table = self._states, found.table
        codes = codes_of_entries(states.keys, table)
        states.grow()
        states.emitted[codes] = table.column(_EMITTED).to_numpy()
        states.with_rows[codes] = table.column(_WITH_ROWS).to_numpy()
        names = states.values.column_names[:-1]
        rows = pa.table([table.column(_value(i)) for i in range(len(names))], names=names)
        states.set_values(codes, rows)

    def save(self, timers: Ints) -> None:
        """Write the keys in memory. ``timers``: of each of ``states.known_codes``, in ticks."""
        states, codes = self._states, self._states.known_codes
        has_values = states.value_at[codes] != NONE
        index = pa.array(states.value_at[codes], mask=~has_values)
        values = states.values.take(index)
        columns: dict[str, Any] = {
            **columns_of_keys(states.keys, codes),
            _EMITTED: states.emitted[codes],
            _WITH_ROWS: states.with_rows[codes],
            **{_value(i): one_chunk(each) for i, each in enumerate(values.columns[:-1])},
            TIMERS[0]: timers,
        }
        self.table.save(Entries(pa.table(columns)))


def _value(index: int) -> str:
    """Return the name of a column of carried values."""
    return f"value{index}"
