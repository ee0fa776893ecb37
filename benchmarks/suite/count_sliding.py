"""Sliding count windows on an Arrow table in memory: no Spark, no files."""

from __future__ import annotations

from benchmarks.contest import Benchmark
from benchmarks.engines import memory, ours

#: Rows of a window, and rows between two of them.
SIZE, SLIDE = 100, 10

BENCHMARK = Benchmark(
    name="count_sliding",
    about=f"sum, count and max of the last {SIZE} rows of a key, every {SLIDE} rows, in memory",
    size="1 minute",
    contestants={
        "gpu_windows": ours.counts_from_memory(SIZE, SLIDE),
        "gpu_windows[1 thread]": ours.counts_from_memory(SIZE, SLIDE, threads=1),
        "copy": memory.copy(),
    },
)
