"""Sliding windows on a stream, against Spark's own streaming aggregation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.suite import stream_tumbling
from benchmarks.verdict import Target, verdict

BENCHMARK = replace(
    stream_tumbling.BENCHMARK,
    name="stream_sliding",
    about="sum, count and max by key in sliding windows on a stream; a run is a micro-batch",
    size="60 minutes",
    slide="1 minute",
    warmups=4,  # until windows are full
    repeats=6,
    in_a_row=3,
    summary=partial(verdict, Target(of_spark=12.0)),
)
