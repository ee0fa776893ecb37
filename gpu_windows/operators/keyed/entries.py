"""Entries of keys as an Arrow table: a row each, flat columns, of several kinds.

An entry has the columns of its kind; the others are null. Those of a kind and a key are in the
operator's own order.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.operators.state.keyed_table import TIMERS
from gpu_windows.rules import LONG_MAX

#: Column of the kind of an entry, as a number.
KIND = "kind"


def key_column(number: int) -> str:
    """Return the name of a key column."""
    return f"key{number}"


def entries_of(
    kind: int, columns: Mapping[str, pa.Array], types: Mapping[str, pa.DataType]
) -> pa.Table:
    """Return entries of a kind, given its columns; the other columns of entries are null."""
    count = len(columns[key_column(0)])
    known_columns = {
        **dict.fromkeys(TIMERS, pa.array(np.full(count, LONG_MAX))),
        KIND: pa.array(np.full(count, kind, np.int8)),
        **columns,
    }
    return pa.table(
        {
            name: known_columns[name] if name in known_columns else pa.nulls(count, dtype)
            for name, dtype in types.items()
        }
    )


def select(entries: pa.Table, kind: int) -> pa.Table:
    """Return the entries of a kind."""
    return entries.filter(pc.equal(entries.column(KIND), kind))


def numbers_by_kind(entries: pa.Table, kinds: int) -> list[int]:
    """Return the number of entries of each of ``kinds`` kinds."""
    counts: list[int] = np.bincount(entries.column(KIND).to_numpy(), minlength=kinds).tolist()
    return counts
