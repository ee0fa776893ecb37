"""Rows in a store by place and time, as a log-structured tree: a call appends those that came.

What a call appends is a *run*: rows in the order of their places (of the hash of a key, or one for
all) and, at a place, of time. A run is cut into blocks of some kilobytes, and its directory says
which begins where. So who looks for the rows of a place between two times reads a few blocks of
each run, however many rows the place has. Runs are merged, the newest ones first, so that they stay
few; a run that is over is forgotten unread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.two_inputs import TIME
from gpu_windows.operators.joins import partners
from gpu_windows.operators.state.store import Contents, Store, to_blob
from gpu_windows.operators.state.tiers import merged_together, size_of
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: Bytes of a block, about, and rows of a run that tell how large they are.
_BLOCK_BYTES, _SAMPLE = 7_000, 4_096
#: Blocks that are read at once, about, of those that are due.
_DUE_BLOCKS = 2_000
#: Rows of a run of the largest size that is merged: merging takes eight of them into memory.
_MOST_ROWS = 1 << 18


@dataclass(frozen=True)
class _Run:
    """What an index tells of a run.

    Parameters
    ----------
    first, blocks : int
        The number of its first block, and how many there are.
    rows, notes : int
        How many rows there are, and how many notes of other rows (`partners`).
    bytes : int
        Of its block if that is the only one, else of its directory.
    least, greatest : int
        The first and the last time.
    since : int
        What is before this time is over.
    """

    first: int
    blocks: int
    rows: int
    notes: int
    bytes: int
    least: int
    greatest: int
    since: int


_FIELDS = tuple(field.name for field in fields(_Run))


@dataclass(frozen=True)
class _Directory:
    """The place and the time at which each block of a run begins, and its bytes."""

    place: Ints
    time: Ints
    bytes: Ints

    def before(self, places: Ints, times: Ints, *, or_at: bool) -> Ints:
        """Return how many blocks begin before each of some places and times, or at them."""
        low = np.searchsorted(self.place, places, "left")
        high = np.searchsorted(self.place, places, "right")
        while (low < high).any():
            middle = (low + high) >> 1
            begin = self.time[np.minimum(middle, len(self.time) - 1)]
            is_before = begin <= times if or_at else begin < times
            is_open = low < high
            low = np.where(is_open & is_before, middle + 1, low)
            high = np.where(is_open & ~is_before, middle, high)
        return low

    def blocks(self, places: Ints, first: Ints, last: Ints) -> Ints:
        """Return the blocks that may have rows of any of some places and times."""
        begin = np.maximum(self.before(places, first, or_at=False) - 1, 0)
        end = self.before(places, last, or_at=True)
        some = begin < end
        edges = np.zeros(len(self.place) + 1, np.int64)
        np.add.at(edges, begin[some], 1)
        np.add.at(edges, end[some], -1)
        return np.flatnonzero(np.cumsum(edges)[:-1])


class StoredRuns:
    """The rows of a store that are of one kind.

    Parameters
    ----------
    store : Store
    kind : str
        What the store calls its blocks.
    index : pyarrow.Table
        What it holds of them, as `index` gave it.
    places : callable
        Tells the places of the rows of a table: int64[n].
    keeps_met : bool
        Whether rows stay that have had a partner, where that is known of them.
    """

    def __init__(
        self,
        store: Store,
        kind: str,
        index: pa.Table,
        places: Callable[[pa.Table], Ints],
        *,
        keeps_met: bool,
    ) -> None:
        self._store, self._kind, self._directories = store, kind, directory_kind(kind)
        self._places, self._keeps_met = places, keeps_met
        columns = (index.column(name).to_pylist() for name in _FIELDS)
        self._runs = [_Run(*each) for each in zip(*columns, strict=True)]  # from the oldest on
        self._read: dict[int, pa.Table] = {}  # blocks that were read, by their numbers
        self._known: dict[int, _Directory] = {}  # directories, by the numbers of first blocks

    @staticmethod
    def nothing() -> pa.Table:
        """Return the index of an empty store."""
        return _index([])

    def index(self) -> pa.Table:
        """Return what the store holds now."""
        return _index(self._runs)

    def __len__(self) -> int:
        """Return the number of rows, those that are over too."""
        return sum(run.rows for run in self._runs)

    @property
    def last_times(self) -> list[int]:
        """The last time of each run."""
        return [run.greatest for run in self._runs]

    @property
    def times_due(self) -> list[int]:
        """The first time of each run that is not over."""
        return [run.since for run in self._runs]

    # ---- what a call needs

    def find(self, places: Ints, first: Ints, last: Ints) -> pa.Table | None:
        """Return the rows of some places, from ``first`` to ``last``, and some others beside them.

        They come run by run, in the order in which these were written; None if there are none.
        """
        if len(places) == 0:
            return None
        since, until = int(first.min()), int(last.max())
        order = np.argsort(places)  # searching is faster in order
        places, first, last = places[order], first[order], last[order]
        parts = [
            self._load(run, self._directory(run).blocks(places, first, last))
            for run in self._runs
            if run.since <= until and since <= run.greatest
        ]
        return _together([part for part in parts if part is not None])

    def take_due(self, until: int) -> Iterator[pa.Table]:
        """Yield all rows up to a time that are not over, and take them as over.

        For rows of one place. They come in parts, in order of time.
        """
        due = [self._directory(run).time for run in self._runs if run.since <= until]
        begins = np.sort(np.concatenate([np.empty(0, np.int64), *due]))
        steps = begins[_DUE_BLOCKS::_DUE_BLOCKS]
        for step in [*np.unique(steps[steps < until]).tolist(), until]:
            rows = self._take_due(step)
            if rows is not None:
                yield rows

    def _take_due(self, until: int) -> pa.Table | None:
        found = []
        for number, run in enumerate(self._runs):
            if run.since <= until:
                rows, following = self._due(run, until)
                found.append(rows)
                self._runs[number] = replace(run, since=following)
        self.forget(until)
        self._read.clear()
        return _together(found)

    def _due(self, run: _Run, until: int) -> tuple[pa.Table, int]:
        """Return the rows up to a time that are not over, and the time of the next one."""
        directory, at = self._directory(run), np.zeros(1, np.int64)
        blocks = directory.blocks(at, np.array([run.since]), np.array([until]))
        rows = self._load(run, blocks)
        assert rows is not None, "a run has a row at the time since which it is not over"
        times, end = _times(rows), int(blocks[-1]) + 1
        following = LONG_MAX if end == run.blocks else int(directory.time[end])
        later = int(times[times > until].min(initial=following))
        return rows.filter(pa.array(times <= until)), later

    def forget(self, until: int) -> None:
        """Take the rows up to a time as over; runs that have no others are dropped."""
        over = [run for run in self._runs if run.greatest <= until]
        self._remove(over)
        self._runs = [
            run if run.since > until else replace(run, since=until + 1)
            for run in self._runs
            if run.greatest > until
        ]

    def _load(self, run: _Run, blocks: Ints) -> pa.Table | None:
        """Return what is not over in some blocks of a run; None of no blocks."""
        tables = [self._block(number) for number in (run.first + blocks).tolist()]
        rows = _together(tables)
        if rows is None or run.since <= run.least:
            return rows
        return rows.filter(pa.array(_times(rows) >= run.since))

    def _block(self, number: int) -> pa.Table:
        if number not in self._read:
            self._read[number] = self._store.load_listed(self._kind, number)
        return self._read[number]

    def _directory(self, run: _Run) -> _Directory:
        if run.blocks == 1:
            return _Directory(np.zeros(1, np.int64), np.array([run.least]), np.array([run.bytes]))
        if run.first not in self._known:
            table = self._store.load_listed(self._directories, run.first)
            columns = (table.column(name).to_numpy() for name in ("place", "time", "bytes"))
            self._known[run.first] = _Directory(*(each.astype(np.int64) for each in columns))
        return self._known[run.first]

    # ---- what a call leaves

    def append(self, rows: pa.Table) -> None:
        """Keep rows; notes tell of rows that were appended before."""
        self._write(rows, self._next)
        largest = size_of(_MOST_ROWS)
        while count := merged_together([size_of(r.rows + r.notes) for r in self._runs], largest):
            self._merge_newest(count)
        self._read.clear()

    def _merge_newest(self, count: int) -> None:
        """Put the newest runs into one."""
        first, merged = self._next, self._runs[-count:]
        tables = [self._load(run, np.arange(run.blocks)) for run in merged]
        rows = _together([table for table in tables if table is not None])
        self._remove(merged)
        del self._runs[-count:]
        if rows is not None:
            self._write(self._settled(rows), first)

    def _settled(self, rows: pa.Table) -> pa.Table:
        """Return what there is to keep of rows that are merged."""
        if partners.STATUS not in rows.column_names:
            return rows
        rows = partners.settled(rows)
        rows = rows if self._runs else partners.without_notes(rows)
        return rows if self._keeps_met else partners.waiting(rows)

    def _remove(self, runs: Sequence[_Run]) -> None:
        """Have the store forget some runs."""
        for run in runs:
            sizes = self._directory(run).bytes.tolist()
            for number, size in enumerate(sizes, run.first):
                self._store.remove(self._kind, number, held=size)
                self._read.pop(number, None)
            if run.blocks > 1:
                self._store.remove(self._directories, run.first, held=run.bytes)
                del self._known[run.first]

    @property
    def _next(self) -> int:
        """A number from which on no block has one."""
        return max((run.first + run.blocks for run in self._runs), default=0)

    def _write(self, rows: pa.Table, first: int) -> None:
        """Write the newest run, unless it has no rows; ``first``: the number of a block."""
        if len(rows) == 0:
            return
        times, places = _times(rows), self._places(rows)
        order = np.lexsort((times, places))
        rows, times, places = rows.take(pa.array(order)), times[order], places[order]
        rows = rows.combine_chunks()
        sample = rows.slice(0, _SAMPLE)
        each = max(1, len(sample) * _BLOCK_BYTES // len(to_blob(sample)))
        begins = np.arange(0, len(rows), each)
        sizes = []
        for number, begin in enumerate(begins.tolist(), first):
            blob = to_blob(rows.slice(begin, each))
            self._store.write(self._kind, number, blob, held=0)
            sizes.append(len(blob))
        if len(sizes) > 1:
            size = self._write_directory(first, places[begins], times[begins], sizes)
        else:
            size = sizes[0]
        least, greatest = int(times.min()), int(times.max())
        notes = int(np.count_nonzero(partners.are_notes(rows)))
        counts = len(sizes), len(rows) - notes, notes
        self._runs.append(_Run(first, *counts, size, least, greatest, least))

    def _write_directory(self, first: int, places: Ints, times: Ints, sizes: list[int]) -> int:
        """Write where blocks begin; return the bytes of that."""
        narrow = pa.int32()
        columns = {
            "place": pa.array(places, narrow),
            "time": times,
            "bytes": pa.array(sizes, narrow),
        }
        blob = to_blob(pa.table(columns))
        self._store.write(self._directories, first, blob, held=0)
        return len(blob)


def directory_kind(kind: str) -> str:
    """Return what a store calls the directories of runs whose blocks it calls ``kind``."""
    return f"{kind} blocks"


def directory_contents(table: pa.Table) -> Contents:
    """Tell what a directory holds."""
    return Contents({"blocks": len(table)})


def _index(runs: Sequence[_Run]) -> pa.Table:
    columns = zip(*map(astuple, runs), strict=True) if runs else [()] * len(_FIELDS)
    named = zip(_FIELDS, columns, strict=True)
    return pa.table({name: pa.array(values, pa.int64()) for name, values in named})


def _together(tables: Sequence[pa.Table]) -> pa.Table | None:
    """Put tables one after the other; which columns may be null may differ."""
    return pa.concat_tables(tables, promote_options="default") if tables else None


def _times(rows: pa.Table) -> Ints:
    times: Ints = rows.column(TIME).to_numpy().astype(np.int64, copy=False)
    return times
