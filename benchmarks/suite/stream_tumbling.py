"""Tumbling windows on a stream, against Spark's own streaming aggregation."""

from __future__ import annotations

from functools import partial

from benchmarks.contest import Benchmark
from benchmarks.engines import ours, spark, streams
from benchmarks.stream_data import StreamData
from benchmarks.streams import with_result
from benchmarks.verdict import Target, verdict

BENCHMARK = Benchmark(
    name="stream_tumbling",
    about="sum, count and max by key in tumbling windows on a stream; a run is a micro-batch",
    size="1 minute",
    contestants={
        "gpu_windows": with_result(streams.OurQuery(ours.query)),
        "gpu_windows_scan": with_result(streams.OurScan(ours.query)),
        "spark": with_result(streams.SparkQuery(spark.windows)),
    },
    peers=("spark",),
    rows=1_000_000,
    keys=10_000,
    warm_seconds=120.0,
    warmups=4,
    repeats=8,
    in_a_row=4,
    summary=partial(verdict, Target(of_spark=0.9, rows_a_second=400_000)),
    data=StreamData,
    checks_runs=True,
)
