"""The first rows of every key in an order of their columns, kept up to date (SQL: top-N)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.top import describe_order
from gpu_windows.vocabulary.options import show_ticks


class Change(IntEnum):
    """The kind of change that a result makes in the table of results (Flink: RowKind)."""

    DELETE = 0
    INSERT = 1
    UPDATE_AFTER = 2


def change_names(changes: NDArray[np.integer[Any]] | Sequence[int]) -> pa.Array:
    """Return the column of changes, string[n], by the numbers of `Change`."""
    return pa.array([each.name.lower() for each in Change]).take(pa.array(changes))


@dataclass(frozen=True)
class TopChanges:
    """The first rows of a key, as changes.

    Parameters
    ----------
    count : int
        How many rows at most.
    by : tuple of (int, bool)
        The order: indices in ``columns``, the most significant first, and whether it descends.
        Nulls are less than any value.
    columns : tuple of str
        Columns of the results, then the others that rows are ordered by.
    carried : pyarrow.Schema
        Columns of the rows that results carry, by the user's names.
    number : str, optional
        The result column of a row's number, from 1: a change replaces the row of this number.
        None: a change inserts or deletes a row among the first; with a ``count`` of 1, it replaces
        the row of the key.
    change : str
        The result column with the kind of `Change`.
    time_to_live : int, optional
        Ticks after which the state of a key without rows expires, with its first rows.
    first : bool
        Whether of equal rows the one that arrived first is first; else, of one row, the last.
    """

    count: int
    by: tuple[tuple[int, bool], ...]
    columns: tuple[str, ...]
    carried: pa.Schema
    number: str | None
    change: str
    time_to_live: int | None = None
    first: bool = True

    @property
    def by_number(self) -> bool:
        """Whether a change replaces the row of a number; one first row needs no column for it."""
        return self.number is not None or self.count == 1

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The result columns after the keys."""
        fields = [*self.carried]
        if self.number is not None:
            fields.append(pa.field(self.number, pa.int64(), nullable=False))
        return (*fields, pa.field(self.change, pa.string(), nullable=False))

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        order = describe_order((self.columns[i], descending) for i, descending in self.by)
        ttl = self.time_to_live
        expiry = "" if ttl is None else f", forgotten after {show_ticks(ttl)} without rows"
        ties = "" if self.first else ", the last of equal ones"
        return f"the first {self.count} rows of a key by {order}{ties}{expiry}"
