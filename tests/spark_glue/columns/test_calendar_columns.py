"""Spark's expressions find the units of the calendar that `gpu_windows.rules.slicing` finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import gpu_windows as gw
from gpu_windows import rules
from gpu_windows.planning.plan import PartialsBy
from gpu_windows.spark_glue.columns.calendar_columns import UNIT, with_unit
from tests.lanes import quick
from tests.planning.queries import counters_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY, HOUR = 86_400_000_000, 3_600_000_000
ZONES = (
    "Europe/Zurich", "Africa/Casablanca", "Pacific/Apia", "America/Sao_Paulo", "Africa/Cairo",
    "America/Scoresbysund", "Asia/Manila", "Antarctica/Troll", "Asia/Beirut", "-03:00", None,
)  # fmt: skip
WATERMARKS = gw.WatermarkStrategy.for_monotonous_timestamps()


def windows_of(zone: str | None) -> dict[str, gw.CalendarWindows]:
    return {
        "day": gw.CalendarWindows.of("1 week", time_zone=zone),
        "month": gw.CalendarWindows.of("2 years", slide="1 quarter", time_zone=zone),
        "day of month": gw.CalendarWindows.of("1 month", step="1 day", time_zone=zone),
    }


def times_near_changes(windows: gw.CalendarWindows, rng: np.random.Generator) -> NDArray[np.int64]:
    """Times anywhere, beyond those that are usable, and where days are not of 24 hours."""
    low, high = windows.usable_ticks
    changes = np.asarray(windows.units.ticks)[:-1]
    near = np.concatenate([changes[-50:], rng.choice(changes, min(len(changes), 500))])
    shifts = np.array([-DAY, -HOUR, -1, 0, 1, HOUR, DAY - 1, DAY, DAY + HOUR])
    ends = np.array([low - 1, low, high, high + 1, rules.LONG_MIN, rules.LONG_MAX, 0, -1])
    # The bounds of our table of the days of 1,100 years, and of the cycles after and before it.
    days = windows.shown_days
    cycles = np.arange(-3, 4)[:, None] * (146_097 * DAY)
    edges = np.array([days.begins[0] - 1, days.begins[0], days.end - 1, days.end]) + cycles
    random = rng.integers(low, high, 2_000)
    return np.concatenate([(near[:, None] + shifts).ravel(), ends, edges.ravel(), random])


@pytest.mark.parametrize("zone", quick(ZONES, "America/Sao_Paulo"))
def test_rows_are_in_the_units_of_our_rules(spark: SparkSession, zone: str | None) -> None:
    rng = np.random.default_rng(3)
    of_unit = windows_of(zone)
    times = np.concatenate([times_near_changes(each, rng) for each in of_unit.values()])
    frame = spark.createDataFrame(pa.table({"a time": times}))
    for unit, windows in of_unit.items():
        assert windows.unit == unit
        frame = with_unit(frame, "a time", windows).withColumnRenamed(UNIT, unit)
    found = frame.toArrow()
    rows = found["a time"].to_numpy()
    for unit, windows in of_unit.items():
        low, high = windows.usable_ticks
        wanted = rules.unit_of(np.clip(rows, low, high), windows.units)
        is_usable = (rows >= low) & (rows <= high)
        assert found[unit].is_valid().to_numpy().tolist() == is_usable.tolist()
        assert (found[unit].fill_null(0).to_numpy() == np.where(is_usable, wanted, 0)).all(), unit


@pytest.mark.parametrize("name", quick(("months", "to date", "weeks"), "months"))
def test_spark_makes_the_partials_of_a_calendar(spark: SparkSession, name: str) -> None:
    zone = "Pacific/Apia"
    windows = {
        "months": gw.CalendarWindows.of("1 month", time_zone=zone),
        "to date": gw.CalendarWindows.of("1 quarter", step="1 day", time_zone=zone),
        "weeks": gw.CalendarWindows.of(
            "3 weeks", slide="2 weeks", time_zone=zone, week_start="sunday"
        ),
    }[name]
    rng = np.random.default_rng(1)
    low, high = (int(np.datetime64(year, "us").astype(np.int64)) for year in ("2011", "2012"))
    times = np.append(rng.integers(low, high, 300), [2**62, -(2**62)])
    rows = pa.table(
        {
            "k": rng.integers(0, 3, len(times)),
            "v": rng.integers(0, 100, len(times)),
            "ts": pa.array(times, mask=rng.random(len(times)) < 0.1).cast(
                pa.timestamp("us", "UTC")
            ),
        }
    )
    found = []
    for source in (rows, spark.createDataFrame(rows)):
        keyed = gw.stream(source).event_time("ts", WATERMARKS).key_by("k").window(windows)
        asked = keyed.options(partials="spark").with_outputs()
        found.append(asked.aggregate(n=gw.count(), total=gw.sum("v")))
    local, outputs = found
    assert outputs.plan.partials_by is PartialsBy.SPARK
    assert rows_of(outputs.result().toArrow()) == rows_of(local.result())
    assert counters_of(outputs.metrics()) == counters_of(local.metrics())
