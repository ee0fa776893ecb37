"""Sliding windows on an Arrow table in memory: no Spark, no files."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.suite import kernels

BENCHMARK = replace(
    kernels.BENCHMARK,
    name="kernels_sliding",
    about="sum, count and max by key in sliding windows, on an Arrow table in memory",
    size="60 minutes",
    slide="1 minute",
)
