"""Streaming queries of ours and of Spark, written to Parquet micro-batch by micro-batch by both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import gpu_windows as gw
from benchmarks.contest import Window
from gpu_windows.commits.records import OWNERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: Starts a query: of streaming DataFrames and the windows, to a folder, with a checkpoint.
Start = Callable[[Sequence["DataFrame"], Window, str, str], "StreamingQuery"]

#: How long rows may stand behind later ones.
BEHIND = "5 seconds"
#: How often a query looks for a new file; not part of what is measured.
_TRIGGER = {"processingTime": "1 second"}


def written(spark: SparkSession, out: Path) -> DataFrame:
    """Return what either has written."""
    if (out / OWNERS).exists():
        return gw.read_output(spark, out)
    return spark.read.parquet(str(out / "result")).drop("batch")


def ours(query: Callable[..., gw.Outputs]) -> Start:
    """Write a query of ours, of each DataFrame and the windows, by `gpu_windows.write_stream`."""

    def start(
        frames: Sequence[DataFrame], window: Window, out: str, checkpoint: str
    ) -> StreamingQuery:
        return gw.write_stream(query(*frames, window), out, checkpoint, trigger=_TRIGGER)

    return start


def spark(query: Callable[..., DataFrame]) -> Start:
    """Write a query of Spark in the same way: what an interrupted micro-batch wrote is replaced."""

    def start(
        frames: Sequence[DataFrame], window: Window, out: str, checkpoint: str
    ) -> StreamingQuery:
        def write(results: DataFrame, number: int) -> None:
            results.write.mode("overwrite").parquet(f"{out}/result/batch={number}")

        answer = query(*(frame.withWatermark("ts", BEHIND) for frame in frames), window)
        writer = answer.writeStream.outputMode("append").foreachBatch(write)
        return writer.option("checkpointLocation", checkpoint).trigger(**_TRIGGER).start()

    return start
