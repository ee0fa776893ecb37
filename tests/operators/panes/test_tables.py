"""The names in stored windows: a checkpoint that was written with them is to be read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.errors import StateCorruptedError
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.partial_columns import partial_columns
from gpu_windows.operators.panes.state import PaneState
from gpu_windows.operators.panes.tables import from_table, to_table
from gpu_windows.planning.planner import plan
from gpu_windows.vocabulary.windows import TumblingEventTimeWindows
from tests.planning.queries import query

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
    state = PaneState.create(codes, starts, starts, starts + 9, [], NODES)
    table = to_table(state, keys, [], NODES)
    assert table.schema == STORED
    again = from_table(table, keys, [], 2)
    assert to_table(again, keys, [], NODES) == table


def test_windows_without_their_partials_are_damaged() -> None:
    keys, made = KeyEncoder([pa.string(), pa.int32()]), query(TumblingEventTimeWindows(10))
    columns = partial_columns(plan(made, bounded=False))
    codes = keys.encode(pa.table({"k0": ["a"], "k1": pa.array([1], pa.int32())}).columns)
    starts = np.array([0])
    state = PaneState.create(codes, starts, starts, starts + 9, columns, NODES)
    state.panes.row_count[:] = 2
    table = to_table(state, keys, columns, NODES)
    from_table(table, keys, columns, 2)
    for gone in (columns[0].fields, [field for column in columns for field in column.fields]):
        with pytest.raises(StateCorruptedError, match="state has the columns of the partials"):
            from_table(table.drop_columns([field.name for field in gone]), keys, columns, 2)
