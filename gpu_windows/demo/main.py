"""The demo from start to end: read, run on Spark, tell, draw."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import gpu_windows as gw
from gpu_windows.demo import flights, picture, report
from gpu_windows.errors import GpuWindowsError
from gpu_windows.options import Device
from gpu_windows.spark_glue import local_session
from gpu_windows.spark_glue.settings import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Where the picture goes unless told otherwise.
PICTURE = Path("gpu-windows-demo.png")
_CORES = 2


@dataclass(frozen=True)
class Answer:
    """What a run of the query gave.

    Parameters
    ----------
    windows : pandas.DataFrame
        See `gpu_windows.demo.picture.draw`.
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
    with _bars(console) as bars:
        with _phase(bars, "Reading the flights") as advance:
            path = flights.cached_flights(wrap=_tracked(advance))
            table = pd.read_parquet(path)
        report.describe(console, flights.facts(table))
        with _phase(bars, f"Starting Spark on {_CORES} cores"):
            spark = _session()
        with _phase(bars, "Running the windows"), _stopping(spark):
            answer = compute(spark.read.parquet(str(path)), device=device)
        with _phase(bars, "Drawing the picture"):
            figure = picture.draw(answer.windows, flights.read_weather(), _cancelled(table))
            picture.save(figure, output)
    report.show_plan(console, answer.plan)
    report.show_metrics(console, answer.metrics, answer.seconds)
    report.show_hours(console, answer.windows)
    console.print(f"Picture: [bold]{output.resolve()}[/bold]", soft_wrap=True)
    return output


def compute(departures: DataFrame, *, device: Device = "auto") -> Answer:
    """Run the query of the demo.

    Parameters
    ----------
    departures : DataFrame
        ``dep`` (TIMESTAMP), ``origin``, ``dep_delay``.
    device : {"auto", "cpu", "cuda"}
    """
    outputs = (
        gw.stream(departures)
        .event_time("dep", gw.WatermarkStrategy.for_bounded_out_of_orderness("5 minutes"))
        .key_by("origin")
        .window(gw.SlidingEventTimeWindows.of("60 minutes", "10 minutes"))
        .options(device=device)
        .outputs(
            departures=gw.count(), mean_delay=gw.mean("dep_delay"), max_delay=gw.max("dep_delay")
        )
    )
    began = time.perf_counter()
    windows = outputs.result().toArrow().to_pandas()
    seconds = time.perf_counter() - began
    metrics = outputs.metrics().first().asDict()
    metrics |= metrics.pop("user")  # the counters of user code: the demo has none
    return Answer(windows, metrics, outputs.explain(), seconds)


def _session() -> SparkSession:
    """Start Spark on this machine, its workers on this Python."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        **SETTINGS,
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(_CORES),
    }
    return local_session.start("gpu-windows demo", cores=_CORES, settings=settings)


@contextmanager
def _stopping(spark: SparkSession) -> Iterator[None]:
    """Stop Spark in the end; tell of an error in it without the stack of the JVM."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise GpuWindowsError(f"Spark failed: {local_session.reason(error)}") from error
    finally:
        spark.stop()


def _cancelled(table: pd.DataFrame) -> pd.Series:
    missing = table[table["dep"].isna()]
    return missing.groupby(missing["sched_dep"].dt.tz_convert(flights.ZONE).dt.date).size()


def _bars(console: Console) -> Progress:
    columns = (
        SpinnerColumn(finished_text="[green]✓[/green]"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=40),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)


@contextmanager
def _phase(bars: Progress, name: str) -> Iterator[Callable[[float], None]]:
    """Show a bar for a phase; it moves with the share that is told, or else to and fro."""
    task = bars.add_task(name, total=None)
    yield lambda share: bars.update(task, total=1.0, completed=share)
    bars.update(task, total=1.0, completed=1.0)


def _tracked(advance: Callable[[float], None]) -> flights.Wrap:
    """Return a wrapper of a file that tells ``advance`` the share that was read."""

    class Tracked:
        def __init__(self, file: IO[bytes], size: int) -> None:
            self.file, self.size, self.done = file, size, 0

        def read(self, count: int = -1) -> bytes:
            data = self.file.read(count)
            self.done += len(data)
            advance(self.done / self.size)
            return data

        def __iter__(self) -> Iterator[bytes]:
            return iter(self.file)

    return Tracked
