"""What is known of keys: the last row, what all rows so far come to, the last few of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.partials import Partial
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.lanes import one_chunk, to_lane
from gpu_windows.operators.columns.partials import PartialColumn, State
from gpu_windows.operators.over.stored_rows import among
from gpu_windows.operators.state.entries import LISTS, Entries, lists_of
from gpu_windows.operators.state.keyed_table import HASH, TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]

#: What a log calls keys and their last rows; nothing of them waits for a time.
KEYS = "over keys"
#: Column of the time of the last row of a key.
_LAST = "last"


class Known(NamedTuple):
    """What is known of some keys.

    Parameters
    ----------
    codes : int64[k]
        The keys, each once.
    last : int64[k]
        The times of their last rows.
    totals : mapping of Partial to State
        What all their rows come to, an entry a key.
    rows : pyarrow.Table
        The last rows of each, in order.
    of_rows : int64[n]
        The keys of these.
    """

    codes: Ints
    last: Ints
    totals: Mapping[Partial, State]
    rows: pa.Table
    of_rows: Ints

    def __len__(self) -> int:
        return len(self.codes)


class KeyMemory:
    """Keys in a store, and those of them that are in memory.

    Parameters
    ----------
    log : StateLog
    names : sequence of str
        The key columns.
    keys : KeyEncoder
    columns : mapping of Partial to PartialColumn
        Of what is known of all rows.
    row_schema : pyarrow.Schema
        Of the last rows.
    lacking : pyarrow.Schema
        Columns that those of earlier starts may lack.
    """

    def __init__(
        self,
        log: StateLog,
        names: Sequence[str],
        keys: KeyEncoder,
        columns: Mapping[Partial, PartialColumn],
        row_schema: pa.Schema,
        lacking: pa.Schema,
    ) -> None:
        self._names, self._keys, self._columns = names, keys, columns
        self._table = KeyedTable(log, KEYS, lacking=lacking)
        none = np.empty(0, np.int64)
        nothing = {p: column.take(column.nothing(), none) for p, column in columns.items()}
        self._known = self._nothing = Known(none, none, nothing, row_schema.empty_table(), none)

    @property
    def count(self) -> int:
        """How many keys the log has."""
        return self._table.keys

    def load(self, codes: Ints) -> None:
        """Have some keys in memory, each given once."""
        found = self._table.load(self._keys.hashes()[codes])
        if found is not None:
            self._known = self._together([self._known, self._of_entries(found)])

    def last_of(self, codes: Ints) -> Ints:
        """Return the time of the last row of keys; LONG_MIN if there is none.

        Those that are not in memory stay where they are: they do not change.
        """
        last = np.full(self._keys.count, LONG_MIN)
        last[self._known.codes] = self._known.last
        others = np.unique(codes[last[codes] == LONG_MIN])
        found = self._table.find(self._keys.hashes()[others]) if len(others) else None
        if found is not None:
            seen = self._of_entries(found)
            last = np.concatenate([last, np.full(self._keys.count - len(last), LONG_MIN)])
            last[seen.codes] = np.maximum(last[seen.codes], seen.last)
        return last[codes]

    def of(self, codes: Ints) -> Known:
        """Return what is known of some keys, which are in memory."""
        return self._some(among(np.arange(self._keys.count), codes, self._keys.count))

    def put(self, known: Known) -> None:
        """Know this of some keys, and nothing else of them."""
        others = ~among(np.arange(self._keys.count), known.codes, self._keys.count)
        self._known = self._together([self._some(others), known])

    def clear(self) -> None:
        """Forget all keys."""
        self._table.clear()
        self._known = self._nothing

    def save(self) -> None:
        """Write the keys that are in memory."""
        known = self._known
        order = np.argsort(known.codes)
        place = np.empty(self._keys.count, np.int64)
        place[known.codes[order]] = np.arange(len(order))
        by_key = np.argsort(place[known.of_rows], kind="stable")
        lengths = np.bincount(place[known.of_rows], minlength=len(order))
        codes = known.codes[order]
        columns = {
            **{f"key{i}": each for i, each in enumerate(self._keys.decode(codes))},
            _LAST: pa.array(known.last[order]),
            LISTS: lists_of(lengths),
            HASH: pa.array(self._keys.hashes()[codes]),
            **dict.fromkeys(TIMERS, pa.array(np.full(len(codes), LONG_MAX))),
        }
        for partial, column in self._columns.items():
            state = column.take(known.totals[partial], order)
            names = (each.name for each in column.fields)
            columns |= zip(names, column.to_arrow(state), strict=True)
        rows = known.rows.take(pa.array(by_key)) if len(by_key) else None
        self._table.save(Entries(pa.table(columns), rows))

    def _of_entries(self, found: Entries) -> Known:
        table = found.table
        codes = self._keys.encode([table.column(f"key{i}") for i in range(len(self._names))])
        lists = one_chunk(table.column(LISTS))
        lengths = to_lane(lists.value_lengths()).values
        totals = {partial: column.from_table(table) for partial, column in self._columns.items()}
        rows = self._nothing.rows
        if found.kept is not None:
            rows = found.kept.take(lists.flatten()).select(rows.column_names)
        last = table.column(_LAST).to_numpy()
        return Known(codes, last, totals, rows, np.repeat(codes, lengths))

    def _some(self, wanted: NDArray[np.bool_]) -> Known:
        """Return what is known of the keys whose codes are wanted."""
        known = self._known
        mine, of_rows = wanted[known.codes], wanted[known.of_rows]
        totals = {p: self._columns[p].take(state, mine) for p, state in known.totals.items()}
        rows = known.rows.filter(pa.array(of_rows))
        return Known(known.codes[mine], known.last[mine], totals, rows, known.of_rows[of_rows])

    def _together(self, parts: Sequence[Known]) -> Known:
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
        return Known(codes, last, totals, rows, of_rows)
