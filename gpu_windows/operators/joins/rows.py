"""Rows of a join side in memory, in runs.

New rows become a run; small runs are merged, as in a log-structured tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.kernels.contract.joins import SortedRows
from gpu_windows.operators.columns.ranges import concat_fields
from gpu_windows.rules import add_saturating

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: A run of this many rows is no longer merged.
_MAX_ROWS = 1 << 20


@dataclass(frozen=True)
class JoinRows:
    """Rows of a side.

    Kernels match them sorted by key and time. Where a device sorts, it keeps codes, times and row
    numbers in that order, and the table stays as it is (`arrange`).

    Parameters
    ----------
    table : pyarrow.Table
        Keys, time, columns of the side.
    codes, ts, arrival : int64[n]
        Key codes, which a device may have; times; indices in the current call, or -1.
    matched : bool[n]
        Whether they have been matched; changed in place.
    sort : callable
        Sorts codes and times.
    """

    table: pa.Table
    codes: Ints
    ts: Ints
    arrival: Ints
    matched: Flags
    sort: Callable[[Ints, Ints], SortedRows]

    def __len__(self) -> int:
        return len(self.ts)

    @cached_property
    def sorted_rows(self) -> SortedRows:
        """Their numbers, codes and times, sorted by code and time; a device may have them."""
        return self.sort(self.codes, self.ts)

    def take(self, places: Any) -> JoinRows:
        """Return some of the rows."""
        return replace(
            self,
            table=self.table.take(pa.array(places)),
            codes=self.codes[places],
            ts=self.ts[places],
            arrival=self.arrival[places],
            matched=self.matched[places],
        )

    def arrange(self) -> JoinRows:
        """Return the rows in sorted order if the CPU sorted them: so pairs are of neighbours.

        Else they are returned as they are.
        """
        numbers, codes, ts, were_sorted = self.sorted_rows
        if were_sorted or not isinstance(numbers, np.ndarray):
            return self
        rows = replace(self.take(numbers.astype(np.int64)), codes=codes, ts=ts)
        ascending = np.arange(len(rows), dtype=np.int32)
        vars(rows)["sorted_rows"] = SortedRows(ascending, codes, ts, were_sorted=True)
        return rows

    def places_of(self, some: Flags) -> Ints:
        """Return the numbers of some rows, in order of key and time."""
        if self.sorted_rows.were_sorted:
            return np.flatnonzero(some)
        numbers = np.asarray(self.sorted_rows.numbers).astype(np.int64)
        return numbers[some[numbers]]

    def by_time(self) -> JoinRows:
        """Return the rows in order of time, those of equal time in order of their keys' codes."""
        places = self.places_of(np.ones(len(self), np.bool_))
        return self.take(places[np.argsort(self.ts[places], kind="stable")])

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first and the last time; there is a row."""
        return int(self.ts.min()), int(self.ts.max())

    def bounds(self, lower: int, upper: int) -> tuple[int, int]:
        """Return the first and the last time of possible matches."""
        first, last = self.span
        return add_saturating(first, lower), add_saturating(last, upper)


class Runs:
    """Rows of a side in memory that may still be matched."""

    def __init__(self) -> None:
        self._runs: list[JoinRows] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def __iter__(self) -> Iterator[JoinRows]:
        return iter(self._runs)

    def within(self, first: int, last: int) -> Iterator[JoinRows]:
        """Yield the runs with rows of these times, in order of arrival."""
        for run in self._runs:
            begin, end = run.span
            if begin <= last and first <= end:
                yield run

    def add(self, rows: JoinRows) -> None:
        """Add rows; runs of about the same size are merged."""
        if not len(rows):
            return
        self._runs.append(replace(rows, arrival=np.full(len(rows), -1)))
        while len(self._runs) > 1 and _are_alike(*self._runs[-2:]):
            last, previous = self._runs.pop(), self._runs.pop()
            self._runs.append(_merge([previous, last]))

    def expire(self, limit: int, *, emits_unmatched: bool) -> Iterator[JoinRows]:
        """Drop the rows up to a time; yield the unmatched ones.

        ``emits_unmatched``: whether they are yielded.
        """
        remaining = []
        for run in self._runs:
            first, last = run.span
            if first > limit:
                remaining.append(run)
                continue
            has_expired = run.ts <= limit
            if emits_unmatched:
                yield run.take(np.flatnonzero(has_expired & ~run.matched))
            if last > limit:
                remaining.append(run.take(np.flatnonzero(~has_expired)))
        self._runs = remaining

    def clear(self) -> None:
        """Drop all rows."""
        self._runs = []


def _merge(parts: Sequence[JoinRows]) -> JoinRows:
    tables = [part.table for part in parts]
    table = pa.concat_tables(tables, promote_options="default").combine_chunks()
    codes, ts, arrival, matched = concat_fields(parts, "codes", "ts", "arrival", "matched")
    return JoinRows(table, codes, ts, arrival, matched, parts[0].sort).arrange()


def _are_alike(previous: JoinRows, last: JoinRows) -> bool:
    return len(previous) < 2 * len(last) and len(previous) + len(last) <= _MAX_ROWS
