"""Windows of months in SQL, which Flink refuses: in the zone of the times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from tests.planning.queries import rows_of

ZURICH = "Europe/Zurich"
CALLS: dict[str, tuple[str, dict[str, Any], tuple[str, dict[str, Any]]]] = {
    "months": ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MONTH)", {}, ("1 month", {})),
    "fiscal": (
        "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' YEAR, INTERVAL '3' MONTH)",
        {"offset": "3 months"},
        ("1 year", {"offset": "3 months"}),
    ),
    "sliding": (
        "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MONTH, INTERVAL '3' MONTH)",
        {"slide": "1 month"},
        ("1 month", {}),
    ),
    "to date": (
        "CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '1' MONTH)",
        {"step": "1 day"},
        ("1 day", {}),
    ),
}
SIZES = {"months": "1 month", "fiscal": "1 year", "sliding": "3 months", "to date": "1 month"}


def table(zone: str | None) -> pa.Table:
    rng = np.random.default_rng(2)
    low, high = (int(np.datetime64(at, "us").astype(np.int64)) for at in ("2023-10", "2024-05"))
    times = pa.array(np.sort(rng.integers(low, high, 80))).cast(pa.timestamp("us", zone))
    return pa.table({"ts": times, "k": rng.integers(0, 3, 80)})


def timed(zone: str | None) -> gw.typing.TimedStream:
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    return gw.stream(table(zone)).event_time("ts", strategy)


def sql(text: str, zone: str | None = ZURICH) -> Any:
    return gw.sql(text, t=timed(zone))


@pytest.mark.parametrize("zone", [ZURICH, None])
@pytest.mark.parametrize("name", CALLS)
def test_windows_have_the_zone_of_times(name: str, zone: str | None) -> None:
    call, options, _ = CALLS[name]
    text = f"SELECT k, window_start, window_end, COUNT(*) AS n FROM {call} GROUP BY k, "
    windows = gw.CalendarWindows.of(SIZES[name], time_zone=zone, **options)
    wanted = timed(zone).key_by("k").window(windows).aggregate(n=gw.count())
    found = sql(f"{text} window_start, window_end", zone).result()
    assert len(found) > 5
    assert rows_of(found) == rows_of(wanted)


@pytest.mark.parametrize("name", CALLS)
def test_results_are_grouped_by_their_windows_again(name: str) -> None:
    call, options, (size, of_ends) = CALLS[name]
    group = "GROUP BY {}window_start, window_end"
    inner = f"SELECT window_start, window_end, k, COUNT(*) AS n FROM {call} {group.format('k, ')}"
    outer = f"SELECT window_start, window_end, SUM(n) AS n FROM ({inner}) {group.format('')}"
    windows = gw.CalendarWindows.of(SIZES[name], time_zone=ZURICH, **options)
    wanted = timed(ZURICH).window_all(windows).aggregate(n=gw.count())
    assert rows_of(sql(outer).result()) == rows_of(wanted)
    assert windows.is_tumbling or windows.by_end == gw.CalendarWindows.of(
        size, time_zone=ZURICH, **of_ends
    )


def test_group_by_takes_months() -> None:
    text = "SELECT TUMBLE_START(ts, INTERVAL '1' QUARTER) AS s, COUNT(*) AS n FROM t "
    found = sql(f"{text} GROUP BY TUMBLE(ts, INTERVAL '1' QUARTER)")
    assert "gw.CalendarWindows.of('1 quarter', time_zone='Europe/Zurich')" in found.explain()
    assert sum(found.result()["n"].to_pylist()) == 80
