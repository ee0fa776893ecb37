"""The queries of the tutorial (`docs/tutorial.md`), each tested with `gpu_windows.testing`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.testing import assert_rows, assert_runs_agree, harness
from gpu_windows.testing.times import table_of
from tests.docs.pages import DOCS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLIGHTS = pa.schema(
    {
        "origin": pa.string(),
        "carrier": pa.string(),
        "dep": pa.timestamp("us", "UTC"),
        "dep_delay": pa.int64(),
        "sched_dep": pa.timestamp("us", "UTC"),
    }
)
WEATHER = pa.schema(
    {"origin": pa.string(), "hour": pa.timestamp("us", "UTC"), "visibility": pa.float64()}
)
MINUTES = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 minutes")


def by_airport(flights: Any) -> Any:
    daily = gw.WatermarkStrategy.for_bounded_out_of_orderness("1 day")
    return flights.event_time("dep", daily).key_by("origin")


def hours(flights: Any) -> Any:
    """First windows."""
    timed = flights.event_time("dep", MINUTES).key_by("origin")
    windowed = timed.window(gw.SlidingEventTimeWindows.of("60 minutes", "10 minutes"))
    return windowed.with_outputs().aggregate(departures=gw.count(), delay=gw.mean("dep_delay"))


def sessions(flights: Any) -> Any:
    """Another window."""
    timed = flights.event_time("dep", MINUTES).key_by("carrier")
    windowed = timed.window(gw.EventTimeSessionWindows.with_gap("4 hours"))
    return windowed.with_outputs().aggregate(flights=gw.count(), worst=gw.max("dep_delay"))


def pairs(flights: Any, weather: Any) -> Any:
    """A join."""
    left = flights.event_time("dep", MINUTES).key_by("origin")
    right = weather.event_time("hour", MINUTES).key_by("origin")
    join = left.interval_join(right).between("-1 hour", "1 hour").nearest("either")
    return join.with_outputs().select(["dep_delay"], ["visibility"], prefixes=("", ""))


def weeks(flights: Any) -> Any:
    """The same as a stream."""
    windowed = by_airport(flights).window(gw.TumblingEventTimeWindows.of("7 days"))
    return windowed.with_outputs().aggregate(departures=gw.count(), delay=gw.mean("dep_delay"))


def early(flights: Any) -> Any:
    """Early results."""
    months = by_airport(flights).window(gw.TumblingEventTimeWindows.of("28 days"))
    triggered = months.trigger(gw.ContinuousEventTimeTrigger.of("7 days")).with_firing_columns()
    return triggered.with_outputs().aggregate(departures=gw.count())


QUERIES: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (hours, sessions, pairs, weeks, early)
}


def flight(dep: str | None, delay: int | None = 0, origin: str = "JFK") -> dict[str, Any]:
    """Return a flight of carrier B6, or of END if its airport is called so."""
    carrier = "END" if origin == "END" else "B6"
    time = dep and f"2013-{dep}"
    return {"origin": origin, "carrier": carrier, "dep": time, "dep_delay": delay}


def reading(hour: str, visibility: float, origin: str = "JFK") -> dict[str, Any]:
    return {"origin": origin, "hour": f"2013-{hour}", "visibility": visibility}


@pytest.mark.parametrize("name", QUERIES)
def test_the_query_is_in_the_tutorial(name: str) -> None:
    page = (DOCS / "tutorial.md").read_text()
    source = inspect.getsource(QUERIES[name])
    assert f"\n## {QUERIES[name].__doc__}\n".replace(".\n", "\n") in page
    calls = re.findall(r"gw\.[A-Z]\w+\.\w+\(\"[^)]*\)|\w+=gw\.\w+\([^)]*\)", source)
    calls += re.findall(r"between\([^)]*\)|nearest\([^)]*\)", source)
    assert calls
    assert [call for call in calls if call not in page] == []


def test_first_windows() -> None:
    test = harness(hours, FLIGHTS)
    test.push([flight("01-01 10:17", 2), flight("01-01 10:25", 4)])
    test.advance_watermark()
    fired = {"origin": "JFK", "window_start": "2013-01-01 09:20", "window_end": "2013-01-01 10:20"}
    assert_rows(test.take(), [{**fired, "departures": 1, "delay": 2.0}])
    test.push([flight(None, None), flight("01-01 09:19", 9), flight("01-01 10:15", 6)])
    assert_rows(
        test.take("rejected"),
        [{"rejection_reason": "null_timestamp"}],
        columns=["rejection_reason"],
    )
    late = [flight("01-01 09:19", 9)]
    assert_rows(test.take("late"), late, columns=list(late[0]))
    test.advance_watermark("2013-01-01 10:29:59.999999")
    found = [{"window_end": "2013-01-01 10:30:00", "departures": 3, "delay": 4.0}]
    assert_rows(test.take(), found, columns=list(found[0]))
    assert (test.counters.rows, test.counters.late, test.counters.null_timestamp) == (5, 1, 1)


def test_a_session_of_a_carrier() -> None:
    test = harness(sessions, FLIGHTS)
    test.push([flight("01-01 10:00", 2), flight("01-01 18:00", 1), flight("01-01 13:59", 4)])
    test.advance_watermark("2013-01-01 17:58")
    assert len(test.take()) == 0
    test.push([flight("01-01 14:00", 9, "LGA")])
    test.end_input()
    bounds = {"window_start": "2013-01-01 10:00", "window_end": "2013-01-01 22:00"}
    assert_rows(test.take(), [{"carrier": "B6", **bounds, "flights": 4, "worst": 9}])
    assert set(test.state_size().values()) == {0}


def test_a_flight_waits_for_the_nearest_reading() -> None:
    test = harness(pairs, flights=FLIGHTS, weather=WEATHER)
    test.push(flights=[flight("01-01 10:40", 2), flight("01-01 10:40", 3, "LGA")])
    test.push(weather=[reading("01-01 10:00", 10.0)])
    test.advance_watermark("2013-01-01 10:50")
    assert len(test.take()) == 0
    snapshot = test.snapshot()
    test = harness(pairs, flights=FLIGHTS, weather=WEATHER)
    test.restore(snapshot)
    test.push(weather=[reading("01-01 11:00", 0.25), reading("01-01 12:00", 1.0)])
    test.advance_watermark("2013-01-01 13:00")
    assert_rows(test.take(), [{"origin": "JFK", "dep_delay": 2, "visibility": 0.25}])


def test_a_week_and_a_late_flight() -> None:
    test = harness(weeks, FLIGHTS)
    test.push([flight("01-02 10:00", 10), flight("01-03 23:59", 1)])
    test.advance_watermark()
    assert len(test.take()) == 0  # a day behind the latest departure
    test.push([flight("01-02 11:00", 20), flight("01-04 00:00:00.000001", 1)])
    test.advance_watermark()
    first = {"window_start": "2012-12-27", "window_end": "2013-01-03"}
    assert_rows(test.take(), [{"origin": "JFK", **first, "departures": 2, "delay": 15.0}])
    test.push([flight("01-02 11:00", 99)])
    assert test.take("late")["dep_delay"].to_pylist() == [99]


def test_four_weeks_fire_each_week() -> None:
    test = harness(early, FLIGHTS)
    for day in ("01-04", "01-12", "01-19", "02-02"):
        test.push([flight(f"{day} 10:00")])
        test.advance_watermark()
    columns = ["firing", "timing", "departures"]
    expected = [(0, "early", 2), (1, "early", 3), (2, "early", 3), (3, "on_time", 3)]
    rows = [dict(zip(columns, row, strict=True)) for row in expected]
    assert_rows(test.take(), rows, columns=columns, in_order=True)


#: Numbers of results.
RESULTS = {"hours": 27, "sessions": 3, "pairs": 4, "weeks": 3, "early": 4}


@pytest.fixture(scope="module")
def rows() -> dict[str, pa.Table]:
    """Return flights and readings, the last of them far ahead and at an airport called END."""
    flights = [flight("01-01 10:17", 2), flight("01-01 10:42", 4), flight("01-01 10:40", 9, "LGA")]
    flights += [flight(None, None), flight("01-02 10:17", 2), flight("01-20 10:17")]
    weather = [reading("01-01 10:00", 10.0), reading("01-01 11:00", 1.0, "LGA")]
    weather += [reading("01-02 11:00", 2.0), reading("03-20 11:00", 9.0, "END")]
    return {
        "flights": table_of([*flights, flight("03-20 10:00", 0, "END")], FLIGHTS),
        "weather": table_of(weather, WEATHER),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("name", QUERIES)
def test_a_stream_agrees(name: str, spark: SparkSession, rows: dict[str, pa.Table]) -> None:
    found = run_three_ways(name, spark, rows)
    assert len(found) == RESULTS[name]


def test_a_batch_agrees(spark: SparkSession, rows: dict[str, pa.Table]) -> None:
    found = run_three_ways("sessions", spark, rows, compare_stream=False)
    assert len(found) == RESULTS["sessions"]


def run_three_ways(
    name: str, spark: SparkSession, rows: dict[str, pa.Table], compare_stream: bool = True
) -> pa.Table:
    """Return the results without those of the airport that ends the stream."""
    key = "carrier" if name == "sessions" else "origin"

    def query(**streams: Any) -> Any:
        return QUERIES[name](**streams).select(where=f"{key} <> 'END'")

    inputs = rows if name == "pairs" else {"flights": rows["flights"]}
    return assert_runs_agree(query, spark, compare_stream=compare_stream, **inputs)
