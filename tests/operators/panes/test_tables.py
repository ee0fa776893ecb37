"""The names of columns of stored windows: a checkpoint that was written with them is to be read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.panes.state import PaneState
from gpu_windows.operators.panes.tables import from_table, to_table

NODES = 2
STORED = pa.schema(
    {
        "key0": pa.string(),
        "key1": pa.int32(),
        "number": pa.int64(),
        "rows": pa.large_list(pa.int64()),
        "slotstart": pa.int64(),
        "slotlast": pa.int64(),
        "slotcleanup": pa.int64(),
        "slotvalues": pa.list_(pa.int64(), NODES),
        "slotreferences": pa.list_(pa.float64(), NODES),
        "slotmarks": pa.list_(pa.int8(), NODES),
        "slottimers": pa.int8(),
        "slotfired": pa.int64(),
        "slotheld": pa.int64(),
        "slotalive": pa.int8(),
    }
)


def test_the_columns_of_stored_windows() -> None:
    keys = KeyEncoder([pa.string(), pa.int32()])
    values = pa.table({"k0": ["a", "b"], "k1": pa.array([1, 2], pa.int32())})
    codes = keys.encode(values.columns)
    starts = np.array([0, 10])
    state = PaneState.fresh(codes, starts, starts, starts + 9, [], NODES)
    table = to_table(state, keys, [], NODES)
    assert table.schema == STORED
    again = from_table(table, keys, [], 2)
    assert to_table(again, keys, [], NODES) == table
