"""In-memory state of count windows: the rows each key had, and the slices of row numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows import rules
from gpu_windows.kernels.backend import Backend
from gpu_windows.operators.counters import Rejected
from gpu_windows.operators.device import Kernels, Map
from gpu_windows.operators.slices.table import KeyedRows, Placed, SliceTable, grid_of
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import ARRIVAL

Ints = NDArray[np.int64]


class CountTable(SliceTable):
    """The slices of some keys, by row number instead of time.

    Attributes
    ----------
    counts : int64[keys]
        Rows of every key so far.
    filled : list of (int64[m], int64[m])
        Key codes and numbers of the rows that fill a window since the list was last taken.
    load : callable, optional
        Loads keys, given by their codes, before rows of them are numbered.
    """

    _is_of_times = False

    def __init__(self, plan: WindowPlan, kernels: Kernels) -> None:
        super().__init__(replace(plan, order=(ARRIVAL,)), kernels)
        self._grid = grid_of(plan)
        self.counts: Ints = np.empty(0, np.int64)
        self.filled: list[tuple[Ints, Ints]] = []
        self.load: Callable[[Ints], None] | None = None

    def _with_codes(self, table: pa.Table) -> Iterator[KeyedRows]:
        for piece in super()._with_codes(table):
            if self.load is not None:
                self.load(piece.codes)
            codes, work = piece.codes, partial(_number_rows, piece.codes, self._all_counts())
            numbers, self.counts = self._kernels.run(len(piece), work)
            fills = (numbers + 1) % self._grid.slide == 0
            self.filled.append((codes[fills], numbers[fills]))
            yield KeyedRows(piece.rows, codes, len(self.counts), numbers)

    def _all_counts(self) -> Ints:
        """Return the row counts of all keys: 0 for new ones."""
        new = np.zeros(self.keys.count - len(self.counts), np.int64)
        return np.concatenate([self.counts, new])

    # ---- to and from the log

    def snapshot(self) -> tuple[Ints, Ints, Ints, pa.Table]:
        """Return the codes of keys that had rows, their row counts, slice counts, and slices."""
        entries, codes = self.entries(), np.flatnonzero(self.counts)
        lengths = np.bincount(entries.codes, minlength=len(self.counts))
        slices = pa.table(self.columns_without_keys(entries.slices, entries.states))
        return codes, self.counts[codes], lengths[codes], slices

    def restore(self, codes: Ints, counts: Ints, lengths: Ints, slices: pa.Table | None) -> None:
        """Add keys that have no state here, given as `snapshot` returns them."""
        self.counts = self._all_counts()
        self.counts[codes] = counts
        if slices is not None:
            self.add(self.from_arrow(np.repeat(codes, lengths), slices))

    def classify(
        self, backend: Backend, piece: KeyedRows, watermark: int
    ) -> tuple[Placed, Rejected]:
        """Return the slice of every row; a row that belongs to no window is in a gap."""
        del watermark
        slices = rules.slice_of(piece.numbers, self._grid)
        gaps = np.broadcast_to(rules.is_gap(slices, self._grid), len(piece))
        status = np.where(gaps, rules.GAP, rules.ACCEPTED).astype(np.int8)
        return Placed(backend.to_device(slices)), Rejected.of(status)


def _number_rows(codes: Ints, counts: Ints, backend: Backend, _: Map) -> tuple[Ints, Ints]:
    """Return the numbers of rows within their keys, and the keys' row counts after them."""
    numbers, after = backend.keys.number(backend.to_device(codes), backend.to_device(counts))
    return backend.to_host(numbers), backend.to_host(after)
