"""What both demos need: Spark on this machine, and bars that show how far they are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from examples.flights import flights
from gpu_windows.errors import GpuWindowsError
from gpu_windows.spark_glue.session import local_session
from gpu_windows.spark_glue.session.settings import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Of this machine, for Spark.
CORES = 2


def session() -> SparkSession:
    """Start Spark on this machine, its workers on this Python."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        **SETTINGS,
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(CORES),
    }
    return local_session.start("python -m examples.flights", cores=CORES, settings=settings)


@contextmanager
def stopping(spark: SparkSession) -> Iterator[None]:
    """Stop Spark in the end; tell of an error in it without the stack of the JVM."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise GpuWindowsError(f"Spark failed: {local_session.reason(error)}") from error
    finally:
        spark.stop()


def bars(console: Console) -> Progress:
    """Return a display of bars."""
    columns = (
        SpinnerColumn(finished_text="[green]✓[/green]"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=40),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)


@contextmanager
def phase(bars: Progress, name: str) -> Iterator[Callable[[float], None]]:
    """Show a bar for a phase; it moves with the share that is told, or else to and fro."""
    task = bars.add_task(name, total=None)
    yield lambda share: bars.update(task, total=1.0, completed=share)
    bars.update(task, total=1.0, completed=1.0)


def tracked(advance: Callable[[float], None]) -> flights.Wrap:
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
