"""Tries a drawn folder by a scan of Spark's: the rows of `spark.read.parquet`, or why not."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from gpu_windows.errors import GpuWindowsError
from gpu_windows.spark_glue.dataframes.source import SparkSource
from gpu_windows.spark_glue.scans.batch_scan import scan_by_spark
from tests.scans.conditions import draw_columns, draw_condition
from tests.scans.folders import draw_folder
from tests.scans.trial import compare, draw_size, read_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

#: What a trial may come to, besides a difference.
SAME, BY_SPARK, REFUSED, NOT_READ = "same", "read by Spark", "refused", "not read by Spark"


def try_on_spark(seed: int, path: Path, session: SparkSession) -> str:
    """Return how a scan of the folder of a seed went, or what differs from Spark's rows."""
    rng = Random(f"spark {seed}")
    draw_folder(seed, path)
    try:
        source: Any = scan_by_spark([str(path)], session)
    except PySparkException:
        return NOT_READ
    if source.scan.rows is None:
        return BY_SPARK
    outcome = _compare(rng, source)
    if outcome != SAME:
        return outcome
    names = source.schema.names
    for step in range(3):
        if step == 1:
            source = source.add_columns(draw_columns(rng, names))
        else:
            source = source.filter_rows(draw_condition(rng, names))
        if source.scan.rows is None:
            return BY_SPARK
        outcome = _compare(rng, source)
        if outcome in (NOT_READ, REFUSED):
            return SAME if step else outcome
        if outcome != SAME:
            return f"step {step}, {source.scan.rows.parts[0].changes}: {outcome}"
    return SAME


def _compare(rng: Random, source: SparkSource) -> str:
    """Return how the rows that tasks read compare with those that Spark does."""
    names = source.schema.names
    some = rng.sample(names, rng.randint(1, len(names)))
    expected = _by_spark(source, some)
    if expected is None:
        return NOT_READ
    assert source.scan is not None
    assert source.scan.rows is not None
    try:
        found = read_rows(source.scan.rows, some, draw_size(rng))
    except GpuWindowsError:
        return REFUSED
    return compare(found, expected) or SAME


def _by_spark(source: SparkSource, names: list[str]) -> pa.Table | None:
    try:
        return source.frame.select(*(f"`{name}`" for name in names)).toArrow()
    except Exception as error:
        if "spark" in f"{type(error)} {error}".lower():
            return None  # an error of Spark's, or of the JVM
        raise
