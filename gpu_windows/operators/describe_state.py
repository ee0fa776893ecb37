"""What the kinds of tables in a store hold; each store says it of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators import (
    join_rows,
    machine_store,
    reference_join,
    reference_memory,
    slice_store,
    window_store,
)
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.state.store import Contents

_OF_KIND: dict[str, Callable[[pa.Table], Contents]] = {
    slice_store.KIND: slice_store.contents,
    window_store.WINDOWS: machine_store.windows_contents,
    window_store.ROWS: machine_store.rows_contents,
    **dict.fromkeys((*join_rows.KINDS, reference_join.KIND), join_rows.contents),
    reference_memory.KIND: reference_memory.memory_contents,
}


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
