"""Sessions, from Parquet files through Spark; ``--size`` is the gap."""

from __future__ import annotations

from benchmarks.contest import Benchmark
from benchmarks.engines import ours, spark

BENCHMARK = Benchmark(
    name="session",
    about="sum, count and max by key in sessions (--size is the gap), from Parquet",
    size="5 seconds",
    contestants={
        "gpu_windows": spark.on_spark(ours.planned_sessions),
        "gpu_windows_scan": spark.on_spark(ours.planned_sessions, by_scan=True),
        "spark": spark.on_spark(spark.sessions),
        "identity": spark.on_spark(spark.identity, floor=True),
    },
    peers=("spark", "identity"),
)
