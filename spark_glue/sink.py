"""Writes a streaming query: results and late rows of a micro-batch in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpu_windows.outputs import Outputs
from gpu_windows.spark_glue.streaming import StreamOutputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

#: Takes results, rows that are given back, and the number of the micro-batch.
Sink = Callable[["DataFrame", "DataFrame", int], None]


def start(
    outputs: Outputs,
    sink: str | Sink,
    checkpoint: str,
    *,
    trigger: dict[str, Any] | None,
    name: str | None,
) -> StreamingQuery:
    """Start what `gpu_windows.write_stream` describes."""
    assert isinstance(outputs, StreamOutputs)
    outputs.manifest.check_checkpoint(outputs.session, checkpoint)
    write = _to_parquet(sink) if isinstance(sink, str) else sink

    def take(tagged: DataFrame, number: int) -> None:
        tagged.persist()  # else the state is asked twice
        try:
            write(outputs.results_of(tagged), outputs.given_back_in(tagged), number)
        finally:
            tagged.unpersist()

    writer = outputs.tagged.writeStream.outputMode("append").foreachBatch(take)
    writer = writer.option("checkpointLocation", checkpoint)
    if name is not None:
        writer = writer.queryName(name)
    return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()


def _to_parquet(path: str) -> Sink:
    def write(results: DataFrame, late: DataFrame, number: int) -> None:
        for kind, frame in (("result", results), ("late", late)):
            frame.write.mode("overwrite").parquet(f"{path}/{kind}/batch={number}")

    return write
