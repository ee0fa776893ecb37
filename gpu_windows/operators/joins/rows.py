"""Rows of a join side in memory: runs, sorted by key and time.

New rows become a run; small runs are merged, as in a log-structured tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.rules import add_saturating

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: A run of this many rows is no longer merged.
_MAX_ROWS = 1 << 20


@dataclass(frozen=True)
class JoinRows:
    """Rows of a side, sorted by key and time.

    Parameters
    ----------
    table : pyarrow.Table
        Keys, time, columns of the side.
    codes, ts, arrival : int64[n]
        Key codes; times; indices in the current call, or -1.
    matched : bool[n]
        Whether they have been matched; changed in place.
    """

    table: pa.Table
    codes: Ints
    ts: Ints
    arrival: Ints
    matched: Flags

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, places: Any) -> JoinRows:
        """Return some of the rows."""
        return JoinRows(
            self.table.take(pa.array(places)),
            self.codes[places],
            self.ts[places],
            self.arrival[places],
            self.matched[places],
        )

    def by_time(self) -> JoinRows:
        """Return the rows in order of time."""
        return self.take(np.argsort(self.ts, kind="stable"))

    def bounds(self, lower: int, upper: int) -> tuple[int, int]:
        """Return the first and the last time of possible matches."""
        return add_saturating(int(self.ts.min()), lower), add_saturating(int(self.ts.max()), upper)


@dataclass(frozen=True)
class _Run:
    """A run of rows, with their first and last time."""

    rows: JoinRows
    first: int
    last: int

    @classmethod
    def of(cls, rows: JoinRows) -> _Run:
        return cls(rows, int(rows.ts.min()), int(rows.ts.max()))


class Runs:
    """Rows of a side in memory that may still be matched.

    Parameters
    ----------
    sort : callable
        Sorts the rows of a table, given their match flags.
    """

    def __init__(self, sort: Callable[[pa.Table, Flags], JoinRows]) -> None:
        self._sort = sort
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return sum(len(run.rows) for run in self._runs)

    def __iter__(self) -> Iterator[JoinRows]:
        return (run.rows for run in self._runs)

    @property
    def bounds(self) -> Iterator[tuple[int, int]]:
        """The first and the last time of every run."""
        return ((run.first, run.last) for run in self._runs)

    def within(self, first: int, last: int) -> Iterator[JoinRows]:
        """Yield the runs with rows of these times, in order of arrival."""
        for run in self._runs:
            if run.first <= last and first <= run.last:
                yield run.rows

    def add(self, rows: JoinRows) -> None:
        """Add rows; runs of about the same size are merged."""
        if not len(rows):
            return
        self._runs.append(_Run.of(replace(rows, arrival=np.full(len(rows), -1))))
        while len(self._runs) > 1 and _are_alike(*(run.rows for run in self._runs[-2:])):
            last, previous = self._runs.pop(), self._runs.pop()
            self._runs.append(_Run.of(self._merge([previous.rows, last.rows])))

    def expire(self, limit: int, *, emits_unmatched: bool) -> Iterator[JoinRows]:
        """Drop the rows up to a time; yield the unmatched ones.

        ``emits_unmatched``: whether they are yielded.
        """
        remaining = []
        for run in self._runs:
            if run.first > limit:
                remaining.append(run)
                continue
            rows, has_expired = run.rows, run.rows.ts <= limit
            if emits_unmatched:
                yield rows.take(np.flatnonzero(has_expired & ~rows.matched))
            if run.last > limit:
                remaining.append(_Run.of(rows.take(np.flatnonzero(~has_expired))))
        self._runs = remaining

    def clear(self) -> None:
        """Drop all rows."""
        self._runs = []

    def _merge(self, parts: Sequence[JoinRows]) -> JoinRows:
        table = pa.concat_tables([part.table for part in parts], promote_options="default")
        return self._sort(table, np.concatenate([part.matched for part in parts]))


def _are_alike(previous: JoinRows, last: JoinRows) -> bool:
    return len(previous) < 2 * len(last) and len(previous) + len(last) <= _MAX_ROWS
