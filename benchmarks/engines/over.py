"""Sum, count and max over the rows of a key up to the window's size before a row, in each engine.

So that results can be compared as those of windows, a row's frame is told by its end and begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import gpu_windows as gw
from benchmarks.contest import Factory, Window, Work, stopwatch
from benchmarks.equality import canonical, digest
from benchmarks.stage import Stage
from gpu_windows.runners import local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_IN_TIME = """
    SELECT key, ts, sum(value) OVER frame AS sum, count(*) OVER frame AS count,
           max(value) OVER frame AS max
    FROM rows WINDOW frame AS (PARTITION BY key ORDER BY epoch_us(ts)
        RANGE BETWEEN {size} PRECEDING AND CURRENT ROW)
"""


def _outputs(source: Any, window: Window, **options: Any) -> gw.typing.Outputs:
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    keyed = gw.stream(source).event_time("ts", strategy).key_by("key")
    over = keyed.over(gw.Range(window.size_delta)).options(**options)
    return over.with_outputs().aggregate(
        (), sum=gw.sum("value"), count=gw.count(), max=gw.max("value")
    )


def ours(frame: DataFrame, window: Window) -> DataFrame:
    """Run it on Spark."""
    return _told(_outputs(frame, window).result(), window)


def spark(frame: DataFrame, window: Window) -> DataFrame:
    """Run Spark's own window function."""
    from pyspark.sql import Window as Frames
    from pyspark.sql import functions as sf

    by_time = Frames.partitionBy("key").orderBy(sf.unix_micros("ts"))
    frames = by_time.rangeBetween(-window.size, 0)
    value = sf.col("value")
    columns = {"sum": sf.sum(value), "count": sf.count("*"), "max": sf.max(value)}
    made = (column.over(frames).alias(name) for name, column in columns.items())
    return _told(frame.select("key", "ts", *made), window)


def _told(results: DataFrame, window: Window) -> DataFrame:
    from pyspark.sql import functions as sf

    begin = sf.expr(f"ts - INTERVAL {window.size} MICROSECONDS").alias("window_start")
    end = sf.col("ts").alias("window_end")
    return results.select("key", begin, end, "sum", "count", "max")


def outputs(frame: DataFrame, window: Window) -> gw.typing.Outputs:
    """Write the query over a streaming DataFrame."""
    return _outputs(frame, window)


class Through(gw.functions.VectorProcessFunction):
    """Gives the rows of a micro-batch back as they come."""

    order_free = True

    def process_batch(self, batch: gw.typing.RowsBatch) -> gw.functions.VectorResult:
        """Give rows back, with a sum, a count and a maximum that are the row's own."""
        value = batch.rows["value"]
        ones = pa.array(np.ones(len(value), np.int64))
        rows = pa.table({"at": pa.array(batch.timestamps), "sum": value, "count": ones,
                         "max": value})  # fmt: skip
        return gw.functions.VectorResult(rows=(rows, batch.places))


def through(frame: DataFrame, _window: Window) -> gw.typing.Outputs:
    """Write the query that gives rows back, over a streaming DataFrame."""
    strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
    keyed = gw.stream(frame).event_time("ts", strategy).key_by("key")
    schema = pa.schema(
        [("at", pa.int64()), ("sum", pa.float64()), ("count", pa.int64()), ("max", pa.float64())]
    )
    return keyed.with_outputs().process(Through(), ["value"], output=schema)


def ours_from_memory(threads: int | None = None) -> Factory:
    """Run on the table in memory; as in the others, no order between keys."""

    def factory(stage: Stage) -> Work:
        table = stage.resources.table
        plan = _outputs(table, stage.window, threads=threads).plan
        return _work(stage, lambda: local.run(plan, table, in_order=False).results)

    return factory


def polars_from_memory() -> Factory:
    """Run the rolling functions of Polars on its own table in memory."""

    def factory(stage: Stage) -> Work:
        frame = cast(pl.DataFrame, pl.from_arrow(stage.resources.table))
        frame = frame.with_columns(one=pl.lit(1, pl.Int64))
        size = f"{stage.window.size}us"

        def run() -> pa.Table:
            columns = {
                "sum": pl.col("value").rolling_sum_by("ts", size, closed="both"),
                "count": pl.col("one").rolling_sum_by("ts", size, closed="both"),
                "max": pl.col("value").rolling_max_by("ts", size, closed="both"),
            }
            made = (column.over("key").alias(name) for name, column in columns.items())
            return frame.select("key", "ts", *made).to_arrow()

        return _work(stage, run)

    return factory


def duckdb_from_memory() -> Factory:
    """Run DuckDB's window functions on the table in memory."""

    def factory(stage: Stage) -> Work:
        connection = duckdb.connect()
        connection.register("rows", stage.resources.table)
        sql = _IN_TIME.format(size=stage.window.size)
        return _work(stage, lambda: connection.sql(sql).to_arrow_table())

    return factory


def _work(stage: Stage, run: Any) -> Work:
    def result() -> pa.Table:
        found = run()
        begin = pc.subtract(found["ts"].cast(pa.int64()), stage.window.size)
        table = found.append_column("window_end", found["ts"])
        table = canonical(table.append_column("window_start", begin.cast(pa.timestamp("us"))))
        return digest(table) if stage.digested else table

    return Work(stopwatch(run), stage.window, result)
