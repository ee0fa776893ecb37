"""Rows in a store by place and time, as a log-structured tree: a call appends those that came.

What a call appends is a *run*: rows in the order of their places (of the hash of a key, or one for
all) and, at a place, of time. A run is cut into blocks of some kilobytes, and its directory says
which begins where. So who looks for the rows of a place between two times reads a few blocks of
each run, however many rows the place has. Runs are merged, the newest ones first, so that they stay
few; a run that is over is forgotten unread.

Rows are over up to a time, or are taken: of each run it is known how many were. A run of which all
were is forgotten unread; one of which some were is written again by who knows which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.directory import Directory, directory_kind
from gpu_windows.operators.state.store import Store, to_blob
from gpu_windows.operators.state.tiers import merged_together, size_of
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Bits of a hash that are a place: the upper ones, for the lower ones chose the shard.
_BITS = 31
#: Bytes of a block, about, and rows of a run that tell how large they are.
_BLOCK_BYTES, _SAMPLE = 7_000, 4_096
#: Of rows that are read in order of time: blocks of a run, about, where that makes them larger, and
#: bytes that they have at most.
_BLOCKS_IN_ORDER, _LARGE_BYTES = 64, 1 << 18
#: As many blocks are few: of them a call may read most and touch little.
_FEW_BLOCKS = 32
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
    taken : int
        How many rows were taken.
    """

    first: int
    blocks: int
    rows: int
    notes: int
    bytes: int
    least: int
    greatest: int
    since: int
    taken: int = 0


_FIELDS = tuple(field.name for field in fields(_Run))


def _all(rows: pa.Table, *, are_oldest: bool) -> pa.Table:
    del are_oldest
    return rows


def _none(rows: pa.Table) -> Flags:
    return np.zeros(len(rows), np.bool_)


class Settle(Protocol):
    """Tells what there is to keep of rows that are merged."""

    def __call__(self, rows: pa.Table, *, are_oldest: bool) -> pa.Table:
        """Return it; ``are_oldest``: whether there are no older rows."""


@dataclass(frozen=True)
class RowKind:
    """What is to be known of rows.

    Parameters
    ----------
    time : str
        The column of their times, int64.
    places : callable
        Tells their places: int64[n].
    settle : callable, optional
        Default: all rows are kept.
    are_notes : callable, optional
        Tells which are notes of other rows; default: none are.
    in_order : bool
        Whether they are read in order of time only, those of all places together: then a large run
        has large blocks, for a store takes as long for a small one.
    learns : bool
        Whether a call that has read most blocks writes large ones, for the next one may, too.
    """

    time: str
    places: Callable[[pa.Table], Ints]
    settle: Settle = _all
    are_notes: Callable[[pa.Table], Flags] = _none
    in_order: bool = False
    learns: bool = False


def places_of(hashes: Ints) -> Ints:
    """Return the places of keys, given by their hashes: int64[n], from 0 on, below 2^31."""
    upper = np.ascontiguousarray(hashes).view(np.uint64) >> np.uint64(64 - _BITS)
    return upper.astype(np.int64)


def one_place(rows: pa.Table) -> Ints:
    """Return the place of rows that are read by time alone: int64[n]."""
    return np.zeros(len(rows), np.int64)


