"""Sessions on a stream, against Spark's own; ``--size`` is the gap."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.engines import ours, spark, streams
from benchmarks.streams import with_result
from benchmarks.suite import stream_tumbling
from benchmarks.verdict import Target, verdict

BENCHMARK = replace(
    stream_tumbling.BENCHMARK,
    name="stream_session",
    about="sum, count and max by key in sessions (--size is the gap) on a stream; "
    "a run is a micro-batch",
    size="5 seconds",
    contestants={
        "gpu_windows": with_result(streams.OurQuery(ours.sessions)),
        "gpu_windows_scan": with_result(streams.OurScan(ours.sessions)),
        "spark": with_result(streams.SparkQuery(spark.sessions)),
    },
    warmups=4,
    repeats=6,
    in_a_row=3,
    summary=partial(verdict, Target(of_spark=2.0)),
)
