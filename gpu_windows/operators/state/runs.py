"""Entries of keys in a store, as a log-structured tree: a call appends those that it has changed.

What a call leaves of the keys that it touched is a *run*: blocks of some kilobytes, by the hash of
the key. Of a key the newest run that knows it holds all there is. So a call reads a block of each
run for a key that it needs, and runs are merged, the newest ones first, so that they stay few. One
of many blocks has a filter, by which a call that needs many keys leaves out those that the run does
not know. When the next timer of a key is due is told by a list beside each run, in order of time.

A call that touches most keys writes all anew, as one run. Where several calls in a row did, blocks
are large, for a store takes as long for a small one.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.entries import Entries
from gpu_windows.operators.state.hashes import (
    among,
    distinct,
    part_of,
    union,
    unsigned,
    without,
)
from gpu_windows.operators.state.key_filters import KeyFilter
from gpu_windows.operators.state.run_index import INDEX, Kinds, Run, record_of, run_of
from gpu_windows.operators.state.store import Store, to_blob
from gpu_windows.operators.state.tiers import merged_together, size_of
from gpu_windows.operators.state.timer_lists import TimerList
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: Columns that every table of entries has: the hash of its key, and its earliest timers.
HASH, TIMERS = "__hash", ("__event", "__processing")
#: What the metadata of a block tells: the hashes of keys that have no entry any more.
_GONE = b"gone"
#: Bytes of a block, about, and entries of a table that tell how large they are.
_BLOCK_BYTES, _SAMPLE = 7_000, 4_096
#: Blocks of a run from which on it has a filter of its keys.
_FILTERED = 16
#: Bytes that tell of a key that is gone.
_GONE_BYTES = 11
#: Keys that runs may know beyond twice those that there are.
_SLACK = 4_096
#: Calls in a row that touch most keys, after which blocks are large; and the bytes of these.
_OFTEN, _LARGE_BYTES = 4, 1 << 18
#: What the metadata of an index tells: how many calls in a row have touched most keys.
_WHOLE = b"calls of most keys"


class KeyRuns:
    """The entries of keys in a store.

    Parameters
    ----------
    store : Store
    kinds : Kinds
        What the store calls its blobs.
    index : pyarrow.Table
        What it holds of them, as `index` gave it.
    keys : int
        How many keys have entries.
    """

    def __init__(self, store: Store, kinds: Kinds, index: pa.Table, keys: int) -> None:
        self._store, self._kinds = store, kinds
        self.keys = keys
        self._whole = int((index.schema.metadata or {}).get(_WHOLE, 0))
        self._runs = [run_of(each, kinds) for each in index.to_pylist()]  # from the oldest on

    @staticmethod
    def nothing() -> pa.Table:
        """Return the index of an empty store."""
        return INDEX.empty_table()

    def index(self) -> pa.Table:
        """Return what the store holds now."""
        records = [record_of(run) for run in self._runs]
        told = {_WHOLE: str(self._whole).encode()}
        return pa.Table.from_pylist(records, INDEX).replace_schema_metadata(told)

    # ---- what a call needs

    def find(self, keys: Ints) -> Entries | None:
        """Return all entries of some keys, given by their hashes; None if there are none."""
        missing, found = distinct(keys), []
        for run in reversed(self._runs):
            if len(missing) == 0:
                break
            part, known = self._find_in(run, missing)
            missing = without(missing, known)
            found += [part] if part is not None and len(part) else []
        return Entries.together(found) if found else None

    def _find_in(self, run: Run, keys: Ints) -> tuple[Entries | None, Ints]:
        """Return the entries that a run has of some keys, and of which of them it knows."""
        blocks = distinct(part_of(keys, run.blocks))
        if run.filter.is_worth_it(keys, len(blocks)):
            keys = run.filter.may_have(self._store, keys)
            blocks = distinct(part_of(keys, run.blocks))
        if len(blocks) == 0:
            return None, keys
        part, gone = self._load(run, blocks, keys)
        hashes = _hashes(part)
        mine = np.flatnonzero(among(hashes, keys))
        known = union(hashes[mine], gone[among(gone, keys)])
        return part.take(mine), known

    def everything(self) -> Entries | None:
        """Return all entries of all keys; None if there are none."""
        entries, _ = self._newest(self._runs)
        return entries if entries is not None and len(entries) else None

    def take_due(self, until: int, *, in_processing_time: bool) -> Ints:
        """Return the hashes of keys that may have a timer up to ``until``, before LONG_MAX.

        A run tells its times once: who asks has to deal with all that are due.
        """
        which, found = int(in_processing_time), [np.empty(0, np.int64)]
        for number, run in enumerate(self._runs):
            if run.timers[which].next <= until:
                keys, rest = run.timers[which].due(self._store, until)
                timers = tuple(rest if i == which else t for i, t in enumerate(run.timers))
                self._runs[number] = replace(run, timers=timers)
                found.append(keys)
        return distinct(np.concatenate(found))

    def next_timers(self) -> tuple[int, int]:
        """Return the earliest times of event time and of processing time; LONG_MAX is none.

        A time may be one that its key waits for no more.
        """
        event, processing = (
            min((run.timers[which].next for run in self._runs), default=LONG_MAX)
            for which in range(len(TIMERS))
        )
        return event, processing

    def _load(self, run: Run, blocks: Ints, keys: Ints | None = None) -> tuple[Entries, Ints]:
        """Return the entries in some blocks of a run, and the keys that are gone.

        ``keys``: those that are needed, some of each block; entries of others may be missing.
        """
        parts, gone = [], []
        ranges = repeat(None) if keys is None else _ranges(keys, run.blocks)
        for number, needed in zip((run.first + blocks).tolist(), ranges, strict=False):
            table = self._store.load_listed(self._kinds.blocks, number)
            rows = self._store.load_listed(self._kinds.rows, number) if run.keeps_rows else None
            part = Entries(table, rows)
            parts.append(part if needed is None else _within(part, *needed))
            gone.append(np.frombuffer(b64decode(table.schema.metadata[_GONE]), np.int64))
        return Entries.together(parts), np.concatenate(gone)

    # ---- what a call leaves

    def save(self, entries: Entries, keys: Ints, known: Ints) -> None:
        """Have these entries of some keys, and no others of them.

        Parameters
        ----------
        entries : Entries
            With the columns `HASH` and `TIMERS`.
        keys : int64[k]
            The hashes of the keys, sorted, each once; all of them were looked for.
        known : int64[j]
            Those of them that had entries, sorted.
        """
        there = distinct(_hashes(entries))
        gone = without(known, there)
        before, self.keys = self.keys, self.keys + len(there) - len(known)
        touches_most, were_large = 4 * len(known) >= 3 * before, self._whole >= _OFTEN
        self._whole = min(self._whole + 1, _OFTEN) if touches_most else 0
        grown = self._known + len(there) + len(gone) > 2 * self.keys + _SLACK
        if self.keys == 0:
            self.clear()
        elif not self._runs:
            self._write(entries, gone[:0], 0)
        elif touches_most or were_large or grown:
            self._write_anew(entries, None if len(known) == before else self._rest(keys))
        else:
            self._write(entries, gone, self._next)
            self._merge()

    def _write_anew(self, entries: Entries, rest: Entries | None) -> None:
        """Write these entries, and those of all other keys, as the only run."""
        first = self._next
        self._forget(len(self._runs))
        whole = entries if rest is None else Entries.together([entries, rest])
        self._write(whole, np.empty(0, np.int64), first)

    def clear(self) -> None:
        """Forget everything."""
        self._forget(len(self._runs))
        self.keys = 0

    def _merge(self) -> None:
        """Merge the newest runs where many are of a size."""
        while count := merged_together([size_of(run.keys) for run in self._runs]):
            self._merge_newest(count)

    def _merge_newest(self, count: int) -> None:
        """Put the newest runs into one."""
        first = self._next
        entries, gone = self._newest(self._runs[-count:])
        assert entries is not None
        self._forget(count)
        self._write(entries, gone if self._runs else gone[:0], first)

    def _rest(self, keys: Ints) -> Entries | None:
        """Return the entries of all other keys; None if there are none."""
        found = self.everything()
        return None if found is None else found.take(np.flatnonzero(~among(_hashes(found), keys)))

    def _newest(self, runs: list[Run]) -> tuple[Entries | None, Ints]:
        """Return of each key what the newest of some runs has, and the keys that are gone."""
        none = np.empty(0, np.int64)
        parts, known, gone = [], none, [none]
        for run in reversed(runs):
            part, removed = self._load(run, np.arange(run.blocks))
            hashes = _hashes(part)
            parts.append(part.take(np.flatnonzero(~among(hashes, known))))
            gone.append(without(removed, known))
            known = union(np.concatenate([hashes, removed]), known)
        return Entries.together(parts) if parts else None, np.concatenate(gone)

    def _forget(self, count: int) -> None:
        """Forget the newest runs."""
        for run in self._runs[len(self._runs) - count :]:
            for number in range(run.first, run.first + run.blocks):
                self._store.remove(self._kinds.blocks, number)
                if run.keeps_rows:
                    self._store.remove(self._kinds.rows, number)
            for timers in run.timers:
                timers.remove(self._store)
            run.filter.remove(self._store)
        del self._runs[len(self._runs) - count :]

    @property
    def _known(self) -> int:
        """How many keys runs know, those that are gone or are known twice too."""
        return sum(run.keys for run in self._runs)

    @property
    def _next(self) -> int:
        """A number from which on no blob has one."""
        return max((run.end for run in self._runs), default=0)

    def _write(self, entries: Entries, gone: Ints, first: int) -> None:
        """Write the newest run, unless it would be of nothing; ``first``: the number of a block."""
        if len(entries) + len(gone) == 0:
            return
        size = _LARGE_BYTES if self._whole >= _OFTEN else _BLOCK_BYTES
        count = _blocks_for(entries, gone, size)
        order = np.argsort(unsigned(_hashes(entries)), kind="stable")
        entries, gone = entries.take(order), gone[np.argsort(unsigned(gone))]
        hashes = _hashes(entries)
        blocks = np.arange(count + 1)
        edges = np.searchsorted(part_of(hashes, count), blocks)
        edges_gone = np.searchsorted(part_of(gone, count), blocks)
        keeps_rows = entries.kept is not None and len(entries.kept) > 0
        for number in range(count):
            part = entries.take(np.arange(edges[number], edges[number + 1]))
            removed = gone[edges_gone[number] : edges_gone[number + 1]]
            metadata = {_GONE: b64encode(removed.tobytes())}
            blobs = {self._kinds.blocks: part.table.replace_schema_metadata(metadata)}
            if keeps_rows:
                blobs[self._kinds.rows] = part.kept
            for kind, table in blobs.items():
                self._store.write(kind, first + number, to_blob(table), held=0)
        begins = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
        keys = hashes[begins]
        timers = []
        for name, kind in zip(TIMERS, self._kinds.timers, strict=True):
            times = _earliest(entries.table.column(name).to_numpy(), begins)
            timers.append(TimerList.write(self._store, kind, first, times, keys))
        known = union(keys, gone)
        key_filter = KeyFilter(self._kinds.filters, first)
        if count >= _FILTERED:
            key_filter = key_filter.write(self._store, self._kinds.filters, first, known)
        self._runs.append(Run(first, count, len(known), keeps_rows, tuple(timers), key_filter))


def _hashes(entries: Entries) -> Ints:
    hashes: Ints = entries.table.column(HASH).to_numpy()
    return hashes


def _ranges(keys: Ints, count: int) -> Iterator[tuple[np.uint64, np.uint64]]:
    """Yield the first and the last of some keys in each block that has any, of so many blocks."""
    sorted_keys = np.sort(unsigned(keys))
    blocks = part_of(sorted_keys.view(np.int64), count)
    begins = np.flatnonzero(np.diff(blocks, prepend=-1))
    ends = np.append(begins[1:], len(keys))
    return zip(sorted_keys[begins], sorted_keys[ends - 1], strict=True)


def _within(block: Entries, first: np.uint64, last: np.uint64) -> Entries:
    """Return the entries of a block from one key to another: a few of some hundreds."""
    hashes = unsigned(_hashes(block))
    begin, end = np.searchsorted(hashes, first), np.searchsorted(hashes, last, "right")
    return block.slice(int(begin), int(end - begin))


def _earliest(times: Ints, begins: Ints) -> Ints:
    """Return the earliest time of each key, whose entries begin there."""
    return np.minimum.reduceat(times, begins) if len(begins) else times


def _blocks_for(entries: Entries, gone: Ints, block: int) -> int:
    """Return how many blocks are about as large as they should be, in bytes."""
    of_gone = len(gone) * _GONE_BYTES // block + 1
    if len(entries) == 0:
        return of_gone
    some = entries.take(np.arange(min(len(entries), _SAMPLE)))
    size = len(to_blob(some.table)) + (0 if some.kept is None else len(to_blob(some.kept)))
    keys = len(distinct(_hashes(entries)))  # all of a key is in one block
    return max(of_gone, min(keys, size * len(entries) // len(some) // block))
