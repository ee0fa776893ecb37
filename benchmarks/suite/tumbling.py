"""Tumbling windows, from Parquet files through Spark."""

from __future__ import annotations

from benchmarks.contest import Benchmark
from benchmarks.engines import duckdb, ours, polars, spark

BENCHMARK = Benchmark(
    name="tumbling",
    about="sum, count and max by key in tumbling windows, from Parquet",
    size="1 minute",
    contestants={
        "gpu_windows": spark.on_spark(ours.planned),
        "gpu_windows_scan": spark.on_spark(ours.planned, by_scan=True),
        "gpu_windows_kernels": spark.on_spark(ours.by_kernels),
        "spark": spark.on_spark(spark.windows),
        "polars": polars.from_parquet(polars.dynamic),
        "duckdb": duckdb.from_parquet(),
        "identity": spark.on_spark(spark.identity, floor=True),
    },
    peers=("spark", "polars", "duckdb", "identity"),
)
