"""First rows of keys, and their state in the result table that changes keep up to date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.top_changes import Change, TopChanges
from gpu_windows.operators.columns.ranges import concat_fields
from gpu_windows.operators.columns.top_n import first_rows
from gpu_windows.operators.state.large_strings import take_rows

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SlotRows:
    """Rows of keys, with their slots in the result table.

    Parameters
    ----------
    codes : int64[n]
        The key of each.
    slots : int64[n]
        The number of each row in the result table, from 1 on; 0: it is not yet there.
    table : pyarrow.Table
    """

    codes: Ints
    slots: Ints
    table: pa.Table

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: Ints) -> Self:
        """Return some rows, by index."""
        return type(self)(self.codes[index], self.slots[index], take_rows(self.table, index))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate rows."""
        table = pa.concat_tables([part.table for part in parts], promote_options="default")
        table = table.combine_chunks()  # else chunks grow in number with each call
        codes, slots = concat_fields(parts, "codes", "slots")
        return cls(codes, slots, table)


class TableChanges(NamedTuple):
    """Changes of the result table.

    Parameters
    ----------
    rows : SlotRows
        The new rows; of deletions the old rows.
    numbers : int64[n]
        The number of each, from 1 on.
    changes : int8[n]
        Of `Change`.
    """

    rows: SlotRows
    numbers: Ints
    changes: NDArray[np.int8]


class TopRows:
    """First rows of some keys, and other rows that are still in the result table.

    Parameters
    ----------
    top : TopChanges
    schema : pyarrow.Schema
        Schema of ``top.columns``.
    """

    def __init__(self, top: TopChanges, schema: pa.Schema) -> None:
        self._top, self._schema = top, schema
        none = np.empty(0, np.int64)
        self._first = self._removed = self._nothing = SlotRows(none, none, schema.empty_table())
        self._numbers = none
        self._buffered: list[SlotRows] = []  # in order of arrival

    def __len__(self) -> int:
        return len(self.first)

    @property
    def first(self) -> SlotRows:
        """The first rows, by key and in order."""
        self._rank()
        return self._first

    def add_rows(self, codes: Ints, table: pa.Table) -> None:
        """Add new rows, in order of arrival."""
        new = SlotRows(codes, np.zeros(len(codes), np.int64), table.cast(self._schema))
        self.load_rows(new.take(self._find_first(new)[0]))

    def load_rows(self, rows: SlotRows) -> None:
        """Add rows: stored first ones of keys that are not in memory yet, or new ones.

        They are ranked when they outnumber the first ones: so each is ranked a few times.
        """
        self._buffered.append(rows)
        if sum(map(len, self._buffered)) > len(self._first):
            self._rank()

    def remove_keys(self, codes: Ints) -> None:
        """Remove the first rows of some keys."""
        is_removed = np.isin(self.first.codes, codes)
        removed, others = np.flatnonzero(is_removed), np.flatnonzero(~is_removed)
        self._note_removed(self._first.take(removed))
        self._first, self._numbers = self._first.take(others), self._numbers[others]

    def _find_first(self, rows: SlotRows) -> tuple[Ints, Ints]:
        """Return the indices of the first rows of each key, and their numbers."""
        by = [(rows.table.column(place), down) for place, down in self._top.by]
        if not self._top.first:
            by.append((pa.chunked_array([np.arange(len(rows))]), True))
        return first_rows(self._top.count, by, rows.codes)

    def _rank(self) -> None:
        """Reduce the first and the buffered rows to the first ones."""
        if not self._buffered:
            return
        rows, self._buffered = SlotRows.concat([self._first, *self._buffered]), []
        first, self._numbers = self._find_first(rows)
        left = np.ones(len(rows), np.bool_)
        left[first] = False
        self._note_removed(rows.take(np.flatnonzero(left & (rows.slots > 0))))
        self._first = rows.take(first)

    def _note_removed(self, rows: SlotRows) -> None:
        """Note rows that are no longer among the first, if they are in the result table."""
        emitted = rows.take(np.flatnonzero(rows.slots > 0))
        if len(emitted):
            self._removed = SlotRows.concat([self._removed, emitted])

    # ---- changes of the result table

    def flush_changes(self) -> TableChanges:
        """Return the changes of the result table, by key; from now on it has the first rows."""
        self._rank()
        changed = self._diff_by_number() if self._top.by_number else self._diff_by_row()
        first = self._first
        self._first = SlotRows(first.codes, self._numbers, first.table)
        self._removed = self._nothing
        order = np.argsort(changed.rows.codes, kind="stable")
        return TableChanges(
            changed.rows.take(order), changed.numbers[order], changed.changes[order]
        )

    def _diff_by_number(self) -> TableChanges:
        """Return the rows whose number has changed, and deletions of numbers without a row."""
        before, after = SlotRows.concat([self._first, self._removed]), self._first
        count = int(before.codes.max(initial=-1)) + 1
        had, has = np.zeros(count, np.int64), np.zeros(count, np.int64)
        np.maximum.at(had, before.codes, before.slots)
        np.maximum.at(has, after.codes, self._numbers)
        removed = before.take(np.flatnonzero(before.slots > has[before.codes]))
        moved = np.flatnonzero(after.slots != self._numbers)
        new, numbers = after.take(moved), self._numbers[moved]
        is_update = numbers <= had[new.codes]
        changes = np.where(is_update, Change.UPDATE_AFTER, Change.INSERT).astype(np.int8)
        deletions = np.full(len(removed), Change.DELETE, np.int8)
        return TableChanges(
            SlotRows.concat([removed, new]),
            np.concatenate([removed.slots, numbers]),
            np.concatenate([deletions, changes]),
        )

    def _diff_by_row(self) -> TableChanges:
        """Return deletions of removed rows, and insertions of new rows."""
        is_new = np.flatnonzero(self._first.slots == 0)
        new, removed = self._first.take(is_new), self._removed
        changes = np.repeat(
            np.array([Change.DELETE, Change.INSERT], np.int8), [len(removed), len(new)]
        )
        numbers = np.concatenate([removed.slots, self._numbers[is_new]])
        return TableChanges(SlotRows.concat([removed, new]), numbers, changes)
