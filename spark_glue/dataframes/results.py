"""Results of a query, all of them in one DataFrame, as users and later stages see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import LongType, StructField, StructType

from gpu_windows.functions.top import Ranking
from gpu_windows.operators.columns.top_n import select_top_results
from gpu_windows.planning.own_columns import NO_KEY, SPREAD, ResultTimes
from gpu_windows.planning.query import Query
from gpu_windows.planning.validation import check_free
from gpu_windows.runners.selection import Selection
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.projections import with_user_names
from gpu_windows.spark_glue.columns.ticks import ticks_in, times_of
from gpu_windows.spark_glue.columns.types import to_arrow_schema
from gpu_windows.spark_glue.dataframes.spark_selection import apply_selections
from gpu_windows.spark_glue.tasks.worker_step import map_in_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def name_results(results: DataFrame, query: Query, files: int | None = None) -> DataFrame:
    """Return results of operators with the user's names, those that a ranking keeps.

    Parameters
    ----------
    results : pyspark.sql.DataFrame
        All results, with times; of a stream those of one or more micro-batches.
    query : Query
    files : int, optional
        Number of partitions at most.
    """
    public_results = with_user_names(results.drop(NO_KEY, SPREAD), query.display_names)
    return _rank(public_results, query, files)


def results_in_time(results: DataFrame, query: Query, selections: Sequence[Selection]) -> DataFrame:
    """Return what `name_results` returned as the rows of another stage: selected, with a time."""
    times = query.results_in_time
    selections = [each.with_columns(query.display_name(times.name)) for each in selections]
    return apply_selections(_add_time(results, times), selections)


def _add_time(results: DataFrame, times: ResultTimes) -> DataFrame:
    """Return results with the column ``times.name``."""
    if times.end is not None:
        check_free(to_arrow_schema(results.schema), times.name)
        ticks = ticks_in(results, times.end) - 1
        dtype = results.schema[times.end].dataType
        return results.withColumn(times.name, times_of(ticks, dtype))
    if not times.sides:
        return results
    sides = [F.col(name) for name in times.sides]
    latest = F.greatest(*sides) if len(sides) > 1 else sides[0]
    check_free(to_arrow_schema(results.drop(*times.sides).schema), times.name)
    return results.withColumn(times.name, latest).drop(*times.sides)


@dataclass(frozen=True)
class Rank:
    """Ranks a partition of results, which holds whole windows, and yields the first of each."""

    ranking: Ranking
    keys: tuple[str, ...]
    bounds: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        found = list(batches)
        if found:
            table = pa.Table.from_batches(found)
            yield from select_top_results(self.ranking, self.keys, self.bounds, table).to_batches()


def _rank(frame: DataFrame, query: Query, files: int | None) -> DataFrame:
    """Return the results that the ranking of a query keeps, if it has one; no state is needed.

    On streams all results of a window are in one micro-batch, because shards have the same
    watermark and windows fire once.
    """
    if query.ranking is None:
        return frame
    bounds = [F.col(quote_name(name)) for name in query.window_columns]
    by_window = frame.repartition(*bounds) if files is None else frame.repartition(files, *bounds)
    number = StructField(query.ranking.number, LongType(), nullable=False)
    rank = Rank(query.ranking, query.display_keys, query.window_columns)
    return map_in_workers(by_window, rank, StructType([*frame.schema.fields, number]))
