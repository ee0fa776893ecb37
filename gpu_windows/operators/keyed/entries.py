"""Entries of keys as Arrow: a row each, flat columns, of several kinds.

An entry has the columns of its kind; the others are null. Those of a kind and a key are in the
order in which an operator holds them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.operators.state.keyed_table import TIMERS
from gpu_windows.rules import LONG_MAX

#: The column that says what an entry is, by number.
KIND = "kind"


def key_column(number: int) -> str:
    """Return the name of a column of keys."""
    return f"key{number}"


def entries_of(
    kind: int, columns: Mapping[str, pa.Array], types: Mapping[str, pa.DataType]
) -> pa.Table:
    """Return entries of a kind: what there is of their columns, with all that entries have."""
    count = len(columns[key_column(0)])
    given = {
        **dict.fromkeys(TIMERS, pa.array(np.full(count, LONG_MAX))),
        KIND: pa.array(np.full(count, kind, np.int8)),
        **columns,
    }
    return pa.table(
        {
            name: given[name] if name in given else pa.nulls(count, dtype)
            for name, dtype in types.items()
        }
    )


def select(entries: pa.Table, kind: int) -> pa.Table:
    """Return the entries of a kind."""
    return entries.filter(pc.equal(entries.column(KIND), kind))


def numbers_by_kind(entries: pa.Table, kinds: int) -> list[int]:
    """Return how many entries of each of so many kinds there are."""
    counted: list[int] = np.bincount(entries.column(KIND).to_numpy(), minlength=kinds).tolist()
    return counted
