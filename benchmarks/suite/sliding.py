"""Sliding windows, from Parquet files through Spark."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.suite import tumbling

BENCHMARK = replace(
    tumbling.BENCHMARK,
    name="sliding",
    about="sum, count and max by key in sliding windows, from Parquet",
    size="60 minutes",
    slide="1 minute",
)
