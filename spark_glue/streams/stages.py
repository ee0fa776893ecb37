"""Stages of a streaming query: the results of one are the rows of the next.

They run one after another in a micro-batch, a job each. The next stage reads the staged results of
the one before it, then advances to the watermark that this one has reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.planning.query import Query
from gpu_windows.runners.stages import stage_output
from gpu_windows.spark_glue.columns.types import to_spark_schema
from gpu_windows.spark_glue.contract.manifest import Manifest
from gpu_windows.spark_glue.contract.output_kinds import first_kind
from gpu_windows.spark_glue.dataframes.stage_rows import StageRows
from gpu_windows.spark_glue.dataframes.stream_inputs import StreamInput
from gpu_windows.spark_glue.streams.reader import Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gpu_windows.spark_glue.scans.stream_scan import StreamScan


@dataclass(frozen=True)
class StageOfQuery:
    """A stage of a streaming query.

    Parameters
    ----------
    name : str
        Empty of the last one, which is the query's own.
    reader : Reader
        Of its own outputs; it has the plan.
    rows : StageRows
        The columns that the plan needs.
    manifest : Manifest
    explained : str
        What is computed, how, where and why.
    inputs : tuple of StreamInput
        Those of the user's that it reads itself.
    steps_before : tuple of str
        Steps of Spark's before it that keep state.
    keeps_results : bool
        Whether its results are an output of the query.
    scan : StreamScan, optional
        Reads the files that ``rows`` are the paths of.
    """

    name: str
    reader: Reader
    rows: StageRows
    manifest: Manifest
    explained: str
    inputs: tuple[StreamInput, ...] = ()
    steps_before: tuple[str, ...] = ()
    keeps_results: bool = True
    scan: StreamScan | None = None


def with_stages(reader: Reader, earlier: Iterable[StageOfQuery]) -> Reader:
    """Return a reader of a query's outputs that reads those of earlier stages, too."""
    found: dict[str, tuple[Reader, str]] = {}
    for number, each in enumerate(earlier):
        own = replace(each.reader, first=first_kind(number), earlier={})
        for name in own.kinds:
            if each.keeps_results or not own.is_result(name):
                found[stage_output(each.name, name)] = own, name
    return replace(reader, earlier=found)


def whole_manifest(manifest: Manifest, earlier: Iterable[StageOfQuery]) -> Manifest:
    """Return what a checkpoint keeps of all stages."""
    facts, described = dict(manifest.facts), dict(manifest.described)
    for each in earlier:
        name = each.name
        facts.update({f"{name}.{fact}": value for fact, value in each.manifest.facts.items()})
        described.update({f"{name}: {n}": text for n, text in each.manifest.described.items()})
    return replace(manifest, facts=facts, described=described)


def check_stage(query: Query) -> None:
    """Refuse what cannot be one of several stages of a streaming query.

    Raises
    ------
    UnsupportedQueryError
    """
    advice = "write the results with gpu_windows.write_stream and read them by read_output_stream"
    watermarks = query.watermarks
    if query.uses_processing_time or watermarks.in_processing_time:
        rule = f"stages of a streaming query are of event time, all of them: {advice}"
        raise UnsupportedQueryError(rule, value=query.time_dependent_part)
    if any(each.closes for each in watermarks.inputs):
        rule = f"in a query of several stages no event time goes on by the clock: {advice}"
        raise UnsupportedQueryError(rule, value=watermarks.describe())
    if not watermarks.moves:
        rule = "results need a watermark that moves: say event_time(column, watermarks)"
        raise UnsupportedQueryError(rule, value=watermarks.describe())


def placeholder(session: SparkSession, reader: Reader) -> DataFrame:
    """Return a stream without rows, of the columns of a plan's results.

    Spark looks at what users say of results before there are any. It is never started.
    """
    nothing = session.readStream.format("rate").load().where(F.lit(False))
    schema = to_spark_schema(reader.plan.result_schema, reader.keys)
    return nothing.select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in schema))
