"""The runs of rows by arrival that interval joins stored before they stored them by key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows import rules
from gpu_windows.functions.two_inputs import TIME
from gpu_windows.operators.joins.arrangement import Arrangement
from gpu_windows.operators.joins.rows import JoinRows
from gpu_windows.operators.joins.stored_side import KINDS
from gpu_windows.operators.state.store import Store

#: The column that said whether a row has had a partner, where that must be known.
MET = "__met"


def is_former(index: pa.Table) -> bool:
    """Whether the index of a head is of such runs."""
    return "side" in index.column_names


class Former:
    """Such runs in a store, which are taken out of it.

    Parameters
    ----------
    store : Store
    index : pyarrow.Table
        A row a run: side, number in the store, ``limit``: up to when rows were over when it was
        made, ``over``: up to when those in the store are over in any case.
    watermark : int
    retention : tuple of int
        Of each side, in ticks.
    """

    def __init__(
        self, store: Store, index: pa.Table, watermark: int, retention: tuple[int, int]
    ) -> None:
        self._store, self._index = store, index
        self._limits = [rules.shifted(watermark, -each) for each in retention]

    def rows(self, side: int, arrangement: Arrangement, *, tracks: bool) -> Iterator[JoinRows]:
        """Yield the rows of a side that are not over, in the order in which they came."""
        own = self._index.filter(pc.equal(self._index.column("side"), side))
        for run in own.to_pylist():
            table = self._store.load_listed(KINDS[side], run["number"])
            self._store.remove(KINDS[side], run["number"])
            limit = self._limits[side]
            over = max(run["over"], limit if run["limit"] < limit else rules.LONG_MIN)
            table = table.filter(pa.array(table.column(TIME).to_numpy() > over))
            met = np.zeros(len(table), np.bool_)
            if tracks:
                met = table.column(MET).to_numpy().copy()
                table = table.drop_columns([MET])
            yield arrangement.rows(table, met)
