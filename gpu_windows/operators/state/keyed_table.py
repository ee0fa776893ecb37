"""Entries of keys in a log: a call loads those of the keys that it touches, and saves them again.

A call writes one run, sorted by the hash of the key. The newest run that contains a key has all of
its entries, or a tombstone if the key was deleted. Two further tables have the timers of keys, in
order of time. A call that touches most keys rewrites all of them into a single run; after several
such calls in a row blocks are large, because a request to a store takes as long for a small one.

Users: windows and their contents, slices of counts, rows of a top-N, keys of OVER and of patterns,
state of user code, versions of a join. All entries of a key are loaded together: a key with 100,000
timers or rows costs that many whenever a call touches it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.block_index import find_split_points
from gpu_windows.operators.state.buffer_spec import KeyColumns
from gpu_windows.operators.state.entries import (
    HASH,
    Entries,
    MissingColumns,
    RunContents,
    hashes_of,
    to_blocks,
    unify_parts,
)
from gpu_windows.operators.state.hashes import among, distinct, union, without
from gpu_windows.operators.state.log import LogTable, StateLog
from gpu_windows.operators.state.runs import Block, Run
from gpu_windows.operators.state.schemas import NOTHING
from gpu_windows.operators.state.stored_entries import StoredEntries
from gpu_windows.operators.state.timer_table import KEY, TimerTable
from gpu_windows.rules import LONG_MAX, LONG_MIN

__all__ = ["HASH", "TIMERS", "KeyedTable"]

Ints = NDArray[np.int64]

#: Columns that every table of entries has, beside `HASH`: the earliest timers of its key.
TIMERS = "__event", "__processing"
#: Suffixes of the names of the timer tables, of event time and of processing time.
_TIMES = (" at", " at processing time")
#: Bytes in memory of a block, about, and of a large one.
_BLOCK_BYTES, _LARGE_BYTES = 24_000, 1 << 20
#: Bytes of files that are merged at once, about.
_MERGED_BYTES = 1 << 23
#: Keys that runs may contain in excess of twice the number of live keys.
_SLACK = 4_096
#: Calls in a row that touch most keys, after which blocks are large.
_OFTEN = 4
#: Names of numbers saved in the log.
_KEYS, _WHOLE = "keys", "calls of most keys"
_NONE = np.empty(0, np.int64)


class KeyedTable(LogTable):
    """Entries of keys in a log; it tracks which keys are loaded.

    Parameters
    ----------
    log : StateLog
    name : str
        Of the table in the log.
    count : callable, optional
        Returns counts of entries, by name; default: the number of entries.
    numbers : sequence of str
        Columns of numbers that are unique among keys: int64, or lists of these.
    key_columns : KeyColumns
        How key groups are identified.
    lacking : pyarrow.Schema
        Columns that state of earlier starts may lack.
    """

    def __init__(
        self,
        log: StateLog,
        name: str,
        count: Callable[[Entries], Mapping[str, int]] = lambda found: {"entries": len(found)},
        numbers: Sequence[str] = (),
        key_columns: KeyColumns = KeyColumns.BY_NUMBER,
        lacking: pa.Schema = NOTHING,
    ) -> None:
        super().__init__(log, name)
        self._missing_columns = MissingColumns(
            lacking, in_entries=key_columns is KeyColumns.BY_NAME
        )
        self._entries = StoredEntries(log, name, self._missing_columns)
        self._count, self._numbers = count, numbers
        self._key_columns = key_columns
        saved = log.all_numbers(name)
        self.keys = saved.pop(_KEYS, 0)
        self._whole = saved.pop(_WHOLE, 0)
        self.stored = Counter(saved)  # counts of all saved entries
        self._cached: Counter[str] = Counter()  # counts of the loaded ones, when they were loaded
        self._loaded = self._present = _NONE  # hashes: of loaded keys, and those that had entries
        self._is_cleared = self._is_fully_loaded = self._has_grown = False
        self.new_contents: list[RunContents] = []  # saved, but in no run yet; oldest first
        self._timers = [
            TimerTable(self, log, f"{name}{suffix}", column)
            for suffix, column in zip(_TIMES, TIMERS, strict=True)
        ]

    # ---- loading

    def load(self, hashes: Ints) -> Entries | None:
        """Return the entries of keys that are not loaded yet, and mark them as loaded; or None.

        Parameters
        ----------
        hashes : int64[k]
            Of the keys.
        """
        missing = without(distinct(hashes), self._loaded)
        self._loaded = union(self._loaded, missing)
        return self._note_loaded(self.find(missing))

    def load_due(self, until: int, *, in_processing_time: bool = False) -> Entries | None:
        """Return the entries of keys with a timer up to some time that are not loaded yet, or None.

        Up to LONG_MAX these are all entries.
        """
        if until == LONG_MAX:  # some timers are for the end of time, as of windows without an end
            entries, self._is_fully_loaded = self.find_all(), True
        else:
            entries = self.find(self.take_due(until, in_processing_time=in_processing_time))
        if entries is None:
            return None
        hashes = hashes_of(entries)
        times = entries.table.column(TIMERS[int(in_processing_time)]).to_numpy()
        keys = without(distinct(hashes[times <= until]), self._loaded)
        self._loaded = union(self._loaded, keys)
        return self._note_loaded(entries.take(np.flatnonzero(among(hashes, keys))))

    def _note_loaded(self, entries: Entries | None) -> Entries | None:
        if entries is None or len(entries) == 0:
            return None
        self._present = union(self._present, hashes_of(entries))
        self._cached.update(self._count(entries))
        return entries

    def take_due(self, until: int, *, in_processing_time: bool = False) -> Ints:
        """Return the hashes of keys that may have a timer up to ``until``, which is below LONG_MAX.

        Each timer is returned once: callers must handle all of them.
        """
        which = int(in_processing_time)
        due = [rows.column(KEY).to_numpy() for rows in self._timers[which].take_due(until)]
        due += [each.take_due(TIMERS[which], until) for each in self.new_contents]
        return distinct(np.concatenate([_NONE, *due]))

    def next_timers(self) -> tuple[int | None, int | None]:
        """Return the earliest timers of event time and of processing time, or None.

        A timer may be stale: its key may have deleted it.
        """
        event, processing = (min(times.first_times, default=None) for times in self._timers)
        return event, processing

    @property
    def not_loaded(self) -> Counter[str]:
        """Counts of the entries that are not loaded."""
        left = Counter(self.stored)
        left.subtract(self._cached)
        return left

    def find(self, keys: Ints) -> Entries | None:
        """Return the entries of keys, given by hashes, or None; they do not count as loaded."""
        return self._entries.find(self.runs, self.new_contents, keys)

    def find_all(self) -> Entries | None:
        """Return the entries of all keys, or None."""
        newest = self._entries.newest([*self.runs, *self.new_contents])
        return newest.entries if len(newest.entries) else None

    # ---- saving

    def save(self, entries: Entries) -> None:
        """Replace the entries of the loaded keys.

        Parameters
        ----------
        entries : Entries
            With the columns `HASH` and `TIMERS`.
        """
        if self._is_cleared or self._is_fully_loaded:
            self.drop()
            self._present, self._is_cleared, self._is_fully_loaded = _NONE, False, False
        hashes = distinct(hashes_of(entries))
        if self.keys:
            assert among(hashes, self._loaded).all(), "keys are loaded before they change"
        self._loaded = union(self._loaded, hashes)
        self.put(entries, self._loaded, self._present)
        counts = Counter(self._count(entries))
        self.stored.subtract(self._cached)
        self.stored.update(counts)
        self._present, self._cached = hashes, counts

    def put(self, entries: Entries, keys: Ints, present: Ints) -> None:
        """Replace the entries of some keys.

        Parameters
        ----------
        entries : Entries
        keys : int64[k]
            The hashes of the keys, sorted, each once; all of them were looked up.
        present : int64[j]
            Those of them that had entries, sorted.
        """
        there = distinct(hashes_of(entries))
        deleted = without(present, there)
        before, self.keys = self.keys, self.keys + len(there) - len(present)
        is_rewrite, were_large = 4 * len(present) >= 3 * before, self._whole >= _OFTEN
        self._whole = min(self._whole + 1, _OFTEN) if is_rewrite else 0
        runs = self.runs
        in_runs = sum(run.rows + run.markers for run in runs) + sum(map(len, self.new_contents))
        self._has_grown |= in_runs + len(there) + len(deleted) > 2 * self.keys + _SLACK
        if self.keys == 0:
            self.drop()
            return
        if not runs and not self.new_contents:
            deleted = deleted[:0]
        elif is_rewrite or were_large:
            others = None if len(present) == before else self._others(keys)
            self._drop_runs()
            entries = entries if others is None else Entries.concat([entries, others])
            deleted = deleted[:0]
        if len(entries) + len(deleted):
            self.new_contents.append(RunContents.sort(entries, np.sort(deleted)))
            self._merge_new_contents()

    def _merge_new_contents(self) -> None:
        """Merge new contents of similar size, so that there are few of them."""
        while len(self.new_contents) > 1 and len(self.new_contents[-2]) <= 2 * len(
            self.new_contents[-1]
        ):
            merged = self._entries.newest(self.new_contents[-2:])
            self.new_contents[-2:] = [merged]

    def _others(self, keys: Ints) -> Entries | None:
        """Return the entries of all other keys, or None."""
        entries = self.find_all()
        if entries is None:
            return None
        return entries.take(np.flatnonzero(~among(hashes_of(entries), keys)))

    def clear(self) -> None:
        """Make the next `save` delete all other entries."""
        self._is_cleared = True
        self.stored.clear()
        self._cached.clear()

    def drop(self) -> None:
        """Delete all entries now."""
        self._drop_runs()
        self.keys = 0

    def _drop_runs(self) -> None:
        for table in (self, *self._timers):
            for run in table.runs:
                self.log.drop(run)
        self.new_contents, self._has_grown = [], False

    # ---- in the log

    @property
    def needs_full_compaction(self) -> bool:
        """Whether runs contain more than twice the live keys, because of superseded entries."""
        return self._has_grown

    @property
    def new_bytes(self) -> int:
        """Bytes in memory of new contents."""
        return sum(each.nbytes for each in self.new_contents)

    def before_finish(self) -> None:
        """Save the counts."""
        counts = {name: count for name, count in self.stored.items() if count}
        self.log.set_numbers(self.name, {_KEYS: self.keys, _WHOLE: self._whole, **counts})

    def note_written(self) -> None:
        """Drop the new contents, which are in a run now."""
        self.new_contents, self._has_grown = [], False
        self._loaded = self._present = _NONE
        self._cached.clear()

    def merge(self, runs: Sequence[Run], *, with_new: bool, are_oldest: bool) -> Iterator[Block]:
        """Yield the newest entries of each key as blocks; pass their timers to the timer tables."""
        sources: list[Run | RunContents] = [*runs, *(self.new_contents if with_new else [])]
        for timers in self._timers:
            timers.begin_merge()
        splits = find_split_points([self.log.block_index(run) for run in runs], _MERGED_BYTES)
        size = _LARGE_BYTES if self._whole >= _OFTEN else _BLOCK_BYTES
        schemas, low = self._schemas(sources), LONG_MIN
        for high in [*dict.fromkeys(prefix for prefix, _ in splits), LONG_MAX]:
            newest = self._entries.newest(sources, low, high)
            low = high
            tombstones = newest.tombstones[:0] if are_oldest else newest.tombstones
            entries = self._select_rescaled(newest.entries)
            if len(entries):
                for timers in self._timers:
                    timers.note_merged(entries)
            yield from to_blocks(RunContents(entries, tombstones), schemas, size)

    def _schemas(self, sources: Sequence[Run | RunContents]) -> list[pa.Schema]:
        """Return the schemas of the tables of the blocks of some runs."""
        return unify_parts(
            self._missing_columns.fill_schemas(self.log.block_index(each).schemas)
            if isinstance(each, Run)
            else each.schemas
            for each in sources
        )

    def _select_rescaled(self, entries: Entries) -> Entries:
        """Return the entries that a new shard takes, when the number of shards changes."""
        rescaling = self.log.rescaling
        if rescaling is None or not len(entries):
            return entries
        selected = rescaling.select(entries.table, self._key_columns)
        entries = entries.take(np.flatnonzero(selected))
        entries = Entries(rescaling.shift(entries.table, self._numbers), entries.rows)
        counts = Counter(self._count(entries))
        counts[_KEYS] += len(distinct(hashes_of(entries)))
        rescaling.counts.setdefault(self.name, Counter()).update(counts)
        return entries
