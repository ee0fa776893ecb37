"""Key groups, as in Flink: each key belongs to one of a fixed number, each shard has a range.

So with another number of shards, a shard takes whole key groups over from a few old ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.state.buffer_spec import KeyColumns
from gpu_windows.operators.state.rescaling import FindGroups

Ints = NDArray[np.int64]

#: Number of key groups, and limit of the number of shards.
GROUP_COUNT = 1 << 16
#: Column of the key group of a row, in a table of rows without key columns.
GROUP = "__group"


def groups_of(hashes: Ints) -> Ints:
    """Return the key groups of keys, given by their hashes: int64[n].

    They are the lower bits of the hash; the upper ones are its prefix in a log.
    """
    return hashes & (GROUP_COUNT - 1)


def groups_of_rows(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Ints:
    """Return the key group of every row, given its key columns; there is one at least."""
    encoder = KeyEncoder([column.type for column in columns])
    codes = encoder.encode(columns)
    return groups_of(encoder.hashes())[codes]


def shards_of_groups(groups: Ints, count: int) -> Ints:
    """Return the shard of each key group: int64[n] below ``count``."""
    return (groups * count) // GROUP_COUNT


def group_range(shard: int, count: int) -> tuple[int, int]:
    """Return the first key group of a shard, and the one after its last."""
    first, end = (-(-number * GROUP_COUNT // count) for number in (shard, shard + 1))
    return first, end


def groups_in_log(keys: Sequence[str], shard_keys: Sequence[str]) -> FindGroups:
    """Return the function that finds the key groups of rows in any table of an operator's log.

    Parameters
    ----------
    keys, shard_keys : sequence of str
        The key columns of a query, and those of them that determine the shard.

    Returns
    -------
    FindGroups
    """
    numbered = [f"key{keys.index(name)}" for name in shard_keys]

    def find_groups(rows: pa.Table, columns: KeyColumns) -> Ints:
        if columns is KeyColumns.GROUP:
            groups: Ints = rows.column(GROUP).to_numpy().astype(np.int64)
            return groups
        names = numbered if columns is KeyColumns.BY_NUMBER else [*shard_keys]
        if not names:
            return np.zeros(len(rows), np.int64)
        return groups_of_rows([rows.column(name) for name in names])

    return find_groups
