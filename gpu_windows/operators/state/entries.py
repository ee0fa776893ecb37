"""Entries of keys, the rows that they refer to, tombstones, and their blocks in a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.buffer_spec import hash_prefixes
from gpu_windows.operators.state.hashes import as_unsigned, distinct, union
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

#: Column of the lists of rows of entries: indices into the table of these rows.
LISTS = "rows"


@dataclass(frozen=True)
class Entries:
    """Entries of keys.

    Parameters
    ----------
    table : pyarrow.Table
        One row per entry. If entries have lists of rows, with `LISTS`, large lists of int64.
    rows : pyarrow.Table, optional
        The rows of the lists; None if entries have none.
    """

    table: pa.Table
    rows: pa.Table | None = None

    def __len__(self) -> int:
        return len(self.table)

    @property
    def row_count(self) -> int:
        """Number of rows in lists."""
        return 0 if self.rows is None else len(self.rows)

    @property
    def list_lengths(self) -> Ints:
        """Number of rows in the list of each entry."""
        return _lengths(_lists(self.table))

    @property
    def listed_rows(self) -> pa.Table | None:
        """The rows of all lists, one list after the other; None if there are none."""
        return None if self.rows is None else self.rows.take(_lists(self.table).flatten())

    def take(self, index: NDArray[Any]) -> Entries:
        """Return some entries, by index, and the rows of their lists."""
        table = take_rows(self.table, index).combine_chunks()
        if self.rows is None:
            return Entries(table)
        lists = _lists(table)
        needed, rows = np.unique(_flat(lists), return_inverse=True)
        return Entries(_with_lists(table, lists, rows), take_rows(self.rows, needed))

    def slice(self, begin: int, count: int) -> Entries:
        """Return consecutive entries, with the rows of all lists."""
        return Entries(self.table.slice(begin, count), self.rows)

    @classmethod
    def concat(cls, parts: Sequence[Entries]) -> Entries:
        """Concatenate entries of at least one part."""
        if len(parts) == 1:
            return parts[0]
        table = concat_rows([part.table for part in parts]).combine_chunks()
        tables = [part.rows for part in parts if part.rows is not None]
        if not tables:
            return cls(table)
        counts = [len(_flat(_lists(part.table))) for part in parts]
        lengths = [0 if part.rows is None else len(part.rows) for part in parts]
        base = np.cumsum([0, *lengths[:-1]])
        lists = _lists(table)
        rows = _flat(lists) + np.repeat(base, counts)
        return cls(_with_lists(table, lists, rows), concat_rows(tables))


def lists_of(lengths: Ints, values: Ints | pa.Array | None = None) -> pa.LargeListArray:
    """Return lists of these lengths; by default of consecutive rows."""
    begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    values = np.arange(begins[-1]) if values is None else values
    return pa.LargeListArray.from_arrays(pa.array(begins), pa.array(values))


def _lists(table: pa.Table) -> pa.LargeListArray:
    """Return the lists of a table, in one array."""
    lists = table.column(LISTS).combine_chunks()
    return lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists


def _lengths(lists: pa.LargeListArray) -> Ints:
    lengths: Ints = lists.value_lengths().to_numpy(zero_copy_only=False)
    return lengths


def _flat(lists: pa.LargeListArray) -> Ints:
    """Return the row indices of all lists, concatenated."""
    rows: Ints = lists.flatten().to_numpy(zero_copy_only=False)
    return rows


def _with_lists(table: pa.Table, lists: pa.LargeListArray, rows: Ints) -> pa.Table:
    """Return a table with lists as long as ``lists``, of other row indices."""
    made = lists_of(_lengths(lists), rows)
    return table.set_column(table.column_names.index(LISTS), LISTS, made)


# ---- contents of runs

#: Column of the hash of the key of an entry.
HASH = "__hash"
_TOMBSTONES = pa.schema([(HASH, pa.int64())])


@dataclass(frozen=True)
class RunContents:
    """Entries of some keys, and tombstones of keys whose entries were deleted.

    Parameters
    ----------
    entries : Entries
        Sorted by hash, as unsigned numbers.
    tombstones : int64[g]
        Hashes of deleted keys, sorted.
    """

    entries: Entries
    tombstones: Ints
    #: By column, the time up to which `take_due` was called.
    _taken_until: dict[str, int] = field(default_factory=dict, compare=False)

    @classmethod
    def sort(cls, entries: Entries, tombstones: Ints) -> RunContents:
        """Return contents of entries in any order; ``tombstones`` are sorted."""
        order = np.argsort(as_unsigned(hashes_of(entries)), kind="stable")
        if (np.diff(order) != 1).any():
            entries = entries.take(order)
        return cls(entries, tombstones)

    def __len__(self) -> int:
        """Return the number of keys, deleted ones included."""
        return len(distinct(hashes_of(self.entries))) + len(self.tombstones)

    def first_time(self, column: str) -> int:
        """Return the first time after the last `take_due`, or LONG_MAX."""
        times = self.entries.table.column(column).to_numpy()
        return int(times[times > self._taken_until.get(column, LONG_MIN)].min(initial=LONG_MAX))

    def take_due(self, column: str, until: int) -> Ints:
        """Return the hashes of keys with a time up to ``until``, after that of the last call."""
        times = self.entries.table.column(column).to_numpy()
        before = self._taken_until.get(column, LONG_MIN)
        self._taken_until[column] = max(before, until)
        due: Ints = hashes_of(self.entries)[(times > before) & (times <= until)]
        return due

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        rows = self.entries.rows
        row_bytes = 0 if rows is None else rows.nbytes
        return int(self.entries.table.nbytes + row_bytes + self.tombstones.nbytes) + 1

    @property
    def schemas(self) -> list[pa.Schema]:
        """Schemas of the tables of its blocks: see `unify_parts`."""
        schemas = [self.entries.table.schema.remove_metadata(), _TOMBSTONES]
        rows = self.entries.rows
        if rows is None or not len(rows):
            return schemas
        return [*schemas, rows.schema.remove_metadata()]

    def select(self, low: int, high: int) -> RunContents:
        """Return the contents with prefixes in [low, high)."""
        if low == LONG_MIN and high == LONG_MAX:
            return self
        begin, end = np.searchsorted(hash_prefixes(hashes_of(self.entries)), [low, high]).tolist()
        prefixes = hash_prefixes(self.tombstones)
        tombstones = self.tombstones[(prefixes >= low) & (prefixes < high)]
        return RunContents(self.entries.slice(begin, end - begin), tombstones)


@dataclass(frozen=True)
class MissingColumns:
    """Columns that state of earlier starts may lack; they are null there.

    Parameters
    ----------
    columns : pyarrow.Schema
    in_entries : bool
        Whether they are columns of entries; else of the rows in lists.
    """

    columns: pa.Schema
    in_entries: bool

    def fill(self, entries: Entries) -> Entries:
        """Return entries with the columns."""
        table, rows = entries.table, entries.rows
        if self.in_entries:
            return Entries(add_missing(table, self.columns), rows)
        return Entries(table, None if rows is None else add_missing(rows, self.columns))

    def fill_schemas(self, schemas: Sequence[pa.Schema]) -> list[pa.Schema]:
        """Return the schemas of the tables of blocks with the columns."""
        filled, index = [*schemas], 0 if self.in_entries else 2
        for schema in schemas[index : index + 1]:
            filled[index] = add_missing(schema.empty_table(), self.columns).schema
        return filled

    def read(self, blocks: Iterable[Sequence[pa.Table]]) -> RunContents:
        """Return the contents of at least one block of a run."""
        parts, tombstones = [], [np.empty(0, np.int64)]
        for table, deleted, *rows in blocks:
            parts.append(self.fill(Entries(table, rows[0] if rows else None)))
            tombstones.append(deleted.column(HASH).to_numpy())
        return RunContents(Entries.concat(parts), np.concatenate(tombstones))


def hashes_of(entries: Entries) -> Ints:
    """Return the hash of the key of each entry."""
    hashes: Ints = entries.table.column(HASH).to_numpy()
    return hashes


# ---- as blocks


def unify_parts(runs: Iterable[Sequence[pa.Schema]]) -> list[pa.Schema]:
    """Return the schemas of the tables of blocks, given those of several runs.

    They are of entries, of tombstones, and of the rows in lists, if there are any.
    """
    parts: list[list[pa.Schema]] = [[], [], []]
    for schemas in runs:
        for part, schema in zip(parts, schemas, strict=False):
            part.append(schema)
    return [unify_schemas(part) for part in parts if part]


def to_blocks(
    contents: RunContents, schemas: Sequence[pa.Schema], block_bytes: int
) -> Iterator[Block]:
    """Yield entries and tombstones as blocks.

    Parameters
    ----------
    contents : RunContents
    schemas : sequence of pyarrow.Schema
        Of the tables of the blocks: see `unify_parts`.
    block_bytes : int
        Bytes in memory of a block, about. All entries of a prefix are in one.
    """
    hashes = hashes_of(contents.entries)
    prefixes, deleted = hash_prefixes(hashes), hash_prefixes(contents.tombstones)
    for low, high in _split_prefixes(prefixes, deleted, contents.nbytes, block_bytes):
        begin, end = np.searchsorted(prefixes, [low, high]).tolist()
        part = contents.entries.take(np.arange(begin, end))
        tombstones = contents.tombstones[(deleted >= low) & (deleted < high)]
        parts = [part.table, pa.table({HASH: tombstones}), part.rows]
        keys = distinct(hashes[begin:end])
        yield Block(
            prefix=low,
            time=0,
            tables=tuple(map(_as_schema, parts, schemas)),
            rows=len(keys),
            markers=len(tombstones),
            keys=union(keys, tombstones),
        )


def _as_schema(table: pa.Table | None, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns of a schema; null where the table lacks them."""
    if table is None or len(table) == 0:
        return schema.empty_table()
    return conform(table, schema)


def _split_prefixes(
    prefixes: Ints, deleted: Ints, size: int, block_bytes: int
) -> Iterator[tuple[int, int]]:
    """Yield ranges [low, high) of prefixes whose contents have about ``block_bytes`` bytes.

    Parameters
    ----------
    prefixes, deleted : int64
        Prefixes of entries and of tombstones, each ascending.
    size : int
        Bytes in memory of all of them.
    block_bytes : int
    """
    every = np.sort(np.concatenate([prefixes, deleted])) if len(deleted) else prefixes
    if len(every) == 0:
        return
    length = max(1, len(every) * block_bytes // max(size, 1))
    cuts = np.unique(every[::length])
    yield from zip(cuts.tolist(), [*cuts[1:].tolist(), LONG_MAX], strict=True)
