"""The names in stored entries: a checkpoint that was written with them is to be read."""

from __future__ import annotations

import pyarrow as pa

from gpu_windows.functions.window import Collect
from gpu_windows.operators.row_at_a_time.window_state import KINDS, WindowState
from gpu_windows.vocabulary.triggers import ContinuousProcessingTimeTrigger
from gpu_windows.vocabulary.windows import TumblingProcessingTimeWindows
from tests.planning.queries import query

ROW = {"row": pa.struct({"text": pa.string()}), "timestamp": pa.int64(), "seen": pa.struct({})}
LONGS = ("__event", "__processing", "start", "end", "count", "number")
STORED = pa.schema(
    {
        "kind": pa.int8(),
        "key0": pa.string(),
        "key1": pa.int32(),
        **dict.fromkeys(LONGS, pa.int64()),
        "silent": pa.bool_(),
        "rows": pa.list_(pa.struct(ROW)),
        "trigger_state state_next": pa.list_(pa.int64()),
    }
)


def test_the_columns_of_stored_entries() -> None:
    windows, trigger = TumblingProcessingTimeWindows(10), ContinuousProcessingTimeTrigger(5)
    made = query(windows, trigger=trigger, function=Collect(("text",)))
    assert WindowState(made).entries().schema == STORED


def test_the_numbers_of_kinds() -> None:
    assert KINDS == (
        "contents", "firings", "merging", "event_timers", "processing_timers",
        "trigger_state", "window_state", "key_state", "emitted",
    )  # fmt: skip
