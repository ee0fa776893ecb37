"""The demo from start to end: read, run on Spark, tell, draw."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console

import gpu_windows as gw
from examples.flights import flights, picture, report, stages, two_streams
from gpu_windows.vocabulary.options import Device

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from rich.progress import Progress

#: Where the picture goes unless told otherwise.
PICTURE = Path("gpu-windows-demo.png")


@dataclass(frozen=True)
class Answer:
    """What a run of the query gave.

    Parameters
    ----------
    windows : pandas.DataFrame
        See `examples.flights.picture.draw`.
    metrics : dict
        Counters by name.
    plan : str
        What ``explain()`` says.
    seconds : float
        From the query to the windows.
    """

    windows: pd.DataFrame
    metrics: dict[str, Any]
    plan: str
    seconds: float


@dataclass(frozen=True)
class Answers:
    """What the queries of the demo gave.

    Parameters
    ----------
    windows : Answer
    visibility : two_streams.Answer
        See `examples.flights.two_streams.by_visibility`.
    hours : two_streams.Answer
        See `examples.flights.two_streams.hours`.
    """

    windows: Answer
    visibility: two_streams.Answer
    hours: two_streams.Answer


def run(output: Path = PICTURE, *, device: Device = "auto", console: Console | None = None) -> Path:
    """Run the demo.

    Parameters
    ----------
    output : Path
        The picture; the name says the format (PNG, SVG, PDF).
    device : {"auto", "cpu", "cuda"}
        What the kernels run on.
    console : Console, optional
        Where to write.

    Returns
    -------
    Path
        The picture.

    Raises
    ------
    GpuWindowsError
        If the data, Java or the device are missing; the message says what to do.
    """
    console = Console() if console is None else console
    with stages.bars(console) as bars:
        with stages.phase(bars, "Reading the flights") as advance:
            path = flights.cached_flights(wrap=stages.tracked(advance))
            table = pd.read_parquet(path)
        facts, weather = flights.facts(table), flights.read_weather()
        report.describe(console, facts)
        with stages.phase(bars, f"Starting Spark on {stages.CORES} cores"):
            spark = stages.session()
        with stages.stopping(spark):
            answers = _answers(spark, path, weather, bars, device)
        with stages.phase(bars, "Drawing the picture"):
            figure = picture.draw(answers.windows.windows, weather, _cancelled(table))
            picture.save(figure, output)
    _show(console, answers, facts)
    console.print(f"Picture: [bold]{output.resolve()}[/bold]", soft_wrap=True)
    return output


def _answers(
    spark: SparkSession, path: Path, weather: pd.DataFrame, bars: Progress, device: Device
) -> Answers:
    departures = spark.read.parquet(str(path))
    with stages.phase(bars, "Running the windows"):
        windows = compute(departures, device=device)
    with stages.phase(bars, "Joining flights with the weather"):
        readings = spark.createDataFrame(two_streams.readings(weather))
        visibility = two_streams.by_visibility(departures, readings, device=device)
    with stages.phase(bars, "Grouping departures with arrivals"):
        hours = two_streams.hours(departures, device=device)
    return Answers(windows, visibility, hours)


def _show(console: Console, answers: Answers, facts: flights.Facts) -> None:
    report.show_plan(console, answers.windows.plan)
    report.show_metrics(console, answers.windows.metrics, answers.windows.seconds)
    report.show_hours(console, answers.windows.windows)
    report.show_visibility(console, answers.visibility, facts)
    report.show_flow(console, answers.hours)


def compute(departures: DataFrame, *, device: Device = "auto") -> Answer:
    """Run the query of the demo.

    Parameters
    ----------
    departures : DataFrame
        ``dep`` (TIMESTAMP), ``origin``, ``dep_delay``.
    device : {"auto", "cpu", "cuda"}
        Where kernels run.
    """
    outputs = (
        gw.stream(departures)
        .event_time("dep", gw.WatermarkStrategy.for_bounded_out_of_orderness("5 minutes"))
        .key_by("origin")
        .window(gw.SlidingEventTimeWindows.of("60 minutes", "10 minutes"))
        .options(device=device)
        .with_outputs()
        .aggregate(
            departures=gw.count(), mean_delay=gw.mean("dep_delay"), max_delay=gw.max("dep_delay")
        )
    )
    began = time.perf_counter()
    windows = outputs.result().toArrow().to_pandas()
    seconds = time.perf_counter() - began
    metrics = outputs.metrics().first().asDict()
    metrics |= metrics.pop("user")  # the counters of user code: the demo has none
    return Answer(windows, metrics, outputs.explain(), seconds)


def _cancelled(table: pd.DataFrame) -> pd.Series:
    missing = table[table["dep"].isna()]
    return missing.groupby(missing["sched_dep"].dt.tz_convert(flights.ZONE).dt.date).size()
