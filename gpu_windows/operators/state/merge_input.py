"""Input of a compaction of rows: runs, read in parts of bounded size by prefix and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.block_index import find_split_points, next_point
from gpu_windows.operators.state.buffer_spec import BufferSpec
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.runs import Run
from gpu_windows.operators.state.schemas import add_missing, concat_rows
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]
#: A prefix and a time.
Point = tuple[int, int]

#: Bytes of files that are read at once, about.
_PART_BYTES = 1 << 23


@dataclass(frozen=True)
class MergeInput:
    """Runs, and newer rows, that become one run.

    Parameters
    ----------
    log : StateLog
    spec : BufferSpec
    runs : sequence of Run
        Oldest first.
    new : sequence of pyarrow.Table
    lacking : pyarrow.Schema
        Columns that state of earlier starts may lack.
    load : callable
        Returns the live rows of some blocks of a run; None for no blocks.
    """

    log: StateLog
    spec: BufferSpec
    runs: Sequence[Run]
    new: Sequence[pa.Table]
    lacking: pa.Schema
    load: Callable[[Run, Ints], pa.Table | None]

    def parts(self) -> Iterator[tuple[pa.Table, bool]]:
        """Yield rows in ranges of (prefix, time), and whether they are all rows of the range.

        Rows of one prefix and time that exceed a part are yielded in several, in the order of the
        runs. So no part is much larger, however the rows are distributed.
        """
        if not self.runs and not self.new:
            return
        indexes = [self.log.block_index(run) for run in self.runs]
        low = (LONG_MIN, LONG_MIN)
        for high in [*find_split_points(indexes, _PART_BYTES), (LONG_MAX, LONG_MAX)]:
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
        """Yield the rows of one prefix and time, oldest run first, some blocks at a time."""
        for run in self.runs:
            blocks = self._blocks_between(run, low, high)
            ends = np.cumsum(self.log.block_index(run).sizes[blocks])
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
        """Concatenate tables, with the columns of all runs."""
        return concat_rows([*self._empty, *tables])

    @cached_property
    def _empty(self) -> list[pa.Table]:
        """An empty table for each run, and for the newer rows."""
        of_runs = [self.log.block_index(run).schemas[0].empty_table() for run in self.runs]
        return [
            *(add_missing(each, self.lacking) for each in of_runs),
            *(each.slice(0, 0) for each in self.new),
        ]

    def _blocks_between(self, run: Run, low: Point, high: Point) -> Ints:
        index = self.log.block_index(run)
        first, last = (
            int(index.count_before(np.array([prefix]), np.array([at]), or_at=False)[0])
            for prefix, at in (low, high)
        )
        return np.arange(max(first - 1, 0), last)

    def _select_between(self, rows: pa.Table, low: Point, high: Point) -> pa.Table:
        if low[0] == LONG_MIN and high[0] == LONG_MAX:
            return rows
        prefixes, times = self.spec.prefixes(rows), self.spec.times(rows)
        is_after = (prefixes > low[0]) | ((prefixes == low[0]) & (times >= low[1]))
        is_before = (prefixes < high[0]) | ((prefixes == high[0]) & (times < high[1]))
        return rows.filter(pa.array(is_after & is_before))
