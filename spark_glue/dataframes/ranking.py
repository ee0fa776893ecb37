"""The keys of a window whose results come first: of results that are there at once."""

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
from gpu_windows.spark_glue.columns.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Rank:
    """Takes a partition of results, in which a window is whole, and yields those that are kept."""

    ranking: Ranking
    keys: tuple[str, ...]
    bounds: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run in a Spark task."""
        found = list(batches)
        if found:
            table = pa.Table.from_batches(found)
            yield from select_top_results(self.ranking, self.keys, self.bounds, table).to_batches()


def kept_results(frame: DataFrame, query: Query, files: int | None = None) -> DataFrame:
    """Return the results of a query that its ranking keeps, by the user's names; no state is.

    On streams all keys' results of a window come in one micro-batch: shards have one watermark,
    and windows fire once.

    Parameters
    ----------
    frame : DataFrame
        All results; of a stream those of a micro-batch, or of many.
    query : Query
    files : int, optional
        In so many partitions at most.
    """
    if query.ranking is None:
        return frame
    bounds = [F.col(quoted(name)) for name in query.window_columns]
    together = frame.repartition(*bounds) if files is None else frame.repartition(files, *bounds)
    number = StructField(query.ranking.number, LongType(), nullable=False)
    rank = Rank(query.ranking, query.display_keys, query.window_columns)
    return together.mapInArrow(rank, StructType([*frame.schema.fields, number]))
