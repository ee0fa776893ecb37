"""Contestants that join two inputs in time: the size of the window is how far apart rows may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.contest import Factory, Window, Work, stopwatch
from benchmarks.data import SECOND, START
from benchmarks.join_data import JoinData
from benchmarks.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

OnSpark = Callable[["DataFrame", "DataFrame", Window], "DataFrame"]
InMemory = Callable[[pa.Table, pa.Table, Window], pa.Table]


def on_spark(query: OnSpark) -> Factory:
    """Join two Parquet files, to Spark's ``noop`` sink."""

    def factory(stage: Stage) -> Work:
        left, right = (stage.resources.spark.read.parquet(str(side)) for side in _sides(stage))

        def run() -> None:
            query(left, right, stage.window).write.format("noop").mode("overwrite").save()

        def result() -> pa.Table:
            return written_pairs(query(left, right, stage.window))

        return Work(stopwatch(run), stage.window, result)

    return factory


def in_memory(join: InMemory) -> Factory:
    """Join two tables in memory."""

    def factory(stage: Stage) -> Work:
        left, right = map(pq.read_table, _sides(stage))

        def run() -> pa.Table:
            return join(left, right, stage.window)

        return Work(stopwatch(run), stage.window, lambda: checksums(run()))

    return factory


def written_pairs(pairs: DataFrame) -> pa.Table:
    """Return the `checksums` of pairs on Spark."""
    return checksums(pairs.toArrow())


def checksums(pairs: pa.Table) -> pa.Table:
    """Reduce pairs to a row for each key and second of left rows: their number, and sums.

    The sums of products change when two left rows swap their partners.
    """
    left, right = (
        pc.subtract(pairs[name].cast(pa.int64()), START) for name in ("left_ts", "right_ts")
    )
    second = pc.divide(left, SECOND)
    apart = pc.subtract(right, left)
    terms = {
        "left": left,
        "right": right,
        "apart": pc.multiply(pc.subtract(left, pc.multiply(second, SECOND)), apart),
        "product": pc.multiply(pairs["left_value"], pairs["right_value"]),
    }
    sums = [(name, "sum") for name in terms]
    grouped = pa.table({"key": pairs["key"], "second": second, **terms})
    return grouped.group_by(["key", "second"]).aggregate([*sums, ([], "count_all")])


def _sides(stage: Stage) -> tuple[Path, Path]:
    data = stage.resources.data_set
    assert isinstance(data, JoinData)
    return data.sides(stage.resources.folder)
