"""Runs of rows that become one: read in parts of bounded size, in the order of place and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.buffer_spec import BufferSpec
from gpu_windows.operators.state.directory import find_split_points, next_point
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.runs import Run
from gpu_windows.operators.state.schemas import add_missing, concat_rows
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]
#: A place, and a time there.
Point = tuple[int, int]

#: Bytes of files that are read at once, about.
_PART_BYTES = 1 << 23


@dataclass(frozen=True)
class MergeInput:
    """Some runs, and rows that came after them.

    Parameters
    ----------
    log : StateLog
    kind : BufferSpec
    runs : sequence of Run
        From the oldest on.
    new : sequence of pyarrow.Table
    lacking : pyarrow.Schema
        Columns that rows of earlier starts may lack.
    load : callable
        Returns what has not expired in some blocks of a run; None of no blocks.
    """

    log: StateLog
    kind: BufferSpec
    runs: Sequence[Run]
    new: Sequence[pa.Table]
    lacking: pa.Schema
    load: Callable[[Run, Ints], pa.Table | None]

    def parts(self) -> Iterator[tuple[pa.Table, bool]]:
        """Yield the rows from one place and time to another, and whether these are all of there.

        Rows of one place and time that are larger than a part come in several: they need no order
        but that of the runs. So a part is never much larger, however the rows are distributed.
        """
        if not self.runs and not self.new:
            return
        directories = [self.log.directory(run) for run in self.runs]
        low = (LONG_MIN, LONG_MIN)
        for high in [*find_split_points(directories, _PART_BYTES), (LONG_MAX, LONG_MAX)]:
            if high == next_point(*low):
                for rows in self._load_by_run(low, high):
                    yield self._unify([rows]), False
            else:
                found = [(run, self._blocks_between(run, low, high)) for run in self.runs]
                yield (
                    self._unify([*self._load(found, low, high), *self._new_between(low, high)]),
                    True,
                )
            low = high

    def _load_by_run(self, low: Point, high: Point) -> Iterator[pa.Table]:
        """Yield the rows of one place and time from the oldest run on, some blocks at a time."""
        for run in self.runs:
            blocks = self._blocks_between(run, low, high)
            ends = np.cumsum(self.log.directory(run).sizes[blocks])
            edges = np.flatnonzero(np.diff(ends // _PART_BYTES)) + 1
            for some in np.split(blocks, edges):
                yield from self._load([(run, some)], low, high)
        yield from self._new_between(low, high)

    def _load(
        self, found: Sequence[tuple[Run, Ints]], low: Point, high: Point
    ) -> Iterator[pa.Table]:
        self.log.fetch_blocks(found)
        for run, blocks in found:
            rows = self.load(run, blocks)
            if rows is not None:
                yield self._select_between(rows, low, high)

    def _new_between(self, low: Point, high: Point) -> Iterator[pa.Table]:
        for rows in self.new:
            yield self._select_between(rows, low, high)

    def _unify(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Return tables one after the other, with the columns of all runs."""
        return concat_rows([*self._empty, *tables])

    @cached_property
    def _empty(self) -> list[pa.Table]:
        """A table without rows for each run, and for the rows after them."""
        of_runs = [self.log.directory(run).schemas[0].empty_table() for run in self.runs]
        return [
            *(add_missing(each, self.lacking) for each in of_runs),
            *(each.slice(0, 0) for each in self.new),
        ]

    def _blocks_between(self, run: Run, low: Point, high: Point) -> Ints:
        directory = self.log.directory(run)
        first, last = (
            int(directory.count_before(np.array([place]), np.array([at]), or_at=False)[0])
            for place, at in (low, high)
        )
        return np.arange(max(first - 1, 0), last)

    def _select_between(self, rows: pa.Table, low: Point, high: Point) -> pa.Table:
        if low[0] == LONG_MIN and high[0] == LONG_MAX:
            return rows
        places, times = self.kind.places(rows), self.kind.times(rows)
        is_after = (places > low[0]) | ((places == low[0]) & (times >= low[1]))
        is_before = (places < high[0]) | ((places == high[0]) & (times < high[1]))
        return rows.filter(pa.array(is_after & is_before))
