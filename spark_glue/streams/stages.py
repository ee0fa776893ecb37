"""Stages of a streaming query: the results of one are the rows of the next.

In a micro-batch they run one after another, one job each. A stage reads the staged results of the
stage before it, then advances to the watermark of that stage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.commits import records
from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.planning.query import Query
from gpu_windows.runners.stages import stage_output
from gpu_windows.spark_glue.contract.manifest import Manifest
from gpu_windows.spark_glue.contract.output_kinds import first_kind
from gpu_windows.spark_glue.dataframes.stage_rows import StageRows
from gpu_windows.spark_glue.dataframes.stream_inputs import StreamInput
from gpu_windows.spark_glue.streams.result_reader import ResultReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gpu_windows.spark_glue.scans.stream_scan import StreamScan


@dataclass(frozen=True)
class QueryStage:
    """A stage of a streaming query.

    Parameters
    ----------
    name : str
        Empty for the last one, which is the query's own.
    reader : ResultReader
        Of its own outputs; it has the plan.
    rows : StageRows
        The columns that the plan needs.
    manifest : Manifest
    explained : str
        Text of ``explain()``.
    inputs : tuple of StreamInput
        The user's inputs that it reads itself.
    steps_before : tuple of str
        Earlier stateful steps of Spark's.
    keeps_results : bool
        Whether its results are an output of the query.
    scan : StreamScan, optional
        Reads the files that ``rows`` are the paths of.
    is_read : bool
        Whether another stage reads its results.
    """

    name: str
    reader: ResultReader
    rows: StageRows
    manifest: Manifest
    explained: str
    inputs: tuple[StreamInput, ...] = ()
    steps_before: tuple[str, ...] = ()
    keeps_results: bool = True
    scan: StreamScan | None = None
    is_read: bool = False


def with_stages(reader: ResultReader, earlier: Iterable[QueryStage]) -> ResultReader:
    """Return a reader with the outputs of earlier stages added."""
    found: dict[str, tuple[ResultReader, str]] = {}
    for number, each in enumerate(earlier):
        own = replace(each.reader, first=first_kind(number), earlier={})
        for name in own.kinds:
            if each.keeps_results or name != records.RESULT:
                found[stage_output(each.name, name)] = own, name
    return replace(reader, earlier=found)


def check_stage(query: Query) -> None:
    """Raise `UnsupportedQueryError` for a query that cannot be one of several stages.

    Raises
    ------
    UnsupportedQueryError
    """
    check_has_no_clock(query)
    watermarks = query.watermarks
    if not watermarks.moves:
        rule = "results need a watermark that moves: use event_time(column, watermarks)"
        raise UnsupportedQueryError(rule, value=watermarks.describe())


def check_has_no_clock(query: Query) -> None:
    """Raise `UnsupportedQueryError` for a query of processing time among several stages."""
    advice = "write the results with gpu_windows.write_stream and read them by read_output_stream"
    watermarks = query.watermarks
    if query.uses_processing_time or watermarks.in_processing_time:
        rule = f"all stages of a streaming query must use event time: {advice}"
        raise UnsupportedQueryError(rule, value=query.time_dependent_part)
    if any(each.closes for each in watermarks.inputs):
        rule = f"in a query of several stages the clock cannot advance event time: {advice}"
        raise UnsupportedQueryError(rule, value=watermarks.describe())


def placeholder(session: SparkSession, reader: ResultReader) -> DataFrame:
    """Return a stream without rows that has the columns of a plan's results.

    Spark checks selections of results with it. It is never started.
    """
    nothing = session.readStream.format("rate").load().where(F.lit(False))
    fields = reader.result_types.fields
    return nothing.select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in fields))
