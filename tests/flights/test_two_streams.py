"""The second half of the demo: flights with the weather, departures with arrivals."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest
from rich.console import Console

from examples.flights import flights, report, two_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return flights.cached_flights(folder=tmp_path_factory.mktemp("flights"))
    except flights.FlightsUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def year(file: Path) -> pd.DataFrame:
    return pd.read_parquet(file)


def departures(*rows: tuple[str, str | None, int | None, str | None]) -> pa.Table:
    """Flights of 1 May 2013: airport, departure, delay, arrival."""
    names = ["origin", "dep", "dep_delay", "arr"]
    table = pd.DataFrame(list(rows), columns=names).astype({"dep_delay": "Int32"})
    for name in ("dep", "arr"):
        table[name] = pd.to_datetime("2013-05-01 " + table[name].astype("string"), utc=True)
    types = [pa.string(), pa.timestamp("us", "UTC"), pa.int32(), pa.timestamp("us", "UTC")]
    schema = pa.schema(list(zip(names, types, strict=True)))
    return pa.Table.from_pandas(table, schema=schema, preserve_index=False)


def weather(*rows: tuple[str, str, float | None]) -> pa.Table:
    """Readings of 1 May 2013: airport, hour, visibility."""
    table = pd.DataFrame(list(rows), columns=["origin", "hour", "visibility"])
    hours = pd.to_datetime("2013-05-01 " + table["hour"], utc=True)
    return two_streams.readings(table.assign(hour=hours))


def classes(*counts: int) -> dict[str, int]:
    return dict(zip(two_streams.CLASSES, counts, strict=True))


def flown(flights_: pa.Table, readings: pa.Table) -> dict[str, int]:
    rows = two_streams.by_visibility(flights_, readings).rows
    return dict(zip(rows["visibility"], rows["flights"], strict=True))


def told_by(show: Any, *arguments: Any, width: int = 250) -> str:
    console = Console(file=io.StringIO(), width=width)
    show(console, *arguments)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def facts_of(rows: int) -> flights.Facts:
    moment = pd.Timestamp("2013-05-01", tz=flights.ZONE)
    return flights.Facts(rows, 0, 0, 0, moment, moment)


# ---- the queries


@pytest.mark.parametrize(
    ("departed", "expected"),
    [
        ("10:00", classes(0, 0, 1, 0, 0)),
        ("10:30", classes(0, 0, 1, 0, 0)),  # as near to both: the earlier one
        ("10:31", classes(1, 0, 0, 0, 0)),
        ("09:00", classes(0, 0, 1, 0, 0)),  # an hour before the reading, and no more
        ("08:59", classes(0, 0, 0, 0, 1)),
        ("12:00", classes(1, 0, 0, 0, 0)),
        ("12:01", classes(0, 0, 0, 0, 1)),
    ],
)
def test_a_flight_meets_the_nearest_reading_of_its_airport(
    departed: str, expected: dict[str, int]
) -> None:
    there = weather(("JFK", "10:00", 5.0), ("JFK", "11:00", 0.5), ("EWR", departed, 10.0))
    assert flown(departures(("JFK", departed, 0, None)), there) == expected


@pytest.mark.parametrize(
    ("miles", "place"),
    [(0.0, 0), (0.99, 0), (1.0, 1), (2.99, 1), (3.0, 2), (9.99, 2), (10.0, 3), (None, 4)],
)
def test_a_class_begins_at_its_edge(miles: float | None, place: int) -> None:
    left = departures(("JFK", "10:00", 0, None))
    expected = dict.fromkeys(two_streams.CLASSES, 0) | {two_streams.CLASSES[place]: 1}
    assert flown(left, weather(("JFK", "10:00", miles))) == expected


def test_delays_of_a_class() -> None:
    left = departures(
        *(("JFK", "10:00", delay, None) for delay in (-4, 60, 61, 300)),
        ("JFK", None, None, None),  # never left
        ("JFK", "20:00", 7, None),
    )
    rows = two_streams.by_visibility(left, weather(("JFK", "10:00", 10.0))).rows
    clear, unknown = rows.iloc[3], rows.iloc[4]
    assert tuple(clear) == ("10 and more", 4, 417 / 4, 0.5)
    assert tuple(unknown) == ("no reading", 1, 7.0, 0.0)
    assert rows.iloc[:3][["mean_delay", "late"]].isna().all(axis=None)


def test_departures_and_arrivals_of_an_hour() -> None:
    given = departures(
        ("JFK", "10:00", 0, "12:59"),
        ("JFK", "10:59", 0, "13:00"),
        ("JFK", "12:01", 0, None),  # diverted
        ("LGA", "10:30", 0, "10:59"),
        ("LGA", None, None, None),  # never left
    )
    rows = two_streams.hours(given).rows
    hour = rows["window_start"].dt.strftime("%H")
    found = set(zip(rows["origin"], hour, rows["departures"], rows["arrivals"], strict=True))
    assert found == {
        ("JFK", "10", 2, 0),
        ("JFK", "12", 1, 1),
        ("JFK", "13", 0, 1),
        ("LGA", "10", 1, 1),
    }
    assert (rows["window_end"] - rows["window_start"] == pd.Timedelta("1h")).all()


@pytest.mark.thorough
def test_spark_joins_the_year_with_the_weather(
    spark: SparkSession, file: Path, year: pd.DataFrame
) -> None:
    known = flights.read_weather().astype({"hour": year["dep"].dtype}).sort_values("hour")
    nearest = pd.merge_asof(
        year.loc[year["dep"].notna(), ["origin", "dep", "dep_delay"]].sort_values("dep"),
        known,
        left_on="dep",
        right_on="hour",
        by="origin",
        direction="nearest",
        tolerance=pd.Timedelta("1h"),
    )
    bins = [-1, *two_streams.EDGES, 1000]
    named = pd.cut(nearest["visibility"], bins, right=False, labels=two_streams.CLASSES[:-1])
    label = named.astype("object").fillna(two_streams.CLASSES[-1])
    delays = nearest.assign(late=nearest["dep_delay"] > 60).groupby(label)
    expected = delays.agg(
        flights=("dep", "size"), mean_delay=("dep_delay", "mean"), late=("late", "mean")
    ).loc[list(two_streams.CLASSES)]
    readings = spark.createDataFrame(two_streams.readings(flights.read_weather()))
    got = two_streams.by_visibility(spark.read.parquet(str(file)), readings).rows
    assert got["flights"].sum() == year["dep"].notna().sum()
    pd.testing.assert_frame_equal(
        got.set_index("visibility"), expected, check_dtype=False, check_names=False, rtol=1e-12
    )


@pytest.mark.thorough
def test_spark_groups_the_departures_and_arrivals_of_the_year(
    spark: SparkSession, file: Path, year: pd.DataFrame
) -> None:
    names = {"departures": "dep", "arrivals": "arr"}
    sides = {
        side: year.groupby(["origin", year[time].dt.floor("1h").rename("window_start")]).size()
        for side, time in names.items()
    }
    expected = pd.DataFrame(sides).fillna(0).sort_index().reset_index()
    rows = two_streams.hours(spark.read.parquet(str(file))).rows
    got = rows.sort_values(["origin", "window_start"], ignore_index=True)
    pd.testing.assert_frame_equal(got[list(expected)], expected, check_dtype=False)
    assert (got[["departures", "arrivals"]] == 0).any().all()


# ---- what is told


def test_classes_without_flights_have_no_delay() -> None:
    rows = two_streams.by_visibility(
        departures(("JFK", "10:00", 90, None)), weather(("JFK", "10:00", 2.5))
    )
    told = told_by(report.show_visibility, rows, facts_of(1))
    assert re.search(r"1 to 3 +1 +90\.0 +100\.0% *\n", told)
    assert re.search(r"3 to 10 +0 +– +– *\n", told)
    assert "1 of 1 departures" in told


def test_the_flow_tells_the_largest_differences_and_windows_with_one_side() -> None:
    given = departures(
        *[("JFK", "10:00", 0, "13:00")] * 3, ("JFK", "13:10", 0, "13:30"), ("EWR", "10:00", 0, None)
    )
    told = told_by(report.show_flow, two_streams.hours(given))
    assert re.search(r"JFK +More left +Wed +1 May 06:00–07:00 EDT +3 +0 +\+3", told)
    assert re.search(r"More landed +Wed +1 May 09:00–10:00 EDT +1 +4 +-3", told)
    assert "5 departures and 4 arrivals (1 flights left" in told
    assert "3 windows; 2 of them had only one side: 2 only departures, 0 only arrivals" in told


def test_80_columns_are_enough() -> None:
    """For the longest hours too, those in which summer time begins."""
    start = pd.Timestamp("2013-03-10 06:30", tz="UTC")
    hour = {"window_start": start, "window_end": start + pd.Timedelta(hours=1)}
    counts = {"departures": [1_234], "arrivals": [1_000], "mean_delay": [123.4], "max_delay": [1e3]}
    rows = pd.DataFrame({"origin": ["JFK"], **hour, **counts})
    flow = told_by(report.show_flow, two_streams.Answer(rows, 1.0), width=80)
    assert re.search(r"JFK +More left +Sun 10 Mar 01:30 EST–03:30 EDT +1234 +1000 +\+234", flow)
    hours = told_by(report.show_hours, rows, width=80)
    assert re.search(r"Sun 10 Mar 01:30 EST–03:30 EDT +1234 +123\.4 +1000", hours)
    assert "…" not in flow + hours
