"""The rows that an interval join keeps: runs of each side, sorted by key and time.

New rows become a run; small runs are merged, as in a log-structured tree. A run is read from a
store when rows of its time are needed, and forgotten as a whole when the watermark is past it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.two_inputs import TIME
from gpu_windows.operators.state.store import Contents, Store
from gpu_windows.rules import LONG_MAX, LONG_MIN, shifted

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: What a store calls the runs of a side.
KINDS = ("left", "right")
#: The column that says whether a row has had a partner, where that must be known.
MET = "__met"
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


class Run:
    """Rows that are kept together, in memory or in a store.

    Parameters
    ----------
    number, count : int
        Its bucket in a store, and how many rows it has.
    first, last : int
        The first and the last time.
    limit : int
        Up to when rows were over when it was made, or last looked at: a row that comes when its
        time is over already is kept until the watermark moves again, as in Flink.
    over : int
        Up to when the rows in the store are over: they are not looked at any more.
    stored : int
        Rows in the store, those that are over too.
    """

    def __init__(
        self, number: int, count: int, first: int, last: int, limit: int,
        over: int = LONG_MIN, stored: int = 0,
    ) -> None:  # fmt: skip
        self.number, self.count, self.first, self.last = number, count, first, last
        self.limit, self.over, self.stored = limit, over, stored
        self.rows: JoinRows | None = None
        self.changed = False

    @classmethod
    def of(cls, number: int, rows: JoinRows, limit: int) -> Run:
        """Make a run that no store knows, of rows that are not new any more."""
        run = cls(number, 0, LONG_MAX, LONG_MIN, limit)
        run._hold(replace(rows, arrival=np.full(len(rows), -1)))
        run.changed = True
        return run

    @property
    def kept(self) -> JoinRows:
        """The rows, which are in memory."""
        assert self.rows is not None, "a run is read before its rows are asked for"
        return self.rows

    def read(self, rows: JoinRows) -> None:
        """Hold what the store has, without what is over."""
        alive = rows.ts > self.over
        self._hold(rows if alive.all() else rows.take(np.flatnonzero(alive)))

    def trim(self, limit: int) -> None:
        """Forget the rows up to a time; a store keeps them until half of it is over."""
        if self.first <= limit:
            self._hold(self.kept.take(np.flatnonzero(self.kept.ts > limit)))
            self.over = limit
            self.changed |= 2 * self.count < self.stored
        self.limit = limit

    def written(self) -> None:
        """Note that the store has the rows as they are."""
        self.changed, self.over, self.stored = False, LONG_MIN, self.count

    def known(self) -> tuple[int, ...]:
        """Return what a run is made of again, but for its rows."""
        bounds = (self.first, self.last)
        return (self.number, self.count, *bounds, self.limit, self.over, self.stored)

    def _hold(self, rows: JoinRows) -> None:
        self.rows, self.count = rows, len(rows)
        self.first, self.last = int(rows.ts.min()), int(rows.ts.max())


class Runs:
    """The rows of a side that may find a partner.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    retention : int
        How long a row is kept after its time, in ticks.
    tracks : bool
        Whether rows know if they have had a partner.
    arranged : callable
        Sorts the rows of a table, given whether they have had a partner.
    """

    def __init__(
        self,
        kind: str,
        retention: int,
        *,
        tracks: bool,
        arranged: Callable[[pa.Table, Flags], JoinRows],
    ) -> None:
        self.kind, self.retention = kind, retention
        #: Whether rows know if they have had a partner.
        self.tracks = tracks
        self._arranged = arranged
        self._runs: list[Run] = []
        self._gone: list[int] = []  # numbers of runs that a store still holds
        self._stored: set[int] = set()
        self._next = 0
        self._limit = LONG_MIN  # rows up to here are over
        self.store: Store | None = None

    def __len__(self) -> int:
        return sum(run.count for run in self._runs)

    def within(self, first: int, last: int) -> Iterator[Run]:
        """Yield the runs that have rows of these times, in memory."""
        for run in self._runs:
            if run.first <= last and first <= run.last:
                self._load(run)
                yield run

    def add(self, rows: JoinRows) -> None:
        """Keep rows; runs of about one size are merged."""
        if not len(rows):
            return
        self._runs.append(Run.of(self._number(), rows, self._limit))
        while len(self._runs) > 1 and self._are_alike(*self._runs[-2:]):
            last, former = self._runs.pop(), self._runs.pop()
            rows = self._merged([self._load(former), self._load(last)])
            self._gone += [former.number, last.number]
            self._runs.append(Run.of(self._number(), rows, self._limit))

    def cut(self, watermark: int, *, tell: bool) -> Iterator[JoinRows]:
        """Drop the rows that the watermark is past; yield those of them that had no partner.

        ``tell``: whether these are wanted; else nothing is read for it.
        """
        self._limit = LONG_MAX if watermark == LONG_MAX else shifted(watermark, -self.retention)
        kept = []
        for run in self._runs:
            if run.first > self._limit or not (run.last <= self._limit or tell or run.rows):
                kept.append(run)
                continue
            if tell:
                rows = self._load(run, whole=True)
                yield rows.take(np.flatnonzero((rows.ts <= self._limit) & ~rows.met))
            if run.last <= self._limit:
                self._gone.append(run.number)
            else:
                run.trim(self._limit)
                kept.append(run)
        self._runs = kept

    def next_end(self, *, tell: bool) -> int:
        """Return the watermark at which there is something to drop; LONG_MAX if there is none."""
        times = (run.first if tell else run.last for run in self._runs)
        return min((shifted(time, self.retention) for time in times), default=LONG_MAX)

    # ---- in a store

    def index(self) -> list[tuple[int, ...]]:
        """Return what is known of every run: what `Run` takes."""
        return [run.known() for run in self._runs]

    def restore(
        self, store: Store, index: Sequence[tuple[int, ...]], following: int, limit: int
    ) -> None:
        """Know the runs that a store holds."""
        self.store, self._next, self._limit = store, following, limit
        self._runs = [Run(*each) for each in index]
        self._stored = {run.number for run in self._runs}

    def save(self, store: Store) -> int:
        """Write what has changed; return the number of the next run."""
        for number in self._gone:
            if number in self._stored:
                store.remove(self.kind, number)
        for run in self._runs:
            if run.changed and run.rows is not None:
                store.save(self.kind, run.number, self._table(run.rows))
                run.written()
        self._gone = []
        self._stored = {run.number for run in self._runs}
        return self._next

    def _table(self, rows: JoinRows) -> pa.Table:
        return rows.table.append_column(MET, pa.array(rows.met)) if self.tracks else rows.table

    def _load(self, run: Run, *, whole: bool = False) -> JoinRows:
        """Return the rows of a run, without those that are over, or with them."""
        if run.rows is None:
            assert self.store is not None, "a run without rows is in a store"
            table = self.store.load_listed(self.kind, run.number)
            met = np.zeros(len(table), np.bool_)
            if self.tracks:
                met = table.column(MET).to_numpy().copy()
                table = table.drop_columns([MET])
            run.read(self._arranged(table, met))
        if not whole and run.limit < self._limit:
            run.trim(self._limit)
        return run.kept

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _are_alike(self, former: Run, last: Run) -> bool:
        return former.count < 2 * last.count and former.count + last.count <= _MOST_ROWS

    def _merged(self, parts: Sequence[JoinRows]) -> JoinRows:
        table = pa.concat_tables([part.table for part in parts])
        return self._arranged(table, np.concatenate([part.met for part in parts]))


def contents(table: pa.Table) -> Contents:
    """Tell what the rows of a side are."""
    ts = table.column(TIME).to_numpy()
    keys = table.columns[: table.column_names.index(TIME)]
    ends = (int(ts.min()), int(ts.max()) + 1) if len(ts) else (None, None)
    return Contents({"rows": len(table)}, keys, *ends)
