"""Streaming queries of ours and of Spark, written to Parquet a folder a micro-batch by both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import gpu_windows as gw
from benchmarks.contest import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

#: Starts a query: of a streaming DataFrame and the windows, to a folder, with a checkpoint.
Start = Callable[["DataFrame", Window, str, str], "StreamingQuery"]

#: How long rows may stand behind later ones.
BEHIND = "5 seconds"
#: How often a query looks for a new file; not part of what is measured.
_TRIGGER = {"processingTime": "1 second"}


def ours(query: Callable[[DataFrame, Window], gw.Outputs]) -> Start:
    """Write a query of ours by `gpu_windows.write_stream`."""

    def start(frame: DataFrame, window: Window, out: str, checkpoint: str) -> StreamingQuery:
        return gw.write_stream(query(frame, window), out, checkpoint, trigger=_TRIGGER)

    return start


def spark(query: Callable[[DataFrame, Window], DataFrame]) -> Start:
    """Write a query of Spark in the same way: what an interrupted micro-batch wrote is replaced."""

    def start(frame: DataFrame, window: Window, out: str, checkpoint: str) -> StreamingQuery:
        def write(results: DataFrame, number: int) -> None:
            results.write.mode("overwrite").parquet(f"{out}/result/batch={number}")

        answer = query(frame.withWatermark("ts", BEHIND), window)
        writer = answer.writeStream.outputMode("append").foreachBatch(write)
        return writer.option("checkpointLocation", checkpoint).trigger(**_TRIGGER).start()

    return start
