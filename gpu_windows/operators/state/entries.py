"""Entries of keys as a table, and the rows that they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.store import Contents

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

    def take(self, places: NDArray[Any]) -> Entries:
        """Return some of them, by their places, and the rows that those keep."""
        table = self.table.take(pa.array(places)).combine_chunks()
        if self.kept is None:
            return Entries(table)
        lists = _lists(table)
        needed, rows = np.unique(_flat(lists), return_inverse=True)
        return Entries(_with_lists(table, lists, rows), self.kept.take(pa.array(needed)))

    def slice(self, begin: int, count: int) -> Entries:
        """Return some of them that follow one another, and all rows that are kept."""
        return Entries(self.table.slice(begin, count), self.kept)

    @classmethod
    def together(cls, parts: Sequence[Entries]) -> Entries:
        """Put entries one after the other; there is one part at least."""
        if len(parts) == 1:
            return parts[0]
        tables = [part.table for part in parts]  # maybe with other nullability: of several starts
        table = pa.concat_tables(tables, promote_options="default").combine_chunks()
        kept = [part.kept for part in parts if part.kept is not None]
        if not kept:
            return cls(table)
        counts = [len(_flat(_lists(part.table))) for part in parts]
        lengths = [0 if part.kept is None else len(part.kept) for part in parts]
        base = np.cumsum([0, *lengths[:-1]])
        lists = _lists(table)
        rows = _flat(lists) + np.repeat(base, counts)
        all_rows = pa.concat_tables(kept, promote_options="default")
        return cls(_with_lists(table, lists, rows), all_rows)


def lists_of(lengths: Ints) -> pa.LargeListArray:
    """Return lists of so many rows each, one after the other."""
    begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return pa.LargeListArray.from_arrays(pa.array(begins), pa.array(np.arange(begins[-1])))


def entries_contents(table: pa.Table) -> Contents:
    """Tell what a block holds: some of it is older than what other blocks have of the same keys."""
    return Contents({"entries": len(table)})


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
