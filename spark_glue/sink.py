"""Writes a streaming query: results and late rows of a micro-batch in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.outputs import Outputs
from gpu_windows.query import FIRING
from gpu_windows.sinks import Upsert
from gpu_windows.spark_glue.clock import Times
from gpu_windows.spark_glue.native import quoted
from gpu_windows.spark_glue.observed import observed
from gpu_windows.spark_glue.reader import BACK, Reader
from gpu_windows.spark_glue.streaming import StreamOutputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

#: Takes results, rows that are given back, and the number of the micro-batch.
Sink = Callable[["DataFrame", "DataFrame", int], None]
#: Name of a column of a moment: 1 for the last firing of a window.
_RANK = "__rank"
#: Takes the physical output, and the number.
Take = Callable[["DataFrame", int], None]


def start(
    outputs: Outputs,
    sink: str | Upsert | Sink,
    checkpoint: str,
    *,
    trigger: Mapping[str, Any] | None,
    name: str | None,
) -> StreamingQuery:
    """Start what `gpu_windows.write_stream` describes."""
    assert isinstance(outputs, StreamOutputs)
    take = _take(outputs.reader, sink)
    writer = observed(outputs.tagged).writeStream.outputMode("append").foreachBatch(take)
    writer = writer.option("checkpointLocation", checkpoint)
    if name is not None:
        writer = writer.queryName(name)
    writer = writer.trigger(**(trigger or _default_trigger(outputs)))
    outputs.manifest.check_checkpoint(outputs.session, checkpoint)
    return writer.start()


def _default_trigger(outputs: StreamOutputs) -> dict[str, str]:
    """Return how often to run: by the clock, a micro-batch without rows runs at every trigger."""
    by_clock = Times(outputs.plan.query).by_clock
    return {"processingTime": "1 second" if by_clock else "0 seconds"}


def _take(reader: Reader, sink: str | Upsert | Sink) -> Take:
    if isinstance(sink, str):
        return _to_parquet(reader, sink)
    return _to(reader, _upserting(reader, sink) if isinstance(sink, Upsert) else sink)


def _upserting(reader: Reader, sink: Upsert) -> Sink:
    query = reader.plan.query
    on = tuple(reader.public.get(name, name) for name in (*query.keys, *query.window_columns))
    firing = FIRING[0].name

    def write(results: DataFrame, late: DataFrame, number: int) -> None:
        latest = F.rank().over(Window.partitionBy(*map(quoted, on)).orderBy(F.desc(firing)))
        ranked = results.withColumn(_RANK, latest)
        sink.merge(ranked.where(F.col(_RANK) == 1).drop(_RANK), on, number)
        if sink.late is not None:
            sink.late(late, number)

    return write


def _to(reader: Reader, sink: Sink) -> Take:
    def take(tagged: DataFrame, number: int) -> None:
        tagged.persist()  # else the state is asked twice
        try:
            sink(reader.results(tagged), reader.given_back(tagged), number)
        finally:
            tagged.unpersist()

    return take


def _to_parquet(reader: Reader, path: str) -> Take:
    """Write a folder a micro-batch, one of late rows only if there are some, but for the first.

    So a reader finds the columns, and most micro-batches are spared a job.
    """

    def write(frame: DataFrame, kind: str, number: int) -> None:
        frame.write.mode("overwrite").parquet(f"{path}/{kind}/batch={number}")

    def take(tagged: DataFrame, number: int) -> None:
        tagged.persist()
        try:
            watched, noted = reader.watched(tagged)
            write(reader.results(watched), "result", number)
            if number == 0 or noted.get[BACK]:
                write(reader.given_back(tagged), "late", number)
        finally:
            tagged.unpersist()

    return take
