"""GROUPING SETS: windows of each grouping of the keys, from the slices of all keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.slices.table import Entries, SliceTable
from gpu_windows.planning.kinds.grouping import GROUPING_ID, GroupingSets
from gpu_windows.planning.kinds.window_plan import WindowPlan

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Grouped:
    """The entries of one grouping set, and the keys of their codes.

    Parameters
    ----------
    entries : Entries
        Sorted by (code, slice), each pair once.
    keys : KeyEncoder
        Of the keys that the grouping has.
    columns : tuple of int, optional
        Indices of its keys among all keys; None: all keys, and results have no `GROUPING_ID`.
    key_types : tuple of pyarrow.DataType
        Of all keys.
    """

    entries: Entries
    keys: KeyEncoder
    columns: tuple[int, ...] | None
    key_types: tuple[pa.DataType, ...]

    def decode(self, codes: Ints) -> list[pa.Array]:
        """Return a column for each of all keys: null for keys that the grouping leaves out."""
        indices = range(len(self.key_types)) if self.columns is None else self.columns
        decoded = dict(zip(indices, self.keys.decode(codes) if indices else (), strict=True))
        return [
            decoded[index] if index in decoded else pa.nulls(len(codes), dtype)
            for index, dtype in enumerate(self.key_types)
        ]

    def ids(self, count: int) -> list[pa.Array]:
        """Return the column `GROUPING_ID` of ``count`` results, if there is one."""
        if self.columns is None:
            return []
        number = GroupingSets.id_of(self.columns, len(self.key_types))
        return [pa.repeat(pa.scalar(number, GROUPING_ID.type), count)]


def groupings(plan: WindowPlan, table: SliceTable) -> Iterator[Grouped]:
    """Yield the entries of a table for each grouping set of the plan; without any, all entries."""
    query, entries = plan.query, table.entries()
    types = tuple(query.schema.field(name).type for name in query.keys)
    if query.grouping is None:
        yield Grouped(entries, table.keys, None, types)
        return
    if len(entries) == 0:
        return
    columns = table.keys.decode(np.arange(table.keys.count))
    for indices in query.grouping.sets:
        if len(indices) == len(types):
            yield Grouped(entries, table.keys, indices, types)
            continue
        keys = KeyEncoder([types[index] for index in indices] or [pa.bool_()])
        groups = np.zeros(table.keys.count, np.int64)
        if indices:
            groups = keys.encode([columns[index] for index in indices])
        yield Grouped(table.regroup(entries, groups), keys, indices, types)
