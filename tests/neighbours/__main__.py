"""``python -m tests.neighbours``: kill queries into tables and topics, and compare."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from tests.chaos.harness import (
    fresh,
    is_planned_alike,
    prepare,
    run_with_death,
    undisturbed,
)
from tests.neighbours.broker import Broker
from tests.neighbours.driver import SERVERS, SINKS, TOPIC, rows_written
from tests.neighbours.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DRIVER = "tests.neighbours.driver"


def main(
    deaths: Annotated[int, typer.Option(min=1, help="Deaths of the driver for each sink.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the first.")] = 0,
    sinks: Annotated[str, typer.Option(help="Names, with commas.")] = ",".join(SINKS),
    batches: Annotated[int, typer.Option(help="Micro-batches of a run.")] = 4,
    rows: Annotated[int, typer.Option(help="Rows of a micro-batch.")] = 300,
) -> None:
    """Kill the drivers of queries into tables and topics; what readers see must not differ."""
    console, different = Console(), 0
    table = Table("sink", "deaths", "rows", "lost or doubled")
    with tempfile.TemporaryDirectory() as name:
        spark = session(Path(name) / "reader", spark__log__level="OFF")
        broker = Broker(Path(name) / "broker").start() if "kafka" in sinks else None
        try:
            for sink in sinks.split(","):
                runs = _Runs(spark, sink, Path(name) / sink.replace(" ", "-"), broker)
                wanted = runs.whole(batches, rows)
                wrong = 0
                for each in range(seed, seed + deaths):
                    got, told = runs.killed(random.Random(each))
                    wrong += got != wanted
                    console.print(f"{sink}, seed {each}: {told}, different: {got != wanted}")
                table.add_row(sink, str(deaths), str(len(wanted)), str(wrong))
                different += wrong
        finally:
            if broker is not None:
                broker.stop()
            spark.stop()
    console.print(table)
    raise typer.Exit(1 if different else 0)


class _Runs:
    """Runs of one sink over the same input."""

    def __init__(self, spark: SparkSession, sink: str, folder: Path, broker: Broker | None) -> None:
        self._spark, self._sink, self._folder, self._broker = spark, sink, folder, broker
        self._count = 0
        self._seconds = 0.0

    def whole(self, batches: int, rows: int) -> list[object]:
        """Return what is read after an undisturbed run."""
        prepare(self._folder, batches, rows)
        self._tell(self._folder)
        self._seconds = undisturbed(self._sink, self._folder, driver=_DRIVER)
        return rows_written(self._spark, self._sink, self._folder)

    def killed(self, rng: random.Random) -> tuple[list[object], object]:
        """Return what is read after a run that was killed once, and when that was."""
        while True:
            self._count += 1
            folder = fresh(
                self._folder.with_name(f"{self._folder.name}-{self._count}"), self._folder
            )
            self._tell(folder)
            death = run_with_death(self._sink, folder, "driver", self._seconds, rng, driver=_DRIVER)
            # Else it ended before its moment had come, or Spark planned other micro-batches.
            if death is not None and is_planned_alike(folder, self._folder):
                return rows_written(self._spark, self._sink, folder), death

    def _tell(self, folder: Path) -> None:
        """Leave in a folder where its topic is."""
        if self._broker is not None:
            (folder / SERVERS).write_text(self._broker.servers)
            (folder / TOPIC).write_text(folder.name)


if __name__ == "__main__":
    typer.run(main)
