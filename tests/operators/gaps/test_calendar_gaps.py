"""Windows of a calendar that have no rows: months and days are not all of one length."""

from __future__ import annotations

import datetime as dt
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.operators.gaps.numbering import WindowNumbers
from tests.examples import examples
from tests.operators.gaps.model import Filling, fill
from tests.planning.queries import rounded

HOUR = 3_600_000_000
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
#: Clocks skipped 30 December 2011 there.
SAMOA = {"time_zone": "Pacific/Apia"}
ASSIGNERS = {
    "days": gw.CalendarWindows.of("1 day", **SAMOA),
    "sliding days": gw.CalendarWindows.of("3 days", slide="1 day", **SAMOA),
    "weeks": gw.CalendarWindows.of("1 week", **SAMOA),
    "months": gw.CalendarWindows.of("1 month", **SAMOA),
    "days of weeks": gw.CalendarWindows.of("1 week", step="1 day", **SAMOA),
    "days of months": gw.CalendarWindows.of("1 month", step="1 day", **SAMOA),
}
BEGIN = int(dt.datetime(2011, 12, 10, tzinfo=dt.UTC).timestamp()) * 1_000_000
#: Hours from there to the middle of March: February has 29 days.
HOURS = 24 * 95


@cache
def windows_of(name: str) -> list[tuple[int, int]]:
    """Return all windows of the hours, and some before and after, in order: days or longer."""
    assigner, hours = ASSIGNERS[name], range(-24 * 40, HOURS + 24 * 75, 6)
    found = {(w.start, w.end) for at in hours for w in assigner.assign(BEGIN + at * HOUR)}
    return sorted(found, key=lambda window: (window[1], window[0]))


@examples(50)
@given(
    st.sampled_from([*ASSIGNERS]),
    st.lists(st.integers(0, HOURS), min_size=1, max_size=5),
    st.one_of(st.none(), st.integers(1, 40)),
    st.one_of(st.none(), st.integers(0, 60)),
)
def test_a_model_fills_the_same(
    name: str, hours: list[int], until: int | None, start: int | None
) -> None:
    assigner = ASSIGNERS[name]
    ticks = [BEGIN + hour * HOUR for hour in hours]
    times = pa.array(ticks, pa.timestamp("us", "UTC"))
    table = pa.table({"k": ["a"] * len(hours), "ts": times, "v": [float(h) for h in hours]})
    by_key = gw.stream(table).event_time("ts", WATERMARKS).key_by("k")
    aggregates = {"n": gw.count(), "last": gw.last("v"), "line": gw.mean("v")}
    how: dict[str, Any] = {"carry_forward": "last"}
    filling = Filling({"n": 0, "last": None, "line": None}, ("last",))
    if not name.startswith("days of"):
        how["interpolate"] = "line"
        filling = Filling(filling.of_no_rows, ("last",), ("line",))
    if start is not None:
        bounds = [BEGIN + day * 24 * HOUR for day in (start, start + (until or 30))]
        instants = [dt.datetime.fromtimestamp(at // 1_000_000, dt.UTC) for at in bounds]
        how |= {"keys": ["a", "b"], "start": instants[0], "end": instants[1]}
        of_keys: Any = {"given": [("a",), ("b",)], "start": bounds[0], "end": bounds[1]}
        filling = Filling(filling.of_no_rows, ("last",), filling.interpolate, **of_keys)
    elif until is not None:
        how["until"] = dt.timedelta(days=until)
        lasting = until * 24 * HOUR
        filling = Filling(filling.of_no_rows, ("last",), filling.interpolate, lasting)
    found = in_ticks(by_key.window_gapfill(assigner, **how).aggregate(**aggregates))
    whole = in_ticks(by_key.window(assigner).aggregate(**aggregates))
    results = {
        ((row["k"],), (row["window_start"], row["window_end"])): {x: row[x] for x in aggregates}
        for row in whole
    }
    wanted = fill(results, windows_of(name), filling)
    rows = [(*key, *window, *values.values()) for (key, window), values in wanted.items()]
    assert rounded(map(_values, found)) == rounded(rows)


def in_ticks(results: pa.Table) -> list[dict[str, Any]]:
    for at, name in enumerate(["window_start", "window_end"], 1):
        results = results.set_column(at, name, results[name].cast(pa.int64()))
    rows: list[dict[str, Any]] = results.to_pylist()
    return rows


def _values(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())


@pytest.mark.parametrize("name", ASSIGNERS)
def test_windows_have_numbers_in_order(name: str) -> None:
    numbers, windows = WindowNumbers(ASSIGNERS[name]), np.array(windows_of(name))
    starts, ends = windows[:, 0], windows[:, 1]
    found = numbers.of_bounds(starts, ends)
    np.testing.assert_array_equal(numbers.starts(found), starts)
    np.testing.assert_array_equal(numbers.ends(found), ends)
    assert not numbers.are_void(found).any()
    every = np.arange(found[0], found[-1] + 1)
    np.testing.assert_array_equal(every[~numbers.are_void(every)], found)
    for number, end in zip(found.tolist(), ends.tolist(), strict=True):
        assert numbers.last_ended(end - 2) < number <= numbers.last_ended(end - 1)


def test_months_are_filled_where_clocks_change() -> None:
    zone = ZoneInfo("Europe/Zurich")
    times = [dt.datetime(2024, month, 5, tzinfo=zone) for month in (1, 5)]
    table = pa.table({"k": ["a", "a"], "v": [0.0, 1.0], "ts": times})
    by_key = gw.stream(table).event_time("ts", WATERMARKS).key_by("k")
    months = gw.CalendarWindows.of("1 month", time_zone="Europe/Zurich")
    found = by_key.window_gapfill(months, interpolate="v").aggregate(v=gw.mean("v"))
    assert found["v"].to_pylist() == [0, 0.25, 0.5, 0.75, 1]
    local = [start.astimezone(zone) for start in found["window_start"].to_pylist()]
    assert [(start.month, start.day, start.hour) for start in local] == [
        (month, 1, 0) for month in range(1, 6)
    ]
