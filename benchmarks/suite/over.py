"""Aggregates over the rows before each row, from Parquet files through Spark."""

from __future__ import annotations

from benchmarks.contest import Benchmark
from benchmarks.engines import over, spark

BENCHMARK = Benchmark(
    name="over",
    about="sum, count and max over the rows of a key up to --size before each row, from Parquet",
    size="1 minute",
    contestants={
        "gpu_windows": spark.on_spark(over.ours),
        "spark": spark.on_spark(over.spark),
        "identity": spark.on_spark(spark.identity, floor=True),
    },
    peers=("spark", "identity"),
)
