"""Writes a streaming query: all of a micro-batch is computed, then the sink is given it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation, Window
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.commits.records import LATE, RESULT
from gpu_windows.query.window import FIRING
from gpu_windows.runners.outputs import Outputs
from gpu_windows.sinks.kinds import ParquetSink, Upsert
from gpu_windows.spark_glue import tagged as tags
from gpu_windows.spark_glue.blobs import BLOB
from gpu_windows.spark_glue.clock import Times
from gpu_windows.spark_glue.native import quoted
from gpu_windows.spark_glue.observed import observed
from gpu_windows.spark_glue.ownership import check_claim, claim
from gpu_windows.spark_glue.parquet_writer import ParquetWriter
from gpu_windows.spark_glue.reader import Reader
from gpu_windows.spark_glue.streaming import StreamOutputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

#: Takes results, rows that are given back, and the number of the micro-batch.
Function = Callable[["DataFrame", "DataFrame", int], None]
#: Name of a column of a moment: 1 for the last firing of a window.
_RANK = "__rank"
#: Takes the physical output, and the number.
Take = Callable[["DataFrame", int], None]


def start(
    outputs: Outputs,
    sink: ParquetSink | Upsert | Function,
    checkpoint: str,
    *,
    trigger: Mapping[str, Any] | None,
    name: str | None,
) -> StreamingQuery:
    """Start what `gpu_windows.write_stream` describes; what is refused leaves nothing behind."""
    assert isinstance(outputs, StreamOutputs)
    session, reader = outputs.session, outputs.reader
    writer = observed(outputs.tagged).writeStream.outputMode("append")
    writer = writer.option("checkpointLocation", checkpoint)
    if name is not None:
        writer = writer.queryName(name)
    writer = writer.trigger(**(trigger or _default_trigger(outputs)))
    if not isinstance(sink, ParquetSink):
        outputs.manifest.check_checkpoint(session, checkpoint)
        return writer.foreachBatch(_to(reader, sink)).start()
    outputs.manifest.compare_checkpoint(session, checkpoint)
    owner = check_claim(session, sink, checkpoint, _schemas(outputs))
    outputs.manifest.check_checkpoint(session, checkpoint)
    claim(session, sink, checkpoint, owner)
    return writer.foreachBatch(_to_parquet(ParquetWriter(str(sink.path), owner, reader))).start()


def _schemas(outputs: StreamOutputs) -> dict[str, str]:
    """Return the outputs that are written, and their schemas."""
    reader, tagged = outputs.reader, outputs.tagged
    frames = {RESULT: reader.results(tagged), LATE: reader.given_back(tagged)}
    return {name: frame.schema.json() for name, frame in frames.items()}


def _default_trigger(outputs: StreamOutputs) -> dict[str, str]:
    """Return how often to run: by the clock, a micro-batch without rows runs at every trigger."""
    by_clock = Times(outputs.plan.query).by_clock
    return {"processingTime": "1 second" if by_clock else "0 seconds"}


@dataclass(frozen=True)
class Computed:
    """All of the physical output of a micro-batch.

    Parameters
    ----------
    tagged : DataFrame
        It is cached.
    rows : int
        That the micro-batch took in.
    sizes : dict of str to int
        Outputs to the bytes of their blobs.
    """

    tagged: DataFrame
    rows: int
    sizes: Mapping[str, int]


@contextmanager
def computed(tagged: DataFrame) -> Iterator[Computed]:
    """Compute every partition once, and keep it for a moment.

    Spark writes a partition of state when the partition is computed, and commits the micro-batch
    whether all were or not: what reads some rows, or none, would leave a checkpoint that nothing
    can be started from.
    """
    noted = Observation()
    sizes = {
        name: F.coalesce(F.sum(F.when(F.col(tags.KIND) == kind, F.length(BLOB))), F.lit(0))
        for name, kind in ((RESULT, tags.RESULT), (LATE, tags.LATE))
    }
    rows = F.coalesce(F.sum(F.col(f"{tags.MEASURED}.rows")), F.lit(0))
    tagged.persist()
    try:
        watched = tagged.observe(noted, rows.alias("rows"), *(c.alias(n) for n, c in sizes.items()))
        watched.write.format("noop").mode("overwrite").save()
        found = noted.get
        yield Computed(tagged, found["rows"], {name: found[name] for name in sizes})
    finally:
        tagged.unpersist()


def _to_parquet(writer: ParquetWriter) -> Take:
    def take(tagged: DataFrame, number: int) -> None:
        with computed(tagged) as all_of_it:
            writer.write(all_of_it.tagged, number, all_of_it.rows, all_of_it.sizes)

    return take


def _to(reader: Reader, sink: Upsert | Function) -> Take:
    function = _upserting(reader, sink) if isinstance(sink, Upsert) else sink

    def take(tagged: DataFrame, number: int) -> None:
        with computed(tagged) as all_of_it:
            whole = all_of_it.tagged
            function(reader.results(whole), reader.given_back(whole), number)

    return take


def _upserting(reader: Reader, sink: Upsert) -> Function:
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
