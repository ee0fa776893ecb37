"""Stages of a streaming query: the results of one are the rows of the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import LongType, StructField, StructType

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.operators.columns.top import ranked
from gpu_windows.planning.plan import Plan
from gpu_windows.query.base import NO_KEY, SPREAD, Query
from gpu_windows.query.result_times import ResultTimes
from gpu_windows.query.validation import check_free
from gpu_windows.runners.stages import Stage, stage_output
from gpu_windows.spark_glue.batch import as_timestamps, renamed
from gpu_windows.spark_glue.in_force import Notice
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.names import quoted
from gpu_windows.spark_glue.passed import CARRIED, Forward, are_rows, kind_of, nullable
from gpu_windows.spark_glue.ranking import Rank
from gpu_windows.spark_glue.reader import Reader
from gpu_windows.spark_glue.selected import selected
from gpu_windows.spark_glue.times import SparkClock, Times
from gpu_windows.spark_glue.types import to_arrow_schema, to_spark_schema
from gpu_windows.watermarks import most_behind, stages_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TICKS_A_MS = 1_000


@dataclass(frozen=True)
class EarlierStage:
    """A stage whose results another one goes on from.

    Parameters
    ----------
    stage : Stage
    reader : Reader
        Of its own outputs.
    manifest : Manifest
    notice : Notice
        Where its tasks find the watermark.
    explained : str
        What is computed, how, where and why.
    """

    stage: Stage
    reader: Reader
    manifest: Manifest
    notice: Notice
    explained: str


def with_stages(reader: Reader, earlier: Iterable[EarlierStage]) -> Reader:
    """Return a reader of a query's outputs that reads those of earlier stages, too."""
    found: dict[str, tuple[Reader, str]] = {}
    for number, each in enumerate(earlier):
        own = replace(each.reader, first=kind_of(number, 0), earlier={})
        for name in own.kinds:
            if each.stage.keep or not own.is_result(name):
                found[stage_output(each.stage.name, name)] = own, name
    return replace(reader, earlier=found)


def whole_manifest(manifest: Manifest, earlier: Iterable[EarlierStage]) -> Manifest:
    """Return what a checkpoint keeps of all stages."""
    facts, described = dict(manifest.facts), dict(manifest.described)
    for each in earlier:
        name = each.stage.name
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
    if query.watermarks.is_own:
        rule = (
            "stages of a streaming query follow Spark's watermark, and with_idleness and "
            f"for_generator have one of their own: {advice}"
        )
        raise UnsupportedQueryError(rule, value=query.watermarks.describe())
    if Times(query).in_processing_time:
        rule = f"stages of a streaming query are of event time, all of them: {advice}"
        raise UnsupportedQueryError(rule, value=query.timed_part)
    if not query.watermarks.moves:
        rule = "results need a watermark that moves: say event_time(column, watermarks)"
        raise UnsupportedQueryError(rule, value=query.watermarks.describe())


def clock_of(query: Query) -> SparkClock:
    """Return how a stage's watermark goes with Spark's: it may be held back."""
    return SparkClock(base_ms=-(-most_behind(query.watermarks) // _TICKS_A_MS))


def goes_on(plan: Plan) -> bool:
    """Whether rows of a plan are results of an earlier stage."""
    return bool(stages_in(plan.query.watermarks))


def forwarded(
    tagged: DataFrame, stage: Stage, reader: Reader, before: tuple[str, ...]
) -> DataFrame:
    """Return what is selected of a stage's results, with `CARRIED`, and the messages that pass.

    Parameters
    ----------
    tagged : DataFrame
        Its physical output.
    stage : Stage
    reader : Reader
    before : tuple of str
        The stages before it, in order.
    """
    query, schema = reader.plan.query, reader.plan.result_schema
    crossing = nullable(schema).append(pa.field(CARRIED, pa.binary()))
    forward = Forward(stage.name, stage.keep, schema, before)
    frame = tagged.mapInArrow(forward, to_spark_schema(crossing, reader.keys))
    rows = as_timestamps(frame, query.window_columns).drop(NO_KEY, SPREAD)
    kept, times = _kept(renamed(rows, reader.public), query), query.results_in_time
    chosen = (each.keeping(query.shown(times.name)) for each in reader.selections)
    return selected(with_result_time(kept, times), chosen)


def with_result_time(results: DataFrame, times: ResultTimes) -> DataFrame:
    """Return results with the column ``times.name``."""
    if times.end is not None:
        check_free(to_arrow_schema(results.schema), times.name)
        ticks = F.unix_micros(F.col(quoted(times.end))) - 1
        return results.withColumn(times.name, F.timestamp_micros(ticks))
    if not times.sides:
        return results
    sides = [F.col(name) for name in times.sides]
    latest = F.greatest(*sides) if len(sides) > 1 else sides[0]
    check_free(to_arrow_schema(results.drop(*times.sides).schema), times.name)
    return results.withColumn(times.name, latest).drop(*times.sides)


def _kept(frame: DataFrame, query: Query) -> DataFrame:
    """Return what a query's ranking keeps of the results, and all messages."""
    if query.ranking is None:
        return frame
    together = frame.repartition(*(F.col(quoted(name)) for name in query.window_columns))
    number = StructField(query.ranking.number, LongType())
    rank = _RankRows(Rank(query.ranking, query.shown_keys, query.window_columns))
    return together.mapInArrow(rank, StructType([*frame.schema.fields, number]))


@dataclass(frozen=True)
class _RankRows:
    """Ranks the results of a partition, and lets messages pass."""

    rank: Rank

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        found = list(batches)
        if not found:
            return
        table, rank = pa.Table.from_batches(found), self.rank
        is_row = are_rows(table)
        messages = table.filter(pc.invert(is_row))
        kept = ranked(rank.ranking, rank.keys, rank.bounds, table.filter(is_row))
        number = kept.schema.field(rank.ranking.number)
        yield from kept.to_batches()
        nothing = pa.nulls(len(messages), number.type)
        yield from messages.append_column(number, nothing).to_batches()
