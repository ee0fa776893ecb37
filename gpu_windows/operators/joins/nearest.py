"""Nearest right row of several runs, for each left row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.operators.joins.rows import JoinRows

Ints = NDArray[np.int64]


class Nearest:
    """Nearest of the offered right rows, for each left row.

    Parameters
    ----------
    ts : int64[n]
        The times of the left rows.
    direction : int
        BEFORE, AFTER or EITHER of `gpu_windows.rules`.
    """

    def __init__(self, ts: Ints, direction: int) -> None:
        self._ts = ts
        self.direction = direction
        self._runs: list[JoinRows] = []
        self._run = np.full(len(ts), -1)
        self._index = np.zeros(len(ts), np.int64)
        self._best = np.zeros(len(ts), np.int64)

    @property
    def has_match(self) -> NDArray[np.bool_]:
        """Whether a left row has a nearest row."""
        return self._run >= 0

    def offer(self, right: JoinRows, indices: Ints) -> None:
        """Update with the nearest rows of a run: ``indices`` has one for each left row, or -1.

        Runs are offered in order of arrival.
        """
        some = np.flatnonzero(indices >= 0)
        ts = right.ts[indices[some]]
        has_best, best = self.has_match[some], self._best[some]
        better = some[~has_best | self._is_better(ts, best, self._ts[some])]
        self._run[better] = len(self._runs)
        self._index[better] = indices[better]
        self._best[better] = right.ts[indices[better]]
        self._runs.append(right)

    def rows(self, columns: Sequence[str]) -> tuple[pa.Table, Ints]:
        """Return columns of the nearest rows, and the index of the nearest row of each left row."""
        tables, at = [], np.zeros(len(self._ts), np.int64)
        begin = 0
        for number, run in enumerate(self._runs):
            of_run = np.flatnonzero(self._run == number)
            tables.append(run.table.select(columns).take(pa.array(self._index[of_run])))
            at[of_run] = begin + np.arange(len(of_run))
            begin += len(of_run)
        return pa.concat_tables(tables, promote_options="default"), at

    def _is_better(self, ts: Ints, best: Ints, left: Ints) -> NDArray[np.bool_]:
        """Whether later rows at ``ts`` are better than the best so far.

        Of rows of one time the last is best, except after the left row's time or for AFTER.
        """
        if self.direction == rules.AFTER:
            better: NDArray[np.bool_] = ts < best
        elif self.direction == rules.BEFORE:
            better = ts >= best
        else:
            gap, best_gap = _gaps(ts, left), _gaps(best, left)
            tie = (gap == best_gap) & ((ts < best) | ((ts == best) & (ts <= left)))
            better = (gap < best_gap) | tie
        return better


def _gaps(ts: Ints, left: Ints) -> NDArray[np.uint64]:
    """Return the distances of times, unsigned so that they never overflow."""
    return np.where(ts > left, ts - left, left - ts).view(np.uint64)
