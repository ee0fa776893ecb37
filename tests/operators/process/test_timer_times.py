"""Times of timers: integers in microseconds, datetimes, and times after a duration."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import FunctionFailedError, InvalidDurationError, InvalidFunctionError

ZURICH = dt.timezone(dt.timedelta(hours=1))
HOUR = 3_600_000_000


def fired(set_timer: Any, *, timed: bool = True) -> list[int]:
    """Return the times at which `on_timer` was called, after a row at an hour past the epoch."""

    class Sets(gw.functions.KeyedProcessFunction):
        def process_element(self, row: Any, context: Any) -> None:
            del row
            set_timer(context)

        def on_timer(self, time: int, context: Any) -> Any:
            del context
            return [{"at": time}]

    rows: Any = gw.stream(pa.table({"k": ["a"], "ts": [HOUR]}))
    if timed:
        rows = rows.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    result = rows.key_by("k").process(Sets(), output=pa.schema([("at", pa.int64())]))
    return list(result["at"].to_pylist())


@pytest.mark.parametrize(
    ("time", "at"),
    [
        (lambda c: c.after("10 minutes"), HOUR + 600_000_000),
        (lambda c: c.after(dt.timedelta(milliseconds=3)), HOUR + 3_000),
        (lambda c: c.after("-1 s"), HOUR - 1_000_000),
        (lambda c: c.after("1 s", 5), 1_000_005),
        (lambda _: dt.datetime(1970, 1, 1, 2, tzinfo=dt.UTC), 2 * HOUR),
        (lambda _: dt.datetime(1970, 1, 1, 3, tzinfo=ZURICH), 2 * HOUR),
        (lambda _: dt.datetime(1970, 1, 1, 2), 2 * HOUR),  # in UTC
    ],
)
def test_a_timer_is_set_at_a_time(time: Any, at: int) -> None:
    assert fired(lambda context: context.register_event_time_timer(time(context))) == [at]


def test_timers_that_look_like_milliseconds_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert fired(lambda c: c.register_event_time_timer(1_777_636_800_000)) == [1_777_636_800_000]
    assert "look like milliseconds since 1970: context.after('30 minutes')" in caplog.text


def test_a_timer_is_deleted_by_a_datetime() -> None:
    def set_and_delete(context: Any) -> None:
        context.register_event_time_timer(2 * HOUR)
        context.delete_event_time_timer(dt.datetime(1970, 1, 1, 2, tzinfo=dt.UTC))

    assert fired(set_and_delete) == []


@pytest.mark.parametrize(
    ("error", "text", "set_timer"),
    [
        (
            FunctionFailedError,
            r"times are microseconds: context\.after\(duration\)",
            lambda c: c.timestamp + dt.timedelta(minutes=1),
        ),
        (
            InvalidFunctionError,
            r"context\.after\(duration\) is one .*key k='a'.*, got datetime\.timedelta",
            lambda c: c.register_event_time_timer(dt.timedelta(minutes=1)),
        ),
        (
            InvalidFunctionError,
            "sets timers at ticks",
            lambda c: c.register_event_time_timer("2026-05-01"),
        ),
        (FunctionFailedError, InvalidDurationError.__name__, lambda c: c.after("1 month")),
        (
            FunctionFailedError,
            "no attribute 'registerEventTimeTimer': did you mean register_event_time_timer",
            lambda c: c.registerEventTimeTimer(HOUR),
        ),
    ],
)
def test_what_is_no_time_says_what_is_one(error: Any, text: str, set_timer: Any) -> None:
    with pytest.raises(error, match=text):
        fired(set_timer)


def test_without_event_time_the_clock_is_named() -> None:
    with pytest.raises(InvalidFunctionError, match="current_processing_time"):
        fired(lambda context: context.after("1 s"), timed=False)
