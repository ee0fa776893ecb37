"""Rows that wait for the watermark, numbered in order of arrival."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_windows.operators.state.row_runs import RowKind, RowRuns, one_place
from gpu_windows.operators.state.store import Store
from gpu_windows.rules import LONG_MAX

#: Column of the number of a row, in order of arrival.
NUMBER = "__number"


class WaitingRows:
    """Rows that wait for the watermark.

    New ones are in memory until `flush`, so those that the end of time takes are never written.

    Parameters
    ----------
    store : Store
    kind : str
        What the store calls them.
    index : pyarrow.Table
        What it holds of them, as `index` gave it.
    time : str
        The column of their times, int64.
    following : int
        The number of the next row.

    Attributes
    ----------
    following : int
    """

    def __init__(
        self, store: Store, kind: str, index: pa.Table, *, time: str, following: int
    ) -> None:
        self._runs = RowRuns(store, kind, index, RowKind(time, one_place, in_order=True))
        self._time, self.following = time, following
        self._new: list[pa.Table] = []

    @staticmethod
    def nothing() -> pa.Table:
        """Return the index of an empty store."""
        return RowRuns.nothing()

    def index(self) -> pa.Table:
        """Return what the store holds now."""
        return self._runs.index()

    def __len__(self) -> int:
        return len(self._runs) + sum(map(len, self._new))

    @property
    def times_due(self) -> list[int]:
        """The first times of rows in the store, of each run one."""
        return self._runs.times_due

    def numbered(self, rows: pa.Table) -> pa.Table:
        """Return rows that came with their numbers."""
        first, self.following = self.following, self.following + len(rows)
        return rows.append_column(NUMBER, pa.array(np.arange(first, self.following)))

    def append(self, rows: pa.Table) -> None:
        """Have rows wait, which are numbered."""
        if len(rows):
            self._new.append(rows)

    def flush(self) -> None:
        """Have the store hold the new rows, too."""
        if self._new:
            self._runs.append(pa.concat_tables(self._new, promote_options="default"))
            self._new = []

    def take_due(self, until: int) -> list[pa.Table]:
        """Take the rows up to a time, in parts; in none of them if there are none."""
        new: list[pa.Table] = []
        if until == LONG_MAX:  # all are due: none needs to be written
            new, self._new = self._new, []
        self.flush()
        return [*self._runs.take_due(until), *new]

    def between(self, first: int, last: int) -> pa.Table | None:
        """Return the rows from one time to another, which wait on; None if the store has none."""
        self.flush()
        bounds = np.array([first]), np.array([last])
        found = self._runs.find(np.zeros(1, np.int64), *bounds)
        if found is None:
            return None
        times = found.column(self._time).to_numpy()
        return found.filter(pa.array((times >= first) & (times <= last)))
