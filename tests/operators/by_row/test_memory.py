"""The names in a stored memory: a checkpoint that was written with them is to be read."""

from __future__ import annotations

import pyarrow as pa

from gpu_windows.functions.built_in import Collect
from gpu_windows.operators.by_row.memory import Memory
from gpu_windows.triggers import ContinuousProcessingTimeTrigger
from gpu_windows.windows import TumblingProcessingTimeWindows
from tests.query.queries import query

PANE = {"key0": pa.string(), "key1": pa.int32(), "start": pa.int64(), "end": pa.int64()}
ROW = {"row": pa.struct({"text": pa.string()}), "timestamp": pa.int64(), "seen": pa.struct({})}
LISTS = {
    "contents": {**PANE, "rows": pa.list_(pa.struct(ROW))},
    "firings": {**PANE, "count": pa.int64()},
    "merging": {**PANE, "state_start": pa.int64(), "state_end": pa.int64()},
    "event_timers": {**PANE, "time": pa.int64(), "silent": pa.bool_()},
    "clock_timers": {**PANE, "time": pa.int64(), "silent": pa.bool_()},
    "trigger_state": {**PANE, "state_next": pa.list_(pa.int64())},
    "window_state": PANE,
    "key_state": PANE,
}
STORED = pa.schema(
    {
        "watermark": pa.int64(),
        "clock": pa.int64(),
        **{name: pa.list_(pa.struct(entry)) for name, entry in LISTS.items()},
    }
)


def test_the_columns_of_a_stored_memory() -> None:
    windows, trigger = TumblingProcessingTimeWindows(10), ContinuousProcessingTimeTrigger(5)
    made = query(windows, trigger=trigger, function=Collect(("text",)))
    assert Memory(made).to_table().schema == STORED
