"""Joins of rows that are near in time: through Spark from Parquet, and of tables in memory."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.contest import Benchmark
from benchmarks.engines import duckdb, ours, spark
from benchmarks.join_data import JoinData
from benchmarks.joins import in_memory, on_spark
from benchmarks.measure import Measurement
from benchmarks.verdict import faster

#: The contestants on Arrow tables in memory.
LOCAL = "gpu_windows[local]"


def _targets(measurements: Sequence[Measurement]) -> list[str]:
    """Compare with the joins that others write first, and with those that experts write."""
    pairs: tuple[tuple[str, str, float | None], ...] = (
        ("gpu_windows", "spark", 15.0),
        ("gpu_windows", "spark[buckets]", None),
        (LOCAL, "duckdb", 5.0),
        (LOCAL, "duckdb[buckets]", None),
    )
    return [line for pair in pairs for line in faster(*pair, measurements)]


BENCHMARK = Benchmark(
    name="interval_join",
    about="pairs of rows of a key up to --size apart, from Parquet or of tables in memory; "
    "--rows are those of a side",
    size="5 seconds",
    contestants={
        "gpu_windows": on_spark(ours.joined),
        "spark": on_spark(spark.in_time),
        "spark[buckets]": on_spark(spark.in_time_by_buckets),
        LOCAL: in_memory(ours.joined),
        "duckdb": in_memory(duckdb.in_time),
        "duckdb[buckets]": in_memory(duckdb.in_time_by_buckets),
    },
    peers=("spark", "duckdb"),
    rows=1_250_000,
    warmups=1,
    repeats=2,
    in_a_row=2,
    summary=_targets,
    data=JoinData,
)
