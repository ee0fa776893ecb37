"""The first rows of keys, and what a table that shows them has of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.top_changes import Change, TopChanges
from gpu_windows.operators.columns.top import first_rows
from gpu_windows.operators.state.large_texts import take_rows

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Some rows of keys.

    Parameters
    ----------
    codes : int64[n]
        The key of each.
    slots : int64[n]
        The number under which the table has it, from 1 on; 0: it is not there yet.
    table : pyarrow.Table
    """

    codes: Ints
    slots: Ints
    table: pa.Table

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, places: Ints) -> Self:
        """Return some of them, by their places."""
        return type(self)(self.codes[places], self.slots[places], take_rows(self.table, places))

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """Put rows one after the other."""
        table = pa.concat_tables([part.table for part in parts], promote_options="default")
        return cls(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.slots for part in parts]),
            table.combine_chunks(),  # else chunks grow in number with each call
        )


class Changed(NamedTuple):
    """How the table changes.

    Parameters
    ----------
    rows : Rows
        What it has from now on; of a deletion what it had.
    numbers : int64[n]
        The number of each, from 1 on.
    changes : int8[n]
        Of `Change`.
    """

    rows: Rows
    numbers: Ints
    changes: NDArray[np.int8]


class ShownRows:
    """The first rows of some keys, and those that the table has besides.

    Parameters
    ----------
    top : TopChanges
    schema : pyarrow.Schema
        Of ``top.columns``.
    """

    def __init__(self, top: TopChanges, schema: pa.Schema) -> None:
        self._top, self._schema = top, schema
        none = np.empty(0, np.int64)
        self._first = self._gone = self._nothing = Rows(none, none, schema.empty_table())
        self._numbers = none
        self._waiting: list[Rows] = []  # of a key in order of arrival, after the first ones

    def __len__(self) -> int:
        return len(self.first)

    @property
    def first(self) -> Rows:
        """The first rows, by key and in order."""
        self._rank()
        return self._first

    def show(self, rows: Rows) -> None:
        """Know rows of keys of which nothing is known yet."""
        self._wait(rows)

    def take(self, codes: Ints, table: pa.Table) -> None:
        """Take rows that have arrived, in order of arrival."""
        new = Rows(codes, np.zeros(len(codes), np.int64), table.cast(self._schema))
        self._wait(new.take(self._first_of(new)[0]))

    def _wait(self, rows: Rows) -> None:
        """Rank rows with the others once they are about as many: all in all each a few times."""
        self._waiting.append(rows)
        if sum(map(len, self._waiting)) > len(self._first):
            self._rank()

    def forget(self, codes: Ints) -> None:
        """Have no first rows of some keys."""
        is_over = np.isin(self.first.codes, codes)
        over, others = np.flatnonzero(is_over), np.flatnonzero(~is_over)
        self._leave(self._first.take(over))
        self._first, self._numbers = self._first.take(others), self._numbers[others]

    def _first_of(self, rows: Rows) -> tuple[Ints, Ints]:
        """Return which are the first of some rows of each key, and their numbers."""
        by = [(rows.table.column(place), down) for place, down in self._top.by]
        return first_rows(self._top.count, by, rows.codes)

    def _rank(self) -> None:
        """Keep the first ones of all rows."""
        if not self._waiting:
            return
        rows, self._waiting = Rows.together([self._first, *self._waiting]), []
        kept, self._numbers = self._first_of(rows)
        left = np.ones(len(rows), np.bool_)
        left[kept] = False
        self._leave(rows.take(np.flatnonzero(left & (rows.slots > 0))))
        self._first = rows.take(kept)

    def _leave(self, rows: Rows) -> None:
        """Note rows that are not among the first any more, though the table may have them."""
        shown = rows.take(np.flatnonzero(rows.slots > 0))
        if len(shown):
            self._gone = Rows.together([self._gone, shown])

    # ---- how the table changes

    def settle(self) -> Changed:
        """Return how the table is to change, by key; from now on it has the first rows."""
        self._rank()
        changed = self._numbered() if self._top.by_number else self._unnumbered()
        first = self._first
        self._first = Rows(first.codes, self._numbers, first.table)
        self._gone = self._nothing
        order = np.argsort(changed.rows.codes, kind="stable")
        return Changed(changed.rows.take(order), changed.numbers[order], changed.changes[order])

    def _numbered(self) -> Changed:
        """Return what has another number than before, and the numbers that nothing has any more."""
        before, after = Rows.together([self._first, self._gone]), self._first
        most = int(before.codes.max(initial=-1)) + 1
        had, has = np.zeros(most, np.int64), np.zeros(most, np.int64)
        np.maximum.at(had, before.codes, before.slots)
        np.maximum.at(has, after.codes, self._numbers)
        over = before.take(np.flatnonzero(before.slots > has[before.codes]))
        moved = np.flatnonzero(after.slots != self._numbers)
        new, numbers = after.take(moved), self._numbers[moved]
        is_update = numbers <= had[new.codes]
        changes = np.where(is_update, Change.UPDATE_AFTER, Change.INSERT).astype(np.int8)
        deletions = np.full(len(over), Change.DELETE, np.int8)
        return Changed(
            Rows.together([over, new]),
            np.concatenate([over.slots, numbers]),
            np.concatenate([deletions, changes]),
        )

    def _unnumbered(self) -> Changed:
        """Return the rows that the table has no more, and those that it has not yet."""
        is_new = np.flatnonzero(self._first.slots == 0)
        new, gone = self._first.take(is_new), self._gone
        changes = np.repeat(
            np.array([Change.DELETE, Change.INSERT], np.int8), [len(gone), len(new)]
        )
        numbers = np.concatenate([gone.slots, self._numbers[is_new]])
        return Changed(Rows.together([gone, new]), numbers, changes)
