"""Windows of the calendar give the same row at a time, from slices, from stored rows and in SQL."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import ColumnTypeError, InvalidWindowError
from tests.lanes import quick
from tests.planning.queries import rows_of

ZURICH = "Europe/Zurich"
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()
ORDER = [(name, "ascending") for name in ("k", "window_start", "window_end")]
WINDOWS: dict[str, Any] = {
    "months": gw.CalendarWindows.of("1 month", time_zone=ZURICH),
    "sliding": gw.CalendarWindows.of("3 months", slide="1 month", time_zone=ZURICH),
    "not dividing": gw.CalendarWindows.of("3 weeks", slide="2 weeks", time_zone=ZURICH),
    "days": gw.CalendarWindows.of("1 day", time_zone="Pacific/Apia"),
    "weeks": gw.CalendarWindows.of("1 week", time_zone="Asia/Beirut", week_start="sunday"),
    "month to date": gw.CalendarWindows.of("1 month", step="1 day", time_zone="Pacific/Apia"),
    "year to date": gw.CalendarWindows.of("1 year", step="1 quarter", time_zone="-03:00"),
}


def table(rows: int = 1500, years: tuple[str, str] = ("2010", "2014")) -> pa.Table:
    rng = np.random.default_rng(1)
    low, high = (int(np.datetime64(year, "us").astype(np.int64)) for year in years)
    times = pa.array(np.sort(rng.integers(low, high, rows)), mask=rng.random(rows) < 0.02)
    return pa.table(
        {
            "k": rng.integers(0, 4, rows),
            "v": rng.integers(0, 100, rows),
            "ts": times.cast(pa.timestamp("us", "UTC")),
        }
    )


def windowed(rows: pa.Table, name: str, **options: Any) -> gw.typing.WindowedStream:
    timed = gw.stream(rows).event_time("ts", WATERMARKS).key_by("k")
    return timed.window(WINDOWS[name]).options(**options)


@pytest.mark.parametrize("name", quick(WINDOWS, "months", "month to date"))
def test_every_engine_gives_the_same(name: str) -> None:
    rows = table()
    aggregates: dict[str, Any] = {"n": gw.count(), "total": gw.sum("v")}
    wanted = windowed(rows, name, engine="reference").aggregate(**aggregates).sort_by(ORDER)
    assert windowed(rows, name).aggregate(**aggregates).sort_by(ORDER).equals(wanted)
    of_rows = windowed(rows, name).aggregate(**aggregates, median=gw.median("v")).sort_by(ORDER)
    assert of_rows.drop_columns(["median"]).equals(wanted)
    assert len(wanted) > 10


def test_rows_have_their_windows() -> None:
    rows = table(300)
    timed = gw.stream(rows).event_time("ts", WATERMARKS)
    for name in ("sliding", "month to date"):
        found = timed.with_windows(WINDOWS[name], columns=["k", "v"]).result()
        counted = found.group_by(["k", "window_start", "window_end"]).aggregate([("v", "sum")])
        wanted = windowed(rows, name).aggregate(v_sum=gw.sum("v")).sort_by(ORDER)
        assert counted.sort_by(ORDER)["v_sum"].equals(wanted["v_sum"]), name


def test_times_far_away_are_in_windows_or_counted() -> None:
    days = [datetime(1, 1, 1), datetime(9999, 12, 31, 23), None]
    rows = pa.table({"ts": pa.array(days, pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))})
    beyond = pa.array([2**62, -(2**62)], pa.int64()).cast(pa.timestamp("us", "UTC"))
    rows = pa.concat_tables([rows, pa.table({"ts": beyond})])
    years = gw.CalendarWindows.of("40 years", slide="20 years", time_zone="Pacific/Kiritimati")
    timed = gw.stream(rows).event_time("ts", WATERMARKS)
    outputs = timed.window_all(years).with_outputs().aggregate(n=gw.count())
    assert outputs.result()["n"].to_pylist() == [1, 1, 1, 1]
    counters = outputs.metrics().to_pylist()[0]
    assert (counters["out_of_range_timestamp"], counters["null_timestamp"]) == (2, 1)


def test_a_zone_belongs_to_instants() -> None:
    rows = table(5)
    with pytest.raises(ColumnTypeError, match="need the zone") as raised:
        gw.stream(rows).event_time("ts", WATERMARKS).window_all(
            gw.CalendarWindows.of("1 day")
        ).aggregate(n=gw.count())
    assert raised.value.column == "ts"
    local = rows.set_column(2, "ts", rows["ts"].cast(pa.timestamp("us")))
    timed = gw.stream(local).event_time("ts", WATERMARKS)
    with pytest.raises(ColumnTypeError, match="leave time_zone out"):
        timed.window_all(WINDOWS["months"]).aggregate(n=gw.count())
    with pytest.raises(ColumnTypeError, match="leave time_zone out"):
        timed.with_windows(WINDOWS["months"])
    found = timed.window_all(gw.CalendarWindows.of("1 year")).aggregate(n=gw.count())
    assert found["window_start"][0].as_py() == datetime(2010, 1, 1)


def test_parts_of_windows_have_a_length() -> None:
    with pytest.raises(InvalidWindowError, match="within is for windows of one length"):
        windowed(table(5), "sliding").aggregate(n=gw.count().within("1 day"))


def test_results_of_months_are_in_windows_of_years() -> None:
    rows = table(200)
    months = windowed(rows, "months").with_outputs().aggregate(n=gw.count())
    years = gw.CalendarWindows.of("1 year", time_zone=ZURICH)
    found = gw.stream_results(months).key_by("k").window(years).aggregate(n=gw.sum("n"))
    timed = gw.stream(rows).event_time("ts", WATERMARKS).key_by("k")
    assert found.sort_by(ORDER).equals(timed.window(years).aggregate(n=gw.count()).sort_by(ORDER))


@pytest.mark.parametrize("name", ["months", "sliding", "days"])
def test_keys_that_changed_have_rows_in_the_last_slide(name: str) -> None:
    rows, found = table(300), []
    for engine in ("auto", "reference"):
        changed = windowed(rows, name, engine=engine).changed_keys()
        found.append(rows_of(changed.aggregate(n=gw.count())))
    assert found[0] == found[1]
    every = windowed(rows, name).aggregate(n=gw.count())
    assert (len(found[0]) < len(every)) == (name == "sliding")


@pytest.mark.parametrize("name", quick(WINDOWS, "sliding", "month to date"))
def test_joins_and_triggers_are_alike_in_every_engine(name: str) -> None:
    rows, found = table(300), []
    for engine in ("auto", "reference"):
        left, right = (
            gw.stream(side).event_time("ts", WATERMARKS).key_by("k")
            for side in (rows.slice(0, 150), rows.slice(100))
        )
        pairs = left.join(right).window(WINDOWS[name]).options(engine=engine)
        early = windowed(rows, name, engine=engine).trigger(
            gw.ContinuousEventTimeTrigger.of("10 days")
        )
        of_pairs = pairs.select(["v"], ["v"], how="full")
        found.append((rows_of(of_pairs), rows_of(early.aggregate(n=gw.count()))))
    assert found[0] == found[1]
    assert all(len(part) > 20 for part in found[0])
