"""The rows of a side that are in memory: runs, sorted by key and time.

New rows become a run; small runs are merged, as in a log-structured tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.rules import shifted

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Rows of a run that is not merged any more.
_MOST_ROWS = 1 << 20


@dataclass(frozen=True)
class JoinRows:
    """Rows of a side, sorted by key and time.

    Parameters
    ----------
    table : pyarrow.Table
        Keys, time, columns of the side.
    codes, ts, arrival : int64[n]
        Of keys; times; their places in the call that brought them, or -1.
    met : bool[n]
        Whether they have had a partner; changed in place.
    """

    table: pa.Table
    codes: Ints
    ts: Ints
    arrival: Ints
    met: Flags

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, places: Any) -> JoinRows:
        """Return some of the rows."""
        return JoinRows(
            self.table.take(pa.array(places)),
            self.codes[places],
            self.ts[places],
            self.arrival[places],
            self.met[places],
        )

    def by_time(self) -> JoinRows:
        """Return the rows in order of time."""
        return self.take(np.argsort(self.ts, kind="stable"))

    def bounds(self, lower: int, upper: int) -> tuple[int, int]:
        """Return from when to when their partners are."""
        return shifted(int(self.ts.min()), lower), shifted(int(self.ts.max()), upper)


@dataclass(frozen=True)
class _Run:
    """Rows that are kept together; the first and the last time of them."""

    rows: JoinRows
    first: int
    last: int

    @classmethod
    def of(cls, rows: JoinRows) -> _Run:
        return cls(rows, int(rows.ts.min()), int(rows.ts.max()))


class Runs:
    """The rows of a side in memory that may find a partner.

    Parameters
    ----------
    arranged : callable
        Sorts the rows of a table, given whether they have had a partner.
    """

    def __init__(self, arranged: Callable[[pa.Table, Flags], JoinRows]) -> None:
        self._arranged = arranged
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
        """Yield the runs that have rows of these times, in the order in which they came."""
        for run in self._runs:
            if run.first <= last and first <= run.last:
                yield run.rows

    def add(self, rows: JoinRows) -> None:
        """Keep rows; runs of about one size are merged."""
        if not len(rows):
            return
        self._runs.append(_Run.of(replace(rows, arrival=np.full(len(rows), -1))))
        while len(self._runs) > 1 and _are_alike(*(run.rows for run in self._runs[-2:])):
            last, former = self._runs.pop(), self._runs.pop()
            self._runs.append(_Run.of(self._merged([former.rows, last.rows])))

    def cut(self, limit: int, *, tell: bool) -> Iterator[JoinRows]:
        """Drop the rows up to a time; yield those of them that had no partner.

        ``tell``: whether these are wanted.
        """
        kept = []
        for run in self._runs:
            if run.first > limit:
                kept.append(run)
                continue
            rows, is_over = run.rows, run.rows.ts <= limit
            if tell:
                yield rows.take(np.flatnonzero(is_over & ~rows.met))
            if run.last > limit:
                kept.append(_Run.of(rows.take(np.flatnonzero(~is_over))))
        self._runs = kept

    def clear(self) -> None:
        """Forget all rows."""
        self._runs = []

    def _merged(self, parts: Sequence[JoinRows]) -> JoinRows:
        table = pa.concat_tables([part.table for part in parts], promote_options="default")
        return self._arranged(table, np.concatenate([part.met for part in parts]))


def _are_alike(former: JoinRows, last: JoinRows) -> bool:
    return len(former) < 2 * len(last) and len(former) + len(last) <= _MOST_ROWS
