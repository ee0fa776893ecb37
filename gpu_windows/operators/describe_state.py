"""What the kinds of tables in a store hold; each store says it of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.by_row import interval_join as join_by_row
from gpu_windows.operators.by_row import memory
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.joins import stored_side
from gpu_windows.operators.joins.stored_runs import directory_contents, directory_kind
from gpu_windows.operators.panes import deferred, tables
from gpu_windows.operators.panes import stored as panes
from gpu_windows.operators.slices import stored as slices
from gpu_windows.operators.state.head import HEAD, head_contents
from gpu_windows.operators.state.store import Contents
from gpu_windows.operators.state.timer_lists import timer_contents

_OF_KIND: dict[str, Callable[[pa.Table], Contents]] = {
    slices.KIND: slices.contents,
    panes.WINDOWS: tables.windows_contents,
    panes.ROWS: tables.rows_contents,
    **dict.fromkeys(panes.TIMES, timer_contents),
    HEAD[0]: head_contents,
    deferred.KIND: deferred.contents,
    **dict.fromkeys((*stored_side.KINDS, join_by_row.KIND), stored_side.by_key_contents),
    **dict.fromkeys(stored_side.ENDS, stored_side.at_end_contents),
    **dict.fromkeys(
        map(directory_kind, (*stored_side.KINDS, *stored_side.ENDS)), directory_contents
    ),
    memory.KIND: memory.memory_contents,
}
#: The kinds that are described.
KINDS = frozenset(_OF_KIND)


def contents_of(kind: str, table: pa.Table) -> Contents:
    """Tell what a table in a store holds; of a kind that nobody describes, how many entries."""
    describe = _OF_KIND.get(kind)
    return Contents({"entries": len(table)}) if describe is None else describe(table)


def key_hashes(contents: Contents) -> NDArray[np.int64]:
    """Return the hash of every distinct key, in some order; the same in every process."""
    if not contents.keys or len(contents.keys[0]) == 0:
        return np.empty(0, np.int64)
    encoder = KeyEncoder([column.type for column in contents.keys])
    codes = np.unique(encoder.encode(contents.keys))
    return encoder.hashes()[codes]
