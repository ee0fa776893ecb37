"""Functions see keys as they see the values of rows, whatever kind of function it is."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import FunctionFailedError

WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
WINDOWS = gw.TumblingEventTimeWindows.of("1 second")
NOTHING = pa.schema({"n": pa.int64()})
ROWS = pa.table(
    {
        "day": [date(2020, 1, 1), None],
        "at": pa.array([5, 6], pa.timestamp("us", "UTC")),
        "ts": pa.array([1, 2], pa.timestamp("us", "UTC")),
    }
)
KEYS = [
    {"day": date(2020, 1, 1), "at": datetime(1970, 1, 1, microsecond=5, tzinfo=UTC)},
    {"day": None, "at": datetime(1970, 1, 1, microsecond=6, tzinfo=UTC)},
]


def keyed() -> gw.typing.KeyedStream:
    return gw.stream(ROWS).event_time("ts", WATERMARKS).key_by("day", "at")


class Seen:
    """Notes the keys that a function sees."""

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = []

    def see(self, key: Any) -> list[Any]:
        self.keys.append(dict(key))
        return []


class OfRows(gw.functions.KeyedProcessFunction, Seen):
    def process_element(self, row: Any, context: Any) -> Any:
        assert row == context.key
        return self.see(context.key)


class OfTwo(gw.functions.KeyedCoProcessFunction, Seen):
    def process_element1(self, row: Any, context: Any) -> Any:
        del row
        return self.see(context.key)

    def process_element2(self, row: Any, context: Any) -> Any:
        return []


class OfWindows(gw.functions.ProcessWindowFunction, Seen):
    def process(self, key: Any, context: Any, rows: Any) -> Any:
        return self.see(key)


class OfGroups(gw.functions.CoGroupFunction, Seen):
    def co_group(self, key: Any, context: Any, left: Any, right: Any) -> Any:
        return self.see(key)


class OfPairs(gw.functions.ProcessJoinFunction, Seen):
    def process_element(self, left: Any, right: Any, context: Any) -> Any:
        return self.see(context.key)


def test_every_kind_of_function_sees_keys_as_python_values() -> None:
    rows, two, windows, groups, pairs = OfRows(), OfTwo(), OfWindows(), OfGroups(), OfPairs()
    keyed().process(rows, ["day", "at"], output=NOTHING)
    keyed().connect(keyed()).process(two, output=NOTHING)
    keyed().window(WINDOWS).process(windows, ["day"], output=NOTHING)
    keyed().co_group(keyed()).window(WINDOWS).process(groups, ["day"], ["day"], output=NOTHING)
    joined = keyed().interval_join(keyed()).between("0 seconds", "1 second")
    joined.process(pairs, ["day"], ["day"], output=NOTHING)
    for seen in (rows, two, windows, groups, pairs):
        assert sorted(seen.keys, key=lambda key: key["at"]) == KEYS[: len(seen.keys)]
        assert seen.keys


class FailsAtTheEnd(gw.functions.Trigger):
    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> Any:
        context.register_event_time_timer(window.max_timestamp)
        return gw.functions.TriggerResult.CONTINUE

    def on_event_time(self, time: Any, window: Any, context: Any) -> Any:
        raise KeyError("mine")

    def clear(self, window: Any, context: Any) -> None:
        """Have nothing to clear."""


def test_errors_show_keys_as_python_values() -> None:
    windowed = keyed().window(WINDOWS).trigger(FailsAtTheEnd())
    with pytest.raises(FunctionFailedError, match=r"at key day=datetime\.date\(.*at=datetime"):
        windowed.aggregate(n=gw.count())


def test_keys_that_python_has_no_value_for_stay_integers() -> None:
    far = pa.array([300_000_000_000_000_000, 1], pa.timestamp("us", "UTC"))
    rows, windows = OfRows(), OfWindows()
    streams = gw.stream(ROWS.set_column(1, "at", far)).event_time("ts", WATERMARKS).key_by("at")
    streams.window(WINDOWS).process(windows, ["day"], output=NOTHING)
    assert windows.keys[0] == {"at": 300_000_000_000_000_000}
    with pytest.raises(FunctionFailedError, match="at key at=300000000000000000, a row of no"):
        streams.process(rows, output=NOTHING)
