"""Entries of keys in a log: a call loads those of the keys that it touches, and saves these again.

What a call saves is a run, by the hash of the key: the newest run that contains a key has all its
entries, and none if the key is gone. Which keys wait for a time is told by two tables beside it, in
order of time. A call that touches most keys writes all of them, as the only run; where several
calls in a row did, blocks are large, because a store takes as long for a small one.

It is for what has an entry by key: windows and their contents, slices of counts, first rows of a
top-N, keys of OVER and of patterns, state of user code, versions of a join. All entries of a key
are loaded together: one with 100,000 timers or rows costs as many whenever a call touches it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.buffer_spec import KeyColumns
from gpu_windows.operators.state.directory import find_split_points
from gpu_windows.operators.state.entries import (
    HASH,
    Entries,
    Lacking,
    SavedEntries,
    hashes_of,
    to_blocks,
    unify_parts,
)
from gpu_windows.operators.state.hashes import among, distinct, union, without
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.log_table import LogTable
from gpu_windows.operators.state.runs import Block, Run
from gpu_windows.operators.state.schemas import NOTHING
from gpu_windows.operators.state.stored_entries import StoredEntries
from gpu_windows.operators.state.timer_table import KEY, TimerTable
from gpu_windows.rules import LONG_MAX, LONG_MIN

__all__ = ["HASH", "TIMERS", "KeyedTable"]

Ints = NDArray[np.int64]

#: Columns that every table of entries has, beside `HASH`: the earliest timers of its key.
TIMERS = "__event", "__processing"
#: What a log calls the times of a table, of event time and of processing time.
_TIMES = (" at", " at processing time")
#: Bytes in memory of a block, about, and of a large one.
_BLOCK_BYTES, _LARGE_BYTES = 24_000, 1 << 20
#: Bytes of files that are merged at once, about.
_MERGED_BYTES = 1 << 23
#: Keys that runs may have beyond twice those that there are.
_SLACK = 4_096
#: Calls in a row that touch most keys, after which blocks are large.
_OFTEN = 4
#: Numbers that are saved.
_KEYS, _WHOLE = "keys", "calls of most keys"
_NONE = np.empty(0, np.int64)


class KeyedTable(LogTable):
    """The entries of keys, of which those of some keys are in memory.

    Parameters
    ----------
    log : StateLog
    name : str
        What the log calls it.
    count : callable, optional
        Returns what is counted of entries; default: how many there are.
    numbers : sequence of str
        Columns of numbers that no entries of two keys have: int64, or lists of these.
    key_columns : KeyColumns
        What tells the key groups of entries.
    lacking : pyarrow.Schema
        Columns that rows of earlier starts may lack.
    """

    def __init__(
        self,
        log: StateLog,
        name: str,
        count: Callable[[Entries], Mapping[str, int]] = lambda found: {"entries": len(found)},
        numbers: Sequence[str] = (),
        key_columns: KeyColumns = KeyColumns.NUMBERED,
        lacking: pa.Schema = NOTHING,
    ) -> None:
        super().__init__(log, name)
        self._lacking = Lacking(lacking, in_entries=key_columns is KeyColumns.NAMED)
        self._entries = StoredEntries(log, name, self._lacking)
        self._count, self._numbers = count, numbers
        self._key_columns = key_columns
        saved = log.all_numbers(name)
        self.keys = saved.pop(_KEYS, 0)
        self._whole = saved.pop(_WHOLE, 0)
        self.stored = Counter(saved)  # what all saved entries come to
        self._cached: Counter[str] = Counter()  # what those of them that are in memory came to
        self._loaded = self._present = _NONE  # hashes: asked for, and those that had entries
        self._is_cleared = self._has_all = self._has_grown = False
        self.saved: list[SavedEntries] = []  # what is in no run yet, from the oldest on
        self._timers = [
            TimerTable(self, log, f"{name}{suffix}", column)
            for suffix, column in zip(_TIMES, TIMERS, strict=True)
        ]

    # ---- what a call needs

    def load(self, hashes: Ints) -> Entries | None:
        """Return the entries of some keys, but of those that are in memory; None: there are none.

        Parameters
        ----------
        hashes : int64[k]
            Of the keys.
        """
        missing = without(distinct(hashes), self._loaded)
        self._loaded = union(self._loaded, missing)
        return self._note_loaded(self.find(missing))

    def load_due(self, until: int, *, in_processing_time: bool = False) -> Entries | None:
        """Return the entries of keys with a timer up to some time, but of those in memory.

        None if there are none. Up to LONG_MAX these are all entries.
        """
        if until == LONG_MAX:  # the end of time, which some wait for, and windows without an end
            entries, self._has_all = self.find_all(), True
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
        """Return the hashes of keys that may have a timer up to ``until``, before LONG_MAX.

        Each time is returned once: callers deal with all that are due.
        """
        which = int(in_processing_time)
        due = [rows.column(KEY).to_numpy() for rows in self._timers[which].take_due(until)]
        due += [each.take_due(TIMERS[which], until) for each in self.saved]
        return distinct(np.concatenate([_NONE, *due]))

    def next_timers(self) -> tuple[int | None, int | None]:
        """Return the earliest times of event time and of processing time; None: there is none.

        A time may be one that its key waits for no longer.
        """
        event, processing = (min(times.first_times, default=None) for times in self._timers)
        return event, processing

    @property
    def not_loaded(self) -> Counter[str]:
        """What those entries come to that are not in memory."""
        left = Counter(self.stored)
        left.subtract(self._cached)
        return left

    def find(self, keys: Ints) -> Entries | None:
        """Return the entries of some keys, given by their hashes; None if there are none.

        They are not noted as being in memory.
        """
        return self._entries.find(self.runs, self.saved, keys)

    def find_all(self) -> Entries | None:
        """Return all entries of all keys; None if there are none."""
        newest = self._entries.newest([*self.runs, *self.saved])
        return newest.entries if len(newest.entries) else None

    # ---- what a call leaves

    def save(self, entries: Entries) -> None:
        """Keep these entries of the keys that are in memory, and no others of them.

        Parameters
        ----------
        entries : Entries
            With the columns `HASH` and `TIMERS`.
        """
        if self._is_cleared or self._has_all:
            self.drop()
            self._present, self._is_cleared, self._has_all = _NONE, False, False
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
        """Keep these entries of some keys, and no others of them.

        Parameters
        ----------
        entries : Entries
        keys : int64[k]
            The hashes of the keys, sorted, each once; all of them were looked for.
        present : int64[j]
            Those of them that had entries, sorted.
        """
        there = distinct(hashes_of(entries))
        gone = without(present, there)
        before, self.keys = self.keys, self.keys + len(there) - len(present)
        touches_most, were_large = 4 * len(present) >= 3 * before, self._whole >= _OFTEN
        self._whole = min(self._whole + 1, _OFTEN) if touches_most else 0
        runs = self.runs
        known = sum(run.rows + run.markers for run in runs) + sum(map(len, self.saved))
        self._has_grown |= known + len(there) + len(gone) > 2 * self.keys + _SLACK
        if self.keys == 0:
            self.drop()
            return
        if not runs and not self.saved:
            gone = gone[:0]
        elif touches_most or were_large:
            others = None if len(present) == before else self._others(keys)
            self._drop_runs()
            entries = entries if others is None else Entries.concat([entries, others])
            gone = gone[:0]
        if len(entries) + len(gone):
            self.saved.append(SavedEntries.sort(entries, np.sort(gone)))
            self._merge_saved()

    def _merge_saved(self) -> None:
        """Put what is in no run yet together, so that there are few parts of it."""
        while len(self.saved) > 1 and len(self.saved[-2]) <= 2 * len(self.saved[-1]):
            merged = self._entries.newest(self.saved[-2:])
            self.saved[-2:] = [merged]

    def _others(self, keys: Ints) -> Entries | None:
        """Return the entries of all other keys; None if there are none."""
        entries = self.find_all()
        if entries is None:
            return None
        return entries.take(np.flatnonzero(~among(hashes_of(entries), keys)))

    def clear(self) -> None:
        """Forget all entries when `save` is called, but for those that it is given."""
        self._is_cleared = True
        self.stored.clear()
        self._cached.clear()

    @property
    def is_cleared(self) -> bool:
        """Whether all entries are to be forgotten."""
        return self._is_cleared

    def drop(self) -> None:
        """Forget all entries now."""
        self._drop_runs()
        self.keys = 0

    def _drop_runs(self) -> None:
        for table in (self, *self._timers):
            for run in table.runs:
                self.log.drop(run)
        self.saved, self._has_grown = [], False

    # ---- in the log

    @property
    def must_be_rewritten(self) -> bool:
        """Whether runs contain twice as many keys as there are: older entries of most of them."""
        return self._has_grown

    @property
    def new_bytes(self) -> int:
        """Bytes in memory of what is in no run yet."""
        return sum(each.nbytes for each in self.saved)

    def before_finish(self) -> None:
        """Keep the counts."""
        counts = {name: count for name, count in self.stored.items() if count}
        self.log.set_numbers(self.name, {_KEYS: self.keys, _WHOLE: self._whole, **counts})

    def note_written(self) -> None:
        """Forget what was saved: it is in a run."""
        self.saved, self._has_grown = [], False
        self._loaded = self._present = _NONE
        self._cached.clear()

    def merge(self, runs: Sequence[Run], *, with_new: bool, are_oldest: bool) -> Iterator[Block]:
        """Yield what the newest of some runs has of each key; note the times of these."""
        sources: list[Run | SavedEntries] = [*runs, *(self.saved if with_new else [])]
        for timers in self._timers:
            timers.begin_merge()
        splits = find_split_points([self.log.directory(run) for run in runs], _MERGED_BYTES)
        size = _LARGE_BYTES if self._whole >= _OFTEN else _BLOCK_BYTES
        schemas, low = self._schemas(sources), LONG_MIN
        for high in [*dict.fromkeys(place for place, _ in splits), LONG_MAX]:
            newest = self._entries.newest(sources, low, high)
            low = high
            gone = newest.gone[:0] if are_oldest else newest.gone
            entries = self._select_rescaled(newest.entries)
            if len(entries):
                for timers in self._timers:
                    timers.note_merged(entries)
            yield from to_blocks(SavedEntries(entries, gone), schemas, size)

    def _schemas(self, sources: Sequence[Run | SavedEntries]) -> list[pa.Schema]:
        """Return the schemas of the tables of the blocks of some runs."""
        return unify_parts(
            self._lacking.fill_schemas(self.log.directory(each).schemas)
            if isinstance(each, Run)
            else each.schemas
            for each in sources
        )

    def _select_rescaled(self, entries: Entries) -> Entries:
        """Return the entries that another number of shards takes, if there is another one."""
        rescaling = self.log.rescaling
        if rescaling is None or not len(entries):
            return entries
        selected = rescaling.select(entries.table, self._key_columns)
        entries = entries.take(np.flatnonzero(selected))
        entries = Entries(rescaling.shift(entries.table, self._numbers), entries.kept)
        counts = Counter(self._count(entries))
        counts[_KEYS] += len(distinct(hashes_of(entries)))
        rescaling.counts.setdefault(self.name, Counter()).update(counts)
        return entries
