"""Versioned table of a temporal join in a log: the newest version of each key by the watermark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.operators.columns.keys import present
from gpu_windows.operators.joins.join_index import JoinIndex, are_keys
from gpu_windows.operators.joins.rows import JoinRows
from gpu_windows.operators.state.buffer_spec import KeyColumns
from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.hashes import among, distinct, union
from gpu_windows.operators.state.keyed_table import HASH, TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: Table name of versions in a log; the timer of a version is its end.
VERSIONS = "versions"


class Versions:
    """One right row for each key: the newest that the watermark has reached.

    A call loads the versions of some keys, and afterwards stores the newest of each.

    Parameters
    ----------
    log : StateLog
    index : JoinIndex
        Index of the right side.
    valid_for : int, optional
        How long a version is valid, in ticks; None: until the next one.
    """

    def __init__(self, log: StateLog, index: JoinIndex, valid_for: int | None) -> None:
        self._index, self._valid_for = index, valid_for
        self._table = KeyedTable(
            log, VERSIONS, key_columns=KeyColumns.BY_NAME, lacking=index.lacking
        )

    def __len__(self) -> int:
        return self._table.keys

    @property
    def next_end(self) -> int:
        """The watermark at which a version may end; LONG_MAX if none does."""
        event, _ = self._table.next_timers()
        return LONG_MAX if event is None else event

    def of(self, codes: Ints, until: int | None = None) -> list[JoinRows]:
        """Return the versions of some keys, as a list of at most one sequence of rows.

        Parameters
        ----------
        codes : int64[n]
            Key codes, each once, without those of null keys that match nothing.
        until : int, optional
            A watermark; the versions that end by it are returned too, each once.
        """
        if len(self) == 0:
            return []
        hashes = distinct(self._index.hashes_of(codes))
        if until is not None and until < LONG_MAX:
            hashes = union(hashes, self._table.take_due(until))
        found = self._table.find(hashes)
        if found is None or len(found) == 0:
            return []
        return [self._concat([found.table.drop_columns([HASH, *TIMERS])])]

    def keep(self, stored: Sequence[JoinRows], newer: Sequence[JoinRows], watermark: int) -> None:
        """Store the newest rows of keys that have newer ones; delete versions that have ended.

        Parameters
        ----------
        stored : sequence of JoinRows
            The versions that `of` has returned.
        newer : sequence of JoinRows
            Newer rows, in order of arrival.
        watermark : int
        """
        if not stored and not newer:
            return
        rows = self._concat([each.table for each in (*stored, *newer)])
        numbers, codes, *_ = map(np.asarray, rows.sorted_rows)
        newest = rows.take(numbers[np.diff(codes, append=-1) != 0])
        hashes, ends = self._index.hashes_of(newest.codes), self._ends_of(newest.ts)
        has_ended = ends <= watermark
        changed = union(self._hashes_of(newer), hashes[has_ended])
        if len(changed) == 0:
            return
        index = np.flatnonzero(among(hashes, changed) & ~has_ended)
        columns = [hashes[index], ends[index], np.full(len(index), LONG_MAX)]
        table = newest.table.take(pa.array(index)).combine_chunks()
        for name, column in zip((HASH, *TIMERS), columns, strict=True):
            table = table.append_column(name, pa.array(column))
        previous = self._hashes_of(stored)
        self._table.put(Entries(table), changed, previous[among(previous, changed)])

    def clear(self) -> None:
        """Delete all versions."""
        self._table.drop()

    def _concat(self, tables: Sequence[pa.Table]) -> JoinRows:
        table = pa.concat_tables(tables, promote_options="default")
        return self._index.make_rows(table, np.zeros(len(table), np.bool_))

    def _hashes_of(self, parts: Sequence[JoinRows]) -> Ints:
        """Return the hashes of the keys of some rows, each once."""
        return distinct(self._index.hashes_of(codes_of(parts)))

    def _ends_of(self, ts: Ints) -> Ints:
        """Return the watermarks at which versions of some times end."""
        if self._valid_for is None:
            return np.full(len(ts), LONG_MAX)
        ends: Ints = rules.end_of_version(ts, self._valid_for)
        return ends


def codes_of(parts: Sequence[JoinRows]) -> Ints:
    """Return the codes of the keys of some rows, each once, except null keys that match none."""
    codes = np.concatenate([np.empty(0, np.int64), *(rows.codes for rows in parts)])
    codes = codes[are_keys(codes)]
    return present(codes, int(codes.max(initial=-1)) + 1)
