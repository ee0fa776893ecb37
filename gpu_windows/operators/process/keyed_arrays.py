"""State and timers of keys of vectorised functions, as arrays in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.kernels.cpu.grouping import group, order_of
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import one_chunk
from gpu_windows.operators.keyed.entries import (
    KIND,
    entries_of,
    key_column,
    numbers_by_kind,
    select,
)
from gpu_windows.operators.keyed.values import plain_type, stored_column, stored_type
from gpu_windows.operators.process.state_rows import StateRows
from gpu_windows.operators.process.timer_arrays import TimerArrays
from gpu_windows.operators.state.keyed_table import TIMERS
from gpu_windows.planning.kinds.process import ProcessQuery
from gpu_windows.rules import LONG_MIN

Ints = NDArray[np.int64]

#: The kinds of entries, by number: the first two are timers.
_KINDS = ("event_timers", "processing_timers", "state")
_STATE = 2


class KeyedArrays:
    """State and timers of keys, by key codes of this object.

    Attributes
    ----------
    watermark, processing_time : int
        In ticks.
    event_timers, processing_timers : TimerArrays
    state : StateRows
    """

    def __init__(self, query: ProcessQuery) -> None:
        self._query = query
        self._schema = pa.schema(query.process.function.state)
        self._stored = {
            f"state {name}": plain_type(self._schema.field(name).type)
            for name in sorted(self._schema.names)
        }
        self._encoder = KeyEncoder([self.types[name] for name in self.key_columns])
        self.watermark, self.processing_time = LONG_MIN, 0
        self.event_timers, self.processing_timers = TimerArrays(), TimerArrays()
        self.state = StateRows(self._schema)

    @property
    def timers(self) -> tuple[TimerArrays, TimerArrays]:
        """Timers of event time and of processing time."""
        return self.event_timers, self.processing_timers

    def size(self) -> dict[str, int]:
        """Return the number of entries of each kind."""
        return dict(zip(_KINDS, (*map(len, self.timers), len(self.state)), strict=True))

    # ---- keys

    def group_rows(self, rows: pa.Table) -> tuple[Ints, Ints, Ints]:
        """Group rows by key.

        Returns
        -------
        keys : int64[n]
            Ascending codes, each once.
        order : int64[rows]
            Indices of rows by key, those of a key in order of arrival.
        offsets : int64[n + 1]
            Offsets of the keys in ``order``.
        """
        codes = self._codes([rows.column(name) for name in self._query.keys])
        groups = group(codes, np.zeros(len(codes), np.int64), self._encoder.count)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(groups.rows)])
        return groups.codes, order_of(groups), offsets

    def keys(self, codes: Ints) -> pa.Table:
        """Return the key columns of some keys, with the types and names of the input."""
        schema = pa.schema(self._query.display_key_fields)
        pairs = zip(self.stored_keys(codes), schema.types, strict=True)
        return pa.Table.from_arrays([column.cast(dtype) for column, dtype in pairs], schema=schema)

    def stored_keys(self, codes: Ints) -> list[pa.Array]:
        """Return the key columns of some keys with the types of entries."""
        return self._encoder.decode(codes)

    def _codes(self, columns: Sequence[pa.ChunkedArray]) -> Ints:
        return self._encoder.encode([*map(stored_column, columns)])

    # ---- as entries

    @cached_property
    def types(self) -> Mapping[str, pa.DataType]:
        """The columns of entries, and their types."""
        fields = map(self._query.schema.field, self._query.keys)
        keys = {key_column(i): plain_type(stored_type(f.type)) for i, f in enumerate(fields)}
        return {KIND: pa.int8(), **keys, **dict.fromkeys(TIMERS, pa.int64()), **self._stored}

    @property
    def key_columns(self) -> list[str]:
        """The columns of keys."""
        return [key_column(number) for number in range(len(self._query.keys))]

    def counts(self, entries: pa.Table) -> Counter[str]:
        """Return the number of entries of each kind in a table."""
        return Counter(dict(zip(_KINDS, numbers_by_kind(entries, len(_KINDS)), strict=True)))

    def entries(self) -> pa.Table:
        """Return state and timers of all keys."""
        tables = [pa.schema(self.types.items()).empty_table()]
        for kind, (timers, at) in enumerate(zip(self.timers, TIMERS, strict=True)):
            codes, times = timers.all()
            tables.append(self._entries(kind, codes, {at: pa.array(times)}))
        codes = self.state.codes
        names = [name.removeprefix("state ") for name in self._stored]
        columns = map(one_chunk, self.state.of(codes).select(names).columns)
        stored = {
            name: column.cast(dtype)
            for (name, dtype), column in zip(self._stored.items(), columns, strict=True)
        }
        tables.append(self._entries(_STATE, codes, stored))
        return pa.concat_tables(tables)

    def _entries(self, kind: int, codes: Ints, columns: Mapping[str, pa.Array]) -> pa.Table:
        keys = dict(zip(self.key_columns, self.stored_keys(codes), strict=True))
        return entries_of(kind, {**keys, **columns}, self.types)

    def restore(self, entries: pa.Table) -> None:
        """Load entries of keys that have none in memory."""
        for kind, (timers, at) in enumerate(zip(self.timers, TIMERS, strict=True)):
            some = select(entries, kind)
            timers.set(self._keys_of(some), one_chunk(some.column(at)).to_numpy())
        some = select(entries, _STATE)
        if len(some):
            rows = pa.table({name: some.column(f"state {name}") for name in self._schema.names})
            self.state.put(self._keys_of(some), rows.cast(self._schema))

    def _keys_of(self, entries: pa.Table) -> Ints:
        return self._codes([entries.column(name) for name in self.key_columns])
