"""Two streams at once: flights and the weather of their airport, departures and arrivals."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import gpu_windows as gw
from gpu_windows.datastream.keyed import KeyedStream
from gpu_windows.runners.query_results import ResultTable
from gpu_windows.vocabulary.options import Device

#: Visibility in statute miles at which a class ends and the next begins.
EDGES = (1.0, 3.0, 10.0)
#: The classes; the last is that of flights without a reading within an hour.
CLASSES = ("below 1 mile", "1 to 3", "3 to 10", "10 and more", "no reading")
#: A flight with a greater delay, in minutes, is delayed by more than an hour.
HOUR = 60

#: One window of it, from May 1997 on, holds all flights.
_ALL = gw.TumblingEventTimeWindows.of("10000 days")
_WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 minutes")
_READINGS = pa.schema(
    {"origin": pa.string(), "hour": pa.timestamp("us", "UTC"), "visibility": pa.float64()}
)


@dataclass(frozen=True)
class Answer:
    """What a query gave.

    Parameters
    ----------
    rows : pandas.DataFrame
    seconds : float
        From the query to the rows.
    """

    rows: pd.DataFrame
    seconds: float


def readings(weather: pd.DataFrame) -> pa.Table:
    """Return the weather with instants as Spark has them, in microseconds.

    Parameters
    ----------
    weather : pandas.DataFrame
        See `examples.flights.flights.read_weather`.
    """
    return pa.Table.from_pandas(weather, schema=_READINGS, preserve_index=False)


def by_visibility(flights: ResultTable, weather: ResultTable, *, device: Device = "auto") -> Answer:
    """Join departures with the nearest reading at their airport, an hour off at most.

    The join runs where the flights are; its pairs come as Arrow, and are aggregated here.

    Parameters
    ----------
    flights : pyspark.sql.DataFrame or pyarrow.Table
        ``origin``, ``dep`` (TIMESTAMP), ``dep_delay`` (minutes). One that never left is in no
        class.
    weather : pyspark.sql.DataFrame or pyarrow.Table
        As `readings` returns it, of the kind of ``flights``.
    device : {"auto", "cpu", "cuda"}
        Where kernels run.

    Returns
    -------
    Answer
        A row for each of `CLASSES`: ``visibility`` (the class), ``flights``, ``mean_delay``
        (minutes), ``late`` (the share with a delay of more than an hour, 0 to 1); the last two are
        NaN in a class without flights.
    """
    began = time.perf_counter()
    pairs = (
        _keyed(flights, "dep")
        .interval_join(_keyed(weather, "hour"))
        .between("-1 hour", "1 hour")
        .nearest("either")
        .options(device=device)
        .select(["dep", "dep_delay"], ["visibility"], how="left", prefixes=("", ""))
    )
    rows = _by_class(_arrow(pairs), device)
    return Answer(rows, time.perf_counter() - began)


def _by_class(pairs: pa.Table, device: Device) -> pd.DataFrame:
    late = pc.greater(pairs["dep_delay"], HOUR).cast(pa.float64())
    labelled = pairs.append_column("class", _classes(pairs["visibility"]))
    classes = (
        gw.stream(labelled.append_column("is_late", late))
        .event_time("dep", _WATERMARKS)
        .key_by("class")
        .window(_ALL)
        .options(device=device)
        .aggregate(flights=gw.count(), mean_delay=gw.mean("dep_delay"), late=gw.mean("is_late"))
    )
    known = classes.to_pandas().set_index("class").reindex(CLASSES)
    known["flights"] = known["flights"].fillna(0).astype("int64")
    named: pd.DataFrame = known.rename_axis("visibility").reset_index()
    return named[["visibility", "flights", "mean_delay", "late"]]


def _classes(visibility: pa.ChunkedArray) -> pa.Array:
    miles = visibility.to_numpy()  # null is NaN
    places = np.where(np.isnan(miles), len(CLASSES) - 1, np.digitize(miles, EDGES))
    return pa.array(CLASSES).take(pa.array(places))


def hours(flights: ResultTable, *, device: Device = "auto") -> Answer:
    """Group departures with the arrivals of flights from the same airport, hour by hour.

    Parameters
    ----------
    flights : pyspark.sql.DataFrame or pyarrow.Table
        ``origin``, ``dep`` and ``arr`` (TIMESTAMP; a null is no departure, or no arrival).
    device : {"auto", "cpu", "cuda"}
        Where kernels run.

    Returns
    -------
    Answer
        ``origin``, ``window_start``, ``window_end``, ``departures``, ``arrivals``: a row for each
        airport and hour that has any of either.
    """
    began = time.perf_counter()
    both = (
        _keyed(flights, "dep")
        .co_group(_keyed(flights, "arr"))
        .window(gw.TumblingEventTimeWindows.of("1 hour"))
        .options(device=device)
        .aggregate(left={"departures": gw.count()}, right={"arrivals": gw.count()})
    )
    rows = _arrow(both).to_pandas()
    return Answer(rows, time.perf_counter() - began)


def _keyed(rows: ResultTable, time: str) -> KeyedStream:
    return gw.stream(rows).event_time(time, _WATERMARKS).key_by("origin")


def _arrow(frame: ResultTable) -> pa.Table:
    return frame if isinstance(frame, pa.Table) else frame.toArrow()
