"""Windows of several lengths and of days, and ranks of times: whole queries on both devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from tests.planning.queries import rows_of

LENGTHS = gw.MultiLengthEventTimeWindows.of("10 seconds", "1 minute", "2 minutes")
AGGREGATES = {
    "n": gw.count(),
    "total": gw.sum("v"),
    "most": gw.max("f"),
    "spread": gw.stddev("v"),
    "text": gw.arg_max("text", "v"),
}


def keyed(rows: int = 150, seconds: int = 300) -> gw.typing.KeyedStream:
    rng = np.random.default_rng(3)
    times = np.sort(rng.integers(0, seconds * 1_000_000, rows))
    table = pa.table(
        {
            "k": rng.integers(0, 4, rows),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "v": rng.integers(-5, 100, rows),
            "f": rng.random(rows),
            "text": [*map(str, range(rows))],
        }
    )
    timed = gw.stream(table).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    return timed.key_by("k")


@pytest.mark.parametrize("changed", [False, True])
def test_lengths(changed: bool) -> None:
    def found(device: Any) -> pa.Table:
        windows = keyed().window(LENGTHS).options(device=device)
        return (windows.changed_keys() if changed else windows).aggregate(**AGGREGATES)

    on_cpu = rows_of(found("cpu"))
    assert len(on_cpu) > 50
    assert rows_of(found("cuda")) == on_cpu


@pytest.mark.parametrize("period", ["1 day", "1 month"])
def test_calendar_windows(period: str) -> None:
    def found(device: Any) -> pa.Table:
        rows = keyed(2_000, seconds=800 * 86_400)
        windows = rows.window(gw.CalendarWindows.of(period, time_zone="America/New_York"))
        return windows.options(device=device).aggregate(**AGGREGATES)

    on_cpu = rows_of(found("cpu"))
    assert len(on_cpu) > 100
    assert rows_of(found("cuda")) == on_cpu


def test_ranks_of_times() -> None:
    def found(device: Any) -> pa.Table:
        over = keyed().over(gw.Rows(3)).options(device=device)
        return over.aggregate(["v"], dense=gw.dense_rank(), rank=gw.rank())

    assert rows_of(found("cuda")) == rows_of(found("cpu"))
