"""Spark: the session of all contestants, ``window()``, and the floor of crossing to Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

import gpu_windows as gw
from benchmarks.contest import Factory, Window, Work, stopwatch
from benchmarks.data import SECOND
from benchmarks.equality import DIGEST, ORIGIN, PAIRS, canonical
from benchmarks.stage import Stage
from gpu_windows.spark_glue.session.settings import SETTINGS

Query = Callable[[DataFrame, Window], DataFrame]


def settings() -> dict[str, bool | float | int | str | None]:
    """Return the configuration of the session, the same for every contestant."""
    cores = os.cpu_count() or 1
    return {
        "spark.master": f"local[{cores}]",
        "spark.app.name": "gpu_windows benchmarks",
        "spark.driver.memory": "6g",
        "spark.driver.maxResultSize": "4g",
        "spark.sql.shuffle.partitions": str(2 * cores),
        **SETTINGS,
        "spark.python.unix.domain.socket.enabled": "true",  # of any checkout, from Spark 4.1 on
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }


@contextmanager
def session(more: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Start a local session whose workers run this interpreter, and stop it at the end.

    ``more``: settings besides `settings`.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.config(map={**settings(), **(more or {})}).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def on_spark(query: Query, *, floor: bool = False, by_scan: bool = False) -> Factory:
    """Run a query from the Parquet files to Spark's ``noop`` sink.

    ``by_scan``: tasks read the files by themselves.
    """

    def factory(stage: Stage) -> Work:
        resources, window = stage.resources, stage.window
        frame: Any = resources.frame
        if by_scan:
            frame = gw.scan(resources.folder, resources.spark)

        def run() -> None:
            query(frame, window).write.format("noop").mode("overwrite").save()

        def result() -> pa.Table:
            answer = query(frame, window)
            return _digest(answer) if stage.digested else canonical(answer.toArrow())

        return Work(stopwatch(run), window, None if floor else result, floor)

    return factory


def windows(frame: DataFrame, window: Window) -> DataFrame:
    """Group by Spark's own ``window()``."""
    size, slide = (f"{ticks} microseconds" for ticks in (window.size, window.slide))
    groups = frame.groupBy("key", sf.window("ts", size, slide))
    value = sf.col("value")
    answer = groups.agg(
        sf.sum(value).alias("sum"), sf.count("*").alias("count"), sf.max(value).alias("max")
    )
    bounds = (sf.col(f"window.{end}").alias(f"window_{end}") for end in ("start", "end"))
    return answer.select("key", *bounds, "sum", "count", "max")


def sessions(frame: DataFrame, window: Window) -> DataFrame:
    """Group by Spark's own ``session_window()``; the size of the window is the gap."""
    value = sf.col("value")
    grouped = frame.groupBy("key", sf.session_window("ts", f"{window.size} microseconds"))
    answer = grouped.agg(
        sf.sum(value).alias("sum"), sf.count("*").alias("count"), sf.max(value).alias("max")
    )
    bounds = (sf.col(f"session_window.{end}").alias(f"window_{end}") for end in ("start", "end"))
    return answer.select("key", *bounds, "sum", "count", "max")


def in_time(left: DataFrame, right: DataFrame, window: Window) -> DataFrame:
    """Join rows up to the window's size apart, by a condition on their times."""
    ours, its = _prefixed(left, "left"), _prefixed(right, "right")
    return _pairs(ours.join(its, (ours["left_key"] == its["right_key"]) & _near(window)))


def in_time_by_buckets(left: DataFrame, right: DataFrame, window: Window) -> DataFrame:
    """Do the same with a bucket of time in the key; right rows are in two buckets."""
    width = 2 * window.size

    def bucket(time: Column, shift: int) -> Column:
        return sf.floor((sf.unix_micros(time) + sf.lit(shift)) / sf.lit(width))

    ours, its = _prefixed(left, "left"), _prefixed(right, "right")
    ours = ours.withColumn("left_bucket", bucket(sf.col("left_ts"), 0))
    ends = (bucket(sf.col("right_ts"), shift) for shift in (-window.size, window.size))
    its = its.withColumn("right_bucket", sf.explode(sf.array_distinct(sf.array(*ends))))
    same = ours["left_key"] == its["right_key"], ours["left_bucket"] == its["right_bucket"]
    return _pairs(ours.join(its, same[0] & same[1] & _near(window)))


def _prefixed(frame: DataFrame, side: str) -> DataFrame:
    return frame.select(*(sf.col(name).alias(f"{side}_{name}") for name in ("key", "value", "ts")))


def _pairs(joined: DataFrame) -> DataFrame:
    return joined.withColumnRenamed("left_key", "key").select(*PAIRS)


def _near(window: Window) -> Column:
    bound = f"INTERVAL {window.size} MICROSECONDS"
    return sf.expr(f"right_ts BETWEEN left_ts - {bound} AND left_ts + {bound}")


def identity(frame: DataFrame, _window: Window) -> DataFrame:
    """Count the rows of the needed columns in Python: the floor of all that crosses to it."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(batch.num_rows for batch in batches)
        yield pa.RecordBatch.from_pydict({"rows": [rows]})

    columns = frame.select("key", sf.unix_micros("ts").alias("ts"), "value")
    return columns.mapInArrow(count, "rows long")


def _digest(answer: DataFrame) -> pa.Table:
    """Do on executors what `benchmarks.equality.digest` does in memory."""
    ticks = sf.unix_micros("window_start")
    start = sf.floor(ticks / sf.lit(SECOND)).cast("long") - sf.lit(ORIGIN)
    terms: dict[str, Column] = {
        "start_count": sf.count("*"),
        "start_sum": sf.sum(start),
        "length_sum": sf.sum(sf.unix_micros("window_end") - ticks),
        "total_sum": sf.sum("sum"),
        "moment_sum": sf.sum(start.cast("double") * sf.col("sum")),
        "rows_sum": sf.sum("count"),
        "row_moment_sum": sf.sum(start * sf.col("count")),
        "peak_sum": sf.sum("max"),
    }
    named = (column.alias(name) for name, column in terms.items())
    return answer.groupBy("key").agg(*named).toArrow().select(DIGEST)
