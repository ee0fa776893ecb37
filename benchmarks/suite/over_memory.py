"""Aggregates over the rows before each row, on an Arrow table in memory: no Spark, no files."""

from __future__ import annotations

from benchmarks.contest import Benchmark
from benchmarks.engines import memory, over

BENCHMARK = Benchmark(
    name="over_memory",
    about="sum, count and max over the rows of a key up to --size before each row, in memory",
    size="1 minute",
    contestants={
        "gpu_windows": over.ours_from_memory(),
        "gpu_windows[1 thread]": over.ours_from_memory(threads=1),
        "polars": over.polars_from_memory(),
        "duckdb": over.duckdb_from_memory(),
        "copy": memory.copy(),
    },
    peers=("polars", "duckdb"),
)
