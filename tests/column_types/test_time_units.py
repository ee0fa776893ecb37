"""Integers that look like seconds or milliseconds are warned of, once, and stay as they are."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw

NOW = 1_780_000_000
HOURS = gw.TumblingEventTimeWindows.of("1 hour")
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()


def warnings(times: Any, caplog: pytest.LogCaptureFixture, **columns: Any) -> list[str]:
    """Return what is logged of a column of event times."""
    with caplog.at_level(logging.WARNING, "gpu_windows.column_types.time_units"):
        rows = gw.stream(pa.table({"t": times, **columns}))
        hours = rows.event_time("t", WATERMARKS).window_all(HOURS)
        counts = hours.aggregate(n=gw.count())
        assert sum(counts["n"].to_pylist()) == len(times) - times.null_count
    return caplog.messages


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("factor", "unit"), [(1, "'s'"), (1_000, "'ms'")])
def test_seconds_and_milliseconds_are_warned_of(
    factor: int, unit: str, wide: bool, caplog: pytest.LogCaptureFixture
) -> None:
    more = {"large": pa.array(["a"] * 3, pa.large_string())} if wide else {}
    times = pa.array([NOW * factor, None, NOW * factor + 60], pa.int64())
    (message,) = warnings(times, caplog, **more)
    assert "column 't'" in message
    assert f"cast(pa.timestamp({unit}, 'UTC'))" in message


@pytest.mark.parametrize(
    "times",
    [
        pa.array([NOW * 1_000_000], pa.int64()),
        pa.array([0, NOW], pa.int64()),
        pa.array([NOW, NOW * 1_000], pa.int64()),
        pa.array([], pa.int64()),
        pa.array([None], pa.int64()),
        pa.array([NOW * 1_000_000], pa.timestamp("us", "UTC")),
        pa.array([1, NOW * 1_000, None], pa.int64()).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([7], pa.int64())),
        pa.array([NOW, NOW], pa.uint32()),
    ],
)
def test_others_are_not(times: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(times, caplog) == []
