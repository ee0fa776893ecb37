"""The first rows of every key in an order of their columns, kept up to date (SQL: top-N)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.vocabulary.options import show_ticks


class Change(IntEnum):
    """What a result says of the table that results keep up to date (Flink: RowKind)."""

    DELETE = 0
    INSERT = 1
    UPDATE_AFTER = 2


def words_of(changes: NDArray[np.integer[Any]] | Sequence[int]) -> pa.Array:
    """Return what the column of changes says, by the numbers of `Change`: string[n]."""
    return pa.array([each.name.lower() for each in Change]).take(pa.array(changes))


@dataclass(frozen=True)
class TopChanges:
    """The first rows of a key, and how they change; of equal rows the earlier one is first.

    Parameters
    ----------
    count : int
        How many at most.
    by : tuple of (int, bool)
        The order: places in ``columns``, the first one counting most, and whether it descends.
        Nulls are less than any value.
    columns : tuple of str
        Those of the results, then the others that rows are ordered by.
    carried : pyarrow.Schema
        Columns of the rows that stand in the results, by the user's names.
    number : str, optional
        The result column of a row's number, from 1 on: a change tells what has this number now.
        None: a change tells which row is among the first, or no more; of one row a key, what the
        key has now.
    change : str
        The result column that tells which `Change` it is.
    time_to_live : int, optional
        Ticks after which a key without rows is forgotten, and has no first rows any more.
    """

    count: int
    by: tuple[tuple[int, bool], ...]
    columns: tuple[str, ...]
    carried: pa.Schema
    number: str | None
    change: str
    time_to_live: int | None = None

    @property
    def by_number(self) -> bool:
        """Whether a change tells what has a number now; the first row has one that is not told."""
        return self.number is not None or self.count == 1

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The result columns after the keys."""
        numbers = (
            () if self.number is None else (pa.field(self.number, pa.int64(), nullable=False),)
        )
        return (*self.carried, *numbers, pa.field(self.change, pa.string(), nullable=False))

    def describe(self) -> str:
        """Return what is kept."""
        order = ", ".join(
            f"{self.columns[place]}{' descending' if descending else ''}"
            for place, descending in self.by
        )
        lives = self.time_to_live
        forgotten = "" if lives is None else f", forgotten after {show_ticks(lives)} without rows"
        return f"the first {self.count} rows of a key by {order}{forgotten}"
