"""Entries of keys as a table, the rows that they keep, and both as the blocks of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.buffer_spec import places_of
from gpu_windows.operators.state.hashes import distinct, union, unsigned
from gpu_windows.operators.state.large_strings import take_rows
from gpu_windows.operators.state.runs import Block
from gpu_windows.operators.state.schemas import (
    add_missing,
    concat_rows,
    conform,
    unify_schemas,
)
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]

#: The column of the lists of rows that entries keep: their places in the table of these.
LISTS = "rows"


@dataclass(frozen=True)
class Entries:
    """Some entries, a row each.

    Parameters
    ----------
    table : pyarrow.Table
        What is known of each; where rows are kept, with `LISTS`, large lists of int64.
    kept : pyarrow.Table, optional
        The rows that entries keep; None where they keep none.
    """

    table: pa.Table
    kept: pa.Table | None = None

    def __len__(self) -> int:
        return len(self.table)

    @property
    def kept_count(self) -> int:
        """How many rows they keep."""
        return 0 if self.kept is None else len(self.kept)

    def take(self, places: NDArray[Any]) -> Entries:
        """Return some of them, by their places, and the rows that those keep."""
        table = take_rows(self.table, places).combine_chunks()
        if self.kept is None:
            return Entries(table)
        lists = _lists(table)
        needed, rows = np.unique(_flat(lists), return_inverse=True)
        return Entries(_with_lists(table, lists, rows), take_rows(self.kept, needed))

    def slice(self, begin: int, count: int) -> Entries:
        """Return some of them that follow one another, and all rows that are kept."""
        return Entries(self.table.slice(begin, count), self.kept)

    @classmethod
    def concat(cls, parts: Sequence[Entries]) -> Entries:
        """Put entries one after the other; there is one part at least."""
        if len(parts) == 1:
            return parts[0]
        table = concat_rows([part.table for part in parts]).combine_chunks()
        kept = [part.kept for part in parts if part.kept is not None]
        if not kept:
            return cls(table)
        counts = [len(_flat(_lists(part.table))) for part in parts]
        lengths = [0 if part.kept is None else len(part.kept) for part in parts]
        base = np.cumsum([0, *lengths[:-1]])
        lists = _lists(table)
        rows = _flat(lists) + np.repeat(base, counts)
        return cls(_with_lists(table, lists, rows), concat_rows(kept))


def lists_of(lengths: Ints) -> pa.LargeListArray:
    """Return lists of so many rows each, one after the other."""
    begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return pa.LargeListArray.from_arrays(pa.array(begins), pa.array(np.arange(begins[-1])))


def _lists(table: pa.Table) -> pa.LargeListArray:
    """Return the lists of a table, in one array."""
    lists = table.column(LISTS).combine_chunks()
    return lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists


def _flat(lists: pa.LargeListArray) -> Ints:
    """Return the rows that lists name, one list after the other."""
    rows: Ints = lists.flatten().to_numpy(zero_copy_only=False)
    return rows


def _with_lists(table: pa.Table, lists: pa.LargeListArray, rows: Ints) -> pa.Table:
    """Return a table whose lists are as long as ``lists``, and name other rows."""
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    made = pa.LargeListArray.from_arrays(pa.array(begins), pa.array(rows))
    return table.set_column(table.column_names.index(LISTS), LISTS, made)


# ---- entries that are saved

#: Column of the hash of the key of an entry.
HASH = "__hash"
_GONE = pa.schema([(HASH, pa.int64())])


@dataclass(frozen=True)
class SavedEntries:
    """Entries of some keys, and which keys have none any longer.

    Parameters
    ----------
    entries : Entries
        Sorted by hash, as unsigned numbers.
    gone : int64[g]
        Hashes of keys that have none any longer, sorted.
    """

    entries: Entries
    gone: Ints
    #: Up to when times were taken, by their columns.
    _taken: dict[str, int] = field(default_factory=dict, compare=False)

    @classmethod
    def sort(cls, entries: Entries, gone: Ints) -> SavedEntries:
        """Return the same, sorted."""
        order = np.argsort(unsigned(hashes_of(entries)), kind="stable")
        if (np.diff(order) != 1).any():
            entries = entries.take(order)
        return cls(entries, gone)

    def __len__(self) -> int:
        """Return the number of keys that it contains."""
        return len(distinct(hashes_of(self.entries))) + len(self.gone)

    def first_time(self, column: str) -> int:
        """Return the first time that was not taken; LONG_MAX if there is none."""
        times = self.entries.table.column(column).to_numpy()
        return int(times[times > self._taken.get(column, LONG_MIN)].min(initial=LONG_MAX))

    def take_due(self, column: str, until: int) -> Ints:
        """Return the hashes of keys with a time up to ``until`` that was not taken, and take it."""
        times, taken = (
            self.entries.table.column(column).to_numpy(),
            self._taken.get(column, LONG_MIN),
        )
        self._taken[column] = max(taken, until)
        due: Ints = hashes_of(self.entries)[(times > taken) & (times <= until)]
        return due

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        kept = self.entries.kept
        return (
            int(self.entries.table.nbytes + (0 if kept is None else kept.nbytes) + self.gone.nbytes)
            + 1
        )

    @property
    def schemas(self) -> list[pa.Schema]:
        """Schemas of the tables of its blocks: see `unify_parts`."""
        schemas = [self.entries.table.schema.remove_metadata(), _GONE]
        kept = self.entries.kept
        return (
            [*schemas, kept.schema.remove_metadata()] if kept is not None and len(kept) else schemas
        )

    def select(self, low: int, high: int) -> SavedEntries:
        """Return what there is from one place on and before another."""
        if low == LONG_MIN and high == LONG_MAX:
            return self
        begin, end = np.searchsorted(places_of(hashes_of(self.entries)), [low, high]).tolist()
        places = places_of(self.gone)
        gone = self.gone[(places >= low) & (places < high)]
        return SavedEntries(self.entries.slice(begin, end - begin), gone)


@dataclass(frozen=True)
class Lacking:
    """Columns that rows of earlier starts may lack: they are null there.

    Parameters
    ----------
    columns : pyarrow.Schema
    in_entries : bool
        Whether entries are rows themselves; else they keep some.
    """

    columns: pa.Schema
    in_entries: bool

    def fill(self, entries: Entries) -> Entries:
        """Return entries that have the columns."""
        table, kept = entries.table, entries.kept
        if self.in_entries:
            return Entries(add_missing(table, self.columns), kept)
        return Entries(table, None if kept is None else add_missing(kept, self.columns))

    def fill_schemas(self, schemas: Sequence[pa.Schema]) -> list[pa.Schema]:
        """Return the schemas of the tables of blocks with the columns."""
        found, place = [*schemas], 0 if self.in_entries else 2
        found[place:] = (
            add_missing(each.empty_table(), self.columns).schema if not number else each
            for number, each in enumerate(found[place:])
        )
        return found

    def read(self, blocks: Iterable[Sequence[pa.Table]]) -> SavedEntries:
        """Return what some blocks of a run have, one at least."""
        parts, gone = [], [np.empty(0, np.int64)]
        for table, gone_keys, *kept in blocks:
            parts.append(self.fill(Entries(table, kept[0] if kept else None)))
            gone.append(gone_keys.column(HASH).to_numpy())
        return SavedEntries(Entries.concat(parts), np.concatenate(gone))


def hashes_of(entries: Entries) -> Ints:
    """Return the hash of the key of each entry."""
    hashes: Ints = entries.table.column(HASH).to_numpy()
    return hashes


# ---- as blocks


def unify_parts(runs: Iterable[Sequence[pa.Schema]]) -> list[pa.Schema]:
    """Return the schemas of the tables of blocks, given those of several runs.

    They are of entries, of keys that are gone, and of rows that entries keep, if any do.
    """
    parts: list[list[pa.Schema]] = [[], [], []]
    for schemas in runs:
        for part, schema in zip(parts, schemas, strict=False):
            part.append(schema)
    return [unify_schemas(part) for part in parts if part]


def to_blocks(
    saved: SavedEntries, schemas: Sequence[pa.Schema], block_bytes: int
) -> Iterator[Block]:
    """Yield entries and keys that are gone as blocks.

    Parameters
    ----------
    saved : SavedEntries
    schemas : sequence of pyarrow.Schema
        Of the tables of the blocks: see `unify_parts`.
    block_bytes : int
        Bytes in memory of a block, about. All of a place are in one.
    """
    hashes = hashes_of(saved.entries)
    places, of_gone = places_of(hashes), places_of(saved.gone)
    for low, high in _cut_places(places, of_gone, saved.nbytes, block_bytes):
        begin, end = np.searchsorted(places, [low, high]).tolist()
        part = saved.entries.take(np.arange(begin, end))
        gone = saved.gone[(of_gone >= low) & (of_gone < high)]
        parts = [part.table, pa.table({HASH: gone}), part.kept]
        keys = distinct(hashes[begin:end])
        yield Block(
            place=low,
            time=0,
            tables=tuple(map(_as_schema, parts, schemas)),
            rows=len(keys),
            markers=len(gone),
            keys=union(keys, gone),
        )


def _as_schema(table: pa.Table | None, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns of a schema; null where it has none."""
    if table is None or len(table) == 0:
        return schema.empty_table()
    return conform(table, schema)


def _cut_places(
    places: Ints, of_gone: Ints, size: int, block_bytes: int
) -> Iterator[tuple[int, int]]:
    """Yield from which place on and before which one a block has about so many bytes.

    Parameters
    ----------
    places, of_gone : int64
        Places of entries and of keys that are gone, each ascending.
    size : int
        Bytes in memory of all of them.
    block_bytes : int
    """
    every = np.sort(np.concatenate([places, of_gone])) if len(of_gone) else places
    if len(every) == 0:
        return
    length = max(1, len(every) * block_bytes // max(size, 1))
    cuts = np.unique(every[::length])
    yield from zip(cuts.tolist(), [*cuts[1:].tolist(), LONG_MAX], strict=True)
