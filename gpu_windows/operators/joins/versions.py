"""The newest version of each key that the watermark has reached, in a store."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.operators.joins.arrangement import Arrangement
from gpu_windows.operators.joins.rows import JoinRows
from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.hashes import among, distinct, union
from gpu_windows.operators.state.run_index import Kinds
from gpu_windows.operators.state.runs import HASH, TIMERS, KeyRuns
from gpu_windows.operators.state.store import Store
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: What a store calls versions, and the times at which they end; no version keeps rows beside it.
VERSIONS, ROWS = "versions", "version rows"
ENDS = ("versions at", "versions at processing time")


class Versions:
    """One right row for each key: the newest that the watermark has reached.

    A call asks for some keys, and keeps what is the newest of each afterwards.

    Parameters
    ----------
    store : Store
    arrangement : Arrangement
        Of the right side.
    valid_for : int, optional
        For how long a version is one, in ticks; None: until the next one.
    index : pyarrow.Table
        What the store holds, as `index` gave it.
    keys : int
        How many versions there are.
    """

    def __init__(
        self,
        store: Store,
        arrangement: Arrangement,
        valid_for: int | None,
        index: pa.Table,
        keys: int,
    ) -> None:
        self._arrangement, self._valid_for = arrangement, valid_for
        self._runs = KeyRuns(store, Kinds(VERSIONS, ROWS, ENDS), index, keys)
        self._known = np.empty(0, np.int64)  # hashes of keys that `find` has found

    @staticmethod
    def nothing() -> pa.Table:
        """Return the index of an empty store."""
        return KeyRuns.nothing()

    def index(self) -> pa.Table:
        """Return what the store holds now."""
        return self._runs.index()

    def __len__(self) -> int:
        return self._runs.keys

    @property
    def next_end(self) -> int:
        """The watermark at which a version may end; LONG_MAX if none does."""
        return self._runs.next_timers()[0]

    def find(self, codes: Ints, watermark: int) -> pa.Table | None:
        """Return the versions of some keys, and those that end; None if there are none.

        Parameters
        ----------
        codes : int64[n]
            Of keys, each once; not of those with a null that match nothing.
        watermark : int
            Which ends versions.
        """
        self._known = np.empty(0, np.int64)
        if len(self) == 0:
            return None
        asked = self._arrangement.hashes_of(codes)
        if watermark < LONG_MAX:
            asked = union(asked, self._runs.take_due(watermark, in_processing_time=False))
        found = self._runs.find(asked)
        if found is None:
            return None
        self._known = distinct(found.table.column(HASH).to_numpy())
        return found.table.drop_columns([HASH, *TIMERS])

    def keep(self, rows: JoinRows, codes: Ints, watermark: int) -> None:
        """Keep the newest rows of some keys; forget those that have ended.

        Parameters
        ----------
        rows : JoinRows
            Those that `find` has returned, and newer ones.
        codes : int64[n]
            Of the keys that have newer ones, each once.
        watermark : int
        """
        newest = rows.take(np.flatnonzero(np.diff(rows.codes, append=-1)))
        hashes, ends = self._arrangement.hashes_of(newest.codes), self._ends(newest.ts)
        has_ended = ends <= watermark
        changed = union(self._arrangement.hashes_of(codes), hashes[has_ended])
        if len(changed) == 0:
            return
        kept = np.flatnonzero(among(hashes, changed) & ~has_ended)
        columns = {
            HASH: hashes[kept],
            TIMERS[0]: ends[kept],
            TIMERS[1]: np.full(len(kept), LONG_MAX),
        }
        table = newest.table.take(pa.array(kept)).combine_chunks()
        for name, column in columns.items():
            table = table.append_column(name, pa.array(column))
        self._runs.save(Entries(table), changed, self._known[among(self._known, changed)])

    def clear(self) -> None:
        """Forget all versions."""
        self._runs.clear()

    def _ends(self, ts: Ints) -> Ints:
        """Return the watermarks at which versions of some times end."""
        if self._valid_for is None:
            return np.full(len(ts), LONG_MAX)
        ends: Ints = rules.end_of_version(ts, self._valid_for)
        return ends
