"""A streaming query as a program of its own, to be killed: ``python -m tests.chaos.driver``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import gpu_windows as gw
from tests.test_streaming import outputs_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: A join of the rows with even numbers and those with odd ones.
JOIN = "interval join"
#: That, and kinds of queries of `tests.test_streaming`.
QUERIES = ("sliding", "sessions", "evictor", "count window", JOIN)
SCHEMA = "ts timestamp, k long, v double, text string, seq long"


def main() -> None:
    """Run a query over the files that are there, from where its checkpoint says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("query", choices=QUERIES)
    parser.add_argument("folder", type=Path)
    name, folder = vars(parser.parse_args()).values()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings: dict[str, bool | float | int | str | None] = {
        "spark.master": "local[2,4]",  # a task may fail three times
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = gw.configure(SparkSession.builder).config(map=settings).getOrCreate()
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    frames = (source.parquet(str(folder / "in")) for _ in range(2))
    outputs = joined(*frames) if name == JOIN else outputs_of(name, next(frames))
    query = gw.write_stream(
        outputs, str(folder / "out"), str(folder / "checkpoint"), trigger={"availableNow": True}
    )
    query.awaitTermination()
    spark.stop()


def joined(left: DataFrame, right: DataFrame) -> gw.Outputs:
    """Return the outputs of a join of two halves of the rows."""
    watermarks = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    halves = (left.where("seq % 2 = 0"), right.where("seq % 2 = 1"))
    ours, its = (gw.stream(half).event_time("ts", watermarks).key_by("k") for half in halves)
    pairs = ours.interval_join(its).between("-10 seconds", "20 seconds")
    return pairs.outputs(["v", "seq"], ["text", "seq"], how="full")


if __name__ == "__main__":
    main()
