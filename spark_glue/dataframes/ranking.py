"""Keeps the first results of each window, by rank, where all its results are in one DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import LongType, StructField, StructType

from gpu_windows.functions.top import Ranking
from gpu_windows.operators.columns.top_n import select_top_results
from gpu_windows.planning.query import Query
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.tasks.worker_step import map_in_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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


def rank_results(frame: DataFrame, query: Query, files: int | None = None) -> DataFrame:
    """Return the results that the ranking of a query keeps, if it has one; no state is needed.

    On streams all results of a window are in one micro-batch, because shards have the same
    watermark and windows fire once.

    Parameters
    ----------
    frame : DataFrame
        All results, with the user's names; of a stream those of one or more micro-batches.
    query : Query
    files : int, optional
        Number of partitions at most.
    """
    if query.ranking is None:
        return frame
    bounds = [F.col(quote_name(name)) for name in query.window_columns]
    by_window = frame.repartition(*bounds) if files is None else frame.repartition(files, *bounds)
    number = StructField(query.ranking.number, LongType(), nullable=False)
    rank = Rank(query.ranking, query.display_keys, query.window_columns)
    return map_in_workers(by_window, rank, StructType([*frame.schema.fields, number]))
