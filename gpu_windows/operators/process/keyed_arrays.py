"""State and timers of keys of vectorised functions, as arrays in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_windows.kernels.cpu.grouping import group, order_of
from gpu_windows.kernels.cpu.keys import Encoder
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import one_chunk
from gpu_windows.operators.columns.ranges import offsets
from gpu_windows.operators.keyed.backend import KeyedBackend, select
from gpu_windows.operators.keyed.values import stored_column
from gpu_windows.operators.state.keyed_table import TIMERS
from gpu_windows.planning.kinds.process import ProcessQuery

Ints = NDArray[np.int64]

#: The kinds of entries, by number: the first two are timers.
_KINDS = ("event_timers", "processing_timers", "state")
_STATE = 2
#: Number of timers, in excess of those that are set, before the others are dropped.
_SLACK = 1 << 16


class TimerArrays:
    """A set of timers; those of a key fire in order of time.

    Attributes
    ----------
    next_number : int
        Unused: timers of a key differ in their times, so they need no numbers.
    """

    next_number = 0

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._times, self._pairs = Encoder(), Encoder()  # a pair: code of key, code of time
        self._is_set = np.empty(0, np.bool_)  # by the code of a pair

    def __len__(self) -> int:
        return int(np.count_nonzero(self._is_set))

    def set(self, codes: Ints, times: Ints) -> None:
        """Set timers; the same one twice is one timer."""
        pair_codes = self._pair_codes(codes, times)
        self._is_set[pair_codes] = True

    def delete(self, codes: Ints, times: Ints) -> None:
        """Delete timers; those that are not set are ignored."""
        if len(self._is_set):
            pair_codes = self._pair_codes(codes, times)
            self._is_set[pair_codes] = False
            self._compact()

    def all(self) -> tuple[Ints, Ints]:
        """Return keys and times of all timers."""
        return self._decode(np.flatnonzero(self._is_set))

    def pop_due(self, until: int) -> tuple[Ints, Ints]:
        """Remove and return keys and times up to ``until``: by key, those of a key by time."""
        pair_codes = np.flatnonzero(self._is_set)
        codes, times = self._decode(pair_codes)
        due = times <= until
        self._is_set[pair_codes[due]] = False
        codes, times = codes[due], times[due]
        order = np.lexsort((times, codes))
        self._compact()
        return codes[order], times[order]

    def _pair_codes(self, codes: Ints, times: Ints) -> Ints:
        """Return the codes of pairs."""
        pairs = (codes << 32) | self._times.encode(np.ascontiguousarray(times))
        pair_codes = self._pairs.encode(pairs)
        more = self._pairs.count - len(self._is_set)
        if more:
            self._is_set = np.concatenate([self._is_set, np.zeros(more, np.bool_)])
        return pair_codes

    def _decode(self, pair_codes: Ints) -> tuple[Ints, Ints]:
        """Return keys and times of pairs."""
        pairs = self._pairs.values[pair_codes]
        return pairs >> 32, self._times.values[pairs & 0xFFFFFFFF]

    def _compact(self) -> None:
        """Drop timers that are no longer set, if they are many."""
        if len(self._is_set) > 2 * len(self) + _SLACK:
            codes, times = self.all()
            self._begin()
            self.set(codes, times)


class StateRows:
    """Rows of state, by the codes of keys.

    Parameters
    ----------
    schema : pyarrow.Schema
        The declared columns.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._rows = schema.empty_table()
        self._where = np.empty(0, np.int64)  # the row of each code, or -1

    def __len__(self) -> int:
        return int(np.count_nonzero(self._where >= 0))

    @property
    def codes(self) -> Ints:
        """The codes of keys that have state."""
        return np.flatnonzero(self._where >= 0)

    def of(self, codes: Ints) -> pa.Table:
        """Return a row for each of some keys: nulls if it has no state."""
        self._grow(codes)
        where = self._where[codes]
        return self._rows.take(pa.array(where, mask=where < 0))

    def put(self, codes: Ints, rows: pa.Table) -> None:
        """Replace the state of some keys; a row of nulls removes it."""
        self._grow(codes)
        has_values = _have_values(rows)
        self._where[codes] = -1
        others = self.codes
        if len(self._rows) > 2 * len(others):  # drop replaced rows
            self._rows = self._rows.take(pa.array(self._where[others]))
            self._where[others] = np.arange(len(others))
        base = len(self._rows)
        self._rows = pa.concat_tables([self._rows, rows.filter(has_values)]).combine_chunks()
        with_values = codes[has_values.to_numpy(zero_copy_only=False)]
        self._where[with_values] = np.arange(base, base + len(with_values))

    def _grow(self, codes: Ints) -> None:
        """Extend the array of rows to some codes."""
        more = int(codes.max(initial=-1)) + 1 - len(self._where)
        if more > 0:
            self._where = np.concatenate([self._where, np.full(more, -1)])


def _have_values(rows: pa.Table) -> pa.Array:
    """Return which rows have a value that is not null."""
    valid = (pc.is_valid(column) for column in rows.columns)
    return reduce(pc.or_, valid).combine_chunks()


class KeyedArrays(KeyedBackend):
    """State and timers of keys, by key codes of this object.

    Attributes
    ----------
    timers : pair of TimerArrays
        Timers of event time and of processing time.
    state : StateRows
    """

    def __init__(self, query: ProcessQuery) -> None:
        super().__init__(query, _KINDS)
        self._schema = pa.schema(query.process.function.state)
        self._encoder = KeyEncoder([self.types[name] for name in self.key_columns])
        self.timers = self.event_timers, self.processing_timers = TimerArrays(), TimerArrays()
        self.state = StateRows(self._schema)

    def size(self) -> dict[str, int]:
        """Return the number of entries of each kind."""
        counts = [*map(len, self.timers), len(self.state)]
        return dict(zip(_KINDS, counts, strict=True))

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
        return groups.codes, order_of(groups), offsets(groups.rows)

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

    @property
    def _columns(self) -> Mapping[str, pa.DataType]:
        names = sorted(self._schema.names)
        return {f"state {name}": self._schema.field(name).type for name in names}

    def entries(self) -> pa.Table:
        """Return state and timers of all keys."""
        tables = []
        for kind, (timers, at) in enumerate(zip(self.timers, TIMERS, strict=True)):
            codes, times = timers.all()
            tables.append(self._entries(kind, codes, {at: pa.array(times)}))
        codes = self.state.codes
        rows = self.state.of(codes)
        stored = {
            name: one_chunk(rows.column(name.removeprefix("state "))).cast(self.types[name])
            for name in self._columns
        }
        return self._concat([*tables, self._entries(_STATE, codes, stored)])

    def _entries(self, kind: int, codes: Ints, columns: Mapping[str, pa.Array]) -> pa.Table:
        keys = dict(zip(self.key_columns, self.stored_keys(codes), strict=True))
        return self._table(kind, {**keys, **columns})

    def restore(self, entries: pa.Table) -> None:
        """Load entries of keys that have none in memory."""
        for kind, (timers, at) in enumerate(zip(self.timers, TIMERS, strict=True)):
            some = select(entries, kind)
            timers.set(self._codes_of(some), one_chunk(some.column(at)).to_numpy())
        some = select(entries, _STATE)
        if len(some):
            rows = pa.table({name: some.column(f"state {name}") for name in self._schema.names})
            self.state.put(self._codes_of(some), rows.cast(self._schema))

    def _codes_of(self, entries: pa.Table) -> Ints:
        return self._codes([entries.column(name) for name in self.key_columns])
