"""Writes a streaming query: all of a micro-batch is computed, then the sink is given it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.errors import QueryError
from gpu_windows.query.changes import FIRING
from gpu_windows.runners.outputs import Outputs
from gpu_windows.runners.sink import Sink, SinkBatch, SinkQuery, SinkWriter
from gpu_windows.spark_glue import tagged as tags
from gpu_windows.spark_glue.in_force import Notice
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.observed import observed
from gpu_windows.spark_glue.offset_log import OffsetLog
from gpu_windows.spark_glue.owed import plan_owed
from gpu_windows.spark_glue.ownership import identify
from gpu_windows.spark_glue.packing import BLOB
from gpu_windows.spark_glue.reader import Reader
from gpu_windows.spark_glue.settings import warn_of_file_manager
from gpu_windows.spark_glue.streaming import StreamOutputs
from gpu_windows.spark_glue.times import Times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType


def start(
    outputs: Outputs,
    sink: Sink,
    checkpoint: str,
    *,
    trigger: Mapping[str, Any] | None,
    name: str | None,
) -> StreamingQuery:
    """Start what `gpu_windows.write_stream` describes; what we refuse leaves nothing behind."""
    assert isinstance(outputs, StreamOutputs)
    warn_of_file_manager(outputs.session.conf)
    notice = Notice()
    told = ((each.reader.plan, each.notice) for each in outputs.earlier)
    notices = [each for plan, each in ((outputs.plan, notice), *told) if plan.makes_partials]
    stream = observed(outputs.tagged_with(notice), outputs.first_kinds).writeStream.outputMode(
        "append"
    )
    stream = stream.option("checkpointLocation", checkpoint)
    if name is not None:
        stream = stream.queryName(name)
    stream = stream.trigger(**(trigger or _default_trigger(outputs)))
    writer = _begun(sink, outputs, checkpoint)
    uri = Manifest.checkpoint_uri(outputs.session, checkpoint)
    stream = stream.foreachBatch(_to(writer, outputs.reader, notices, OffsetLog(uri)))

    def started(when: Mapping[str, Any]) -> StreamingQuery:
        return stream.trigger(**when).start()

    by_clock = _in_processing_time(outputs)
    ends = not {"availableNow", "once"}.isdisjoint(trigger or ())
    if not (by_clock and ends):
        is_owed = plan_owed(outputs.session, checkpoint, uri, by_clock=by_clock)
        if is_owed and trigger is not None and not by_clock:
            _run_alone(started)
    return started(trigger or _default_trigger(outputs))


def _run_alone(started: Callable[[Mapping[str, Any]], StreamingQuery]) -> None:
    """Run the one micro-batch that is planned: a trigger may have but one for the rows there are.

    Raises
    ------
    pyspark.errors.StreamingQueryException
        If it fails.
    """
    query = started({"once": True})
    try:
        query.awaitTermination()
    finally:
        query.stop()


def _begun(sink: Sink, outputs: StreamOutputs, checkpoint: str) -> SinkWriter:
    """Open the sink's writer; once nobody refuses, mark checkpoint and path as this query's."""
    query, manifest = query_of(outputs, checkpoint), outputs.manifest
    manifest.compare_checkpoint(outputs.session, checkpoint)
    writer = open_writer(sink, query)
    manifest.check_checkpoint(outputs.session, checkpoint)
    writer.begin(query)
    return writer


def open_writer(sink: Sink, query: SinkQuery) -> SinkWriter:
    """Return the writer of a sink.

    Raises
    ------
    QueryError
        If the sink returns something else.
    """
    writer: Any = sink.open(query)
    if not isinstance(writer, SinkWriter):
        rule = f"open of a sink returns a SinkWriter: that of {type(sink).__name__}"
        raise QueryError(rule, value=repr(writer))
    return writer


def query_of(outputs: StreamOutputs, checkpoint: str) -> SinkQuery:
    """Return what a sink may ask of a query."""
    reader, query = outputs.reader, outputs.plan.query

    keys = tuple(reader.public.get(name, name) for name in query.keys if query.has_key)
    windows = tuple(reader.public.get(name, name) for name in query.window_columns)

    def schemas() -> dict[str, StructType]:
        tagged = outputs.tagged
        return {name: reader.output(tagged, name).schema for name in reader.kinds}

    return SinkQuery(
        session=outputs.session,
        checkpoint=checkpoint,
        plan=outputs.plan,
        key_columns=keys,
        window_columns=windows,
        read_schemas=schemas,
        read_identity=partial(identify, outputs.session, checkpoint),
        lacking=_lacking(outputs, (*keys, *windows)),
    )


def _lacking(outputs: StreamOutputs, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return what tells results apart, besides these names, and that was not selected as it is."""
    kept, query = outputs.kept_columns, outputs.plan.query
    if kept is None:
        return ()
    firings = (field.name for field in FIRING if field.name in query.result_names)
    change = () if query.change_column is None else (query.change_column,)
    told = (*names, *query.number_columns, *firings, *change)
    return tuple(name for name in told if name not in kept)


def _default_trigger(outputs: StreamOutputs) -> dict[str, str]:
    """Return how often to run; in processing time every trigger runs a micro-batch, rows or not."""
    return {"processingTime": "1 second" if _in_processing_time(outputs) else "0 seconds"}


def _in_processing_time(outputs: StreamOutputs) -> bool:
    return Times(outputs.plan.query).in_processing_time


@contextmanager
def computed(
    tagged: DataFrame, number: int, reader: Reader, planned_ms: int | None = None
) -> Iterator[SinkBatch]:
    """Compute every partition once, and keep it for a moment.

    Spark writes a partition of state when the partition is computed, and commits the micro-batch
    whether all were or not: what reads some rows, or none, would leave a checkpoint that nothing
    can be started from.

    What is counted comes with the job's result: an `Observation` would wait for an event, for ever
    if Spark's bus of listeners drops it.
    """
    tagged.persist()
    try:
        blobs = tagged.select(
            F.col(tags.KIND).alias("kind"),
            F.length(BLOB).alias("bytes"),
            F.col(f"{tags.MEASURED}.rows").alias("rows"),
        ).toArrow()
        sizes = dict(zip(*_bytes_of_kinds(blobs), strict=True))
        yield SinkBatch(
            session=tagged.sparkSession,
            number=number,
            planned_ms=planned_ms,
            rows=pc.sum(blobs["rows"]).as_py() or 0,
            sizes={name: sizes.get(kind, 0) for name, kind in reader.kinds.items()},
            read=partial(reader.output, tagged),
        )
    finally:
        tagged.unpersist()


def _bytes_of_kinds(blobs: pa.Table) -> tuple[list[int], list[int]]:
    """Return the kinds of blobs, and the bytes of each."""
    found = blobs.group_by("kind").aggregate([("bytes", "sum")])
    return found["kind"].to_pylist(), [size or 0 for size in found["bytes_sum"].to_pylist()]


def _to(
    writer: SinkWriter, reader: Reader, notices: Sequence[Notice], log: OffsetLog
) -> Callable[[DataFrame, int], None]:
    """Return what Spark calls with the physical output of a micro-batch, and its number.

    ``notices`` tell its tasks the watermark that is in the ``log``, if they ask for one.
    """

    def take(tagged: DataFrame, number: int) -> None:
        planned = log.planned(number)
        at_ms = planned.at_ms if planned else None
        with ExitStack() as stack:
            for notice in notices:
                known = planned.watermark_ms if planned else None
                stack.enter_context(notice.posted(tagged.sparkSession, known))
            writer.write(stack.enter_context(computed(tagged, number, reader, at_ms)))

    return take