class RowRuns:
    """The rows of a store that are of one kind.

    Parameters
    ----------
    store : Store
    kind : str
        What the store calls its blocks.
    index : pyarrow.Table
        What it holds of them, as `index` gave it.
    of : RowKind
    """

    def __init__(self, store: Store, kind: str, index: pa.Table, of: RowKind) -> None:
        self._store, self._kind, self._directories = store, kind, directory_kind(kind)
        self._of = of
        known = [name for name in _FIELDS if name in index.column_names]  # once none were taken
        columns = (index.column(name).to_pylist() for name in known)
        self._runs = [_Run(*each) for each in zip(*columns, strict=True)]  # from the oldest on
        self._read: dict[int, pa.Table] = {}  # blocks that were read, by their numbers
        self._blocks = sum(run.blocks for run in self._runs)  # before the call
        self._asked: set[int] = set()  # blocks that the call has asked for, by their numbers
        self._known: dict[int, Directory] = {}  # directories, by the numbers of first blocks

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
        return _together([rows for _, rows in self._found(places, first, last)])

    def take(
        self, places: Ints, first: Ints, last: Ints, wanted: Callable[[pa.Table], Flags]
    ) -> pa.Table | None:
        """Take those of the rows that `find` would return that are wanted; None if there are none.

        They must not be wanted again.
        """
        taken = []
        for number, rows in self._found(places, first, last):
            mine, run = rows.filter(pa.array(wanted(rows))), self._runs[number]
            self._runs[number] = replace(run, taken=run.taken + len(mine))
            taken.append(mine)
        self._drop([run for run in self._runs if 0 < run.taken == run.rows])
        self._read.clear()
        return _together(taken)

    def _found(self, places: Ints, first: Ints, last: Ints) -> Iterator[tuple[int, pa.Table]]:
        """Yield the number of a run and what `find` returns of it."""
        if len(places) == 0:
            return
        since, until = int(first.min()), int(last.max())
        order = np.argsort(places)  # searching is faster in order
        places, first, last = places[order], first[order], last[order]
        for number, run in enumerate(self._runs):
            if run.since <= until and since <= run.greatest:
                blocks = self._directory(run).blocks(places, first, last)
                self._asked.update((run.first + blocks).tolist())
                rows = self._load(run, blocks)
                if rows is not None:
                    yield number, rows

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
        times, end = self._times(rows), int(blocks[-1]) + 1
        following = LONG_MAX if end == run.blocks else int(directory.time[end])
        later = int(times[times > until].min(initial=following))
        return rows.filter(pa.array(times <= until)), later

    def forget(self, until: int) -> None:
        """Take the rows up to a time as over; runs that have no others are dropped."""
        self._drop([run for run in self._runs if run.greatest <= until])
        self._runs = [
            run if run.since > until else replace(run, since=until + 1) for run in self._runs
        ]

    def _load(self, run: _Run, blocks: Ints) -> pa.Table | None:
        """Return what is not over in some blocks of a run; None of no blocks."""
        tables = [self._block(number) for number in (run.first + blocks).tolist()]
        rows = _together(tables)
        if rows is None or run.since <= run.least:
            return rows
        return rows.filter(pa.array(self._times(rows) >= run.since))

    def _block(self, number: int) -> pa.Table:
        if number not in self._read:
            self._read[number] = self._store.load_listed(self._kind, number)
        return self._read[number]

    def _directory(self, run: _Run) -> Directory:
        if run.blocks == 1:
            return Directory(np.zeros(1, np.int64), np.array([run.least]), np.array([run.bytes]))
        if run.first not in self._known:
            table = self._store.load_listed(self._directories, run.first)
            columns = (table.column(name).to_numpy() for name in ("place", "time", "bytes"))
            self._known[run.first] = Directory(*(each.astype(np.int64) for each in columns))
        return self._known[run.first]

    # ---- what a call leaves

    @property
    def taken(self) -> int:
        """How many rows were taken and are in the store."""
        return sum(run.taken for run in self._runs)

    def append(self, rows: pa.Table) -> None:
        """Keep rows; notes tell of rows that were appended before."""
        self._runs += self._write(rows, self._next)
        largest = size_of(_MOST_ROWS)
        while count := merged_together([size_of(r.rows + r.notes) for r in self._runs], largest):
            self._merge_newest(count)
        self._read.clear()

    def _merge_newest(self, count: int) -> None:
        """Put the newest runs into one."""
        first, merged = self._next, self._runs[-count:]
        tables = [self._load(run, np.arange(run.blocks)) for run in merged]
        rows = _together([table for table in tables if table is not None])
        self._drop(merged)
        if rows is not None:
            rows = self._of.settle(rows, are_oldest=not self._runs)
            taken = sum(run.taken for run in merged)
            self._runs += self._write(rows, first, taken=taken)

    def leave_out_taken(self, wanted: Callable[[pa.Table], Flags]) -> None:
        """Write the runs again of which rows were taken; ``wanted`` tells which were not."""
        for run in [run for run in self._runs if run.taken]:
            place, first = self._runs.index(run), self._next
            rows = self._load(run, np.arange(run.blocks))
            assert rows is not None, "a run has blocks"
            self._drop([run])
            self._runs[place:place] = self._write(rows.filter(pa.array(wanted(rows))), first)
        self._read.clear()

    def _drop(self, runs: Sequence[_Run]) -> None:
        """Have the store forget some runs."""
        self._runs = [run for run in self._runs if run not in runs]
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

    def _write(self, rows: pa.Table, first: int, *, taken: int = 0) -> list[_Run]:
        """Write a run, unless it has no rows; ``first``: the number of a block."""
        if len(rows) == 0:
            return []
        times, places = self._times(rows), self._of.places(rows)
        order = np.lexsort((times, places))
        rows, times, places = rows.take(pa.array(order)), times[order], places[order]
        rows = rows.combine_chunks()
        sample = rows.slice(0, _SAMPLE)
        of_sample = len(to_blob(sample))
        block = self._block_bytes(of_sample * len(rows) // len(sample))
        each = max(1, len(sample) * block // of_sample)
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
        notes = int(np.count_nonzero(self._of.are_notes(rows)))
        counts = len(sizes), len(rows) - notes, notes
        return [_Run(first, *counts, size, least, greatest, least, taken)]

    def _block_bytes(self, size: int) -> int:
        """Return about how many bytes a block of a run of so many has."""
        read_most = self._of.learns and 2 * len(self._asked) > max(self._blocks, _FEW_BLOCKS)
        if not self._of.in_order and not read_most:
            return _BLOCK_BYTES
        return max(_BLOCK_BYTES, min(size // _BLOCKS_IN_ORDER, _LARGE_BYTES))

    def _times(self, rows: pa.Table) -> Ints:
        times: Ints = rows.column(self._of.time).to_numpy().astype(np.int64, copy=False)
        return times

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


def _index(runs: Sequence[_Run]) -> pa.Table:
    columns = zip(*map(astuple, runs), strict=True) if runs else [()] * len(_FIELDS)
    named = zip(_FIELDS, columns, strict=True)
    return pa.table({name: pa.array(values, pa.int64()) for name, values in named})


def _together(tables: Sequence[pa.Table]) -> pa.Table | None:
    """Put tables one after the other; which columns may be null may differ."""
    return pa.concat_tables(tables, promote_options="default") if tables else None
