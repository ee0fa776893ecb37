"""Tumbling windows on an Arrow table in memory: no Spark, no files."""

from __future__ import annotations

from benchmarks.contest import Benchmark
from benchmarks.engines import duckdb, memory, ours, polars

BENCHMARK = Benchmark(
    name="kernels",
    about="sum, count and max by key in tumbling windows, on an Arrow table in memory",
    size="1 minute",
    contestants={
        "gpu_windows": ours.from_memory(),
        "polars": polars.from_memory(polars.dynamic),
        "duckdb": duckdb.from_memory(),
        "copy": memory.copy(),
    },
    peers=("polars", "duckdb"),
)
