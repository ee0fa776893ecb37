"""Groupings of keys, each with windows of its own, from the slices of all keys."""

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
    """Entries of a grouping of the keys, and what their codes mean.

    Parameters
    ----------
    entries : Entries
        Sorted by (code, slice), each pair once.
    keys : KeyEncoder
        Of the keys that the grouping has.
    places : tuple of int, optional
        Which of all keys these are; None: all, and results do not tell.
    key_types : tuple of pyarrow.DataType
        Of all keys.
    """

    entries: Entries
    keys: KeyEncoder
    places: tuple[int, ...] | None
    key_types: tuple[pa.DataType, ...]

    @property
    def tells(self) -> bool:
        """Whether results tell of which grouping they are."""
        return self.places is not None

    def decode(self, codes: Ints) -> list[pa.Array]:
        """Return a column for each of all keys: null for those that the grouping leaves out."""
        places = range(len(self.key_types)) if self.places is None else self.places
        known = dict(zip(places, self.keys.decode(codes) if places else (), strict=True))
        return [
            known[place] if place in known else pa.nulls(len(codes), dtype)
            for place, dtype in enumerate(self.key_types)
        ]

    def ids(self, count: int) -> list[pa.Array]:
        """Return the column `GROUPING_ID` of so many results, if there is one."""
        if self.places is None:
            return []
        number = GroupingSets.id_of(self.places, len(self.key_types))
        return [pa.repeat(pa.scalar(number, GROUPING_ID.type), count)]


def groupings(plan: WindowPlan, table: SliceTable) -> Iterator[Grouped]:
    """Yield the entries of a table for each grouping of the plan: the only one, if it has none."""
    query, entries = plan.query, table.entries()
    types = tuple(query.schema.field(name).type for name in query.keys)
    if query.grouping is None:
        yield Grouped(entries, table.keys, None, types)
        return
    if len(entries) == 0:
        return
    columns = table.keys.decode(np.arange(table.keys.count))
    for places in query.grouping.sets:
        if len(places) == len(types):
            yield Grouped(entries, table.keys, places, types)
            continue
        keys = KeyEncoder([types[place] for place in places] or [pa.bool_()])
        groups = np.zeros(table.keys.count, np.int64)
        if places:
            groups = keys.encode([columns[place] for place in places])
        yield Grouped(table.of_groups(entries, groups), keys, places, types)
