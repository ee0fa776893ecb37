"""Joins of two streams in time, against Spark's own stream-stream join."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.engines import ours, spark, streams
from benchmarks.joins import written_pairs
from benchmarks.stream_data import TwoStreams
from benchmarks.streams import with_result
from benchmarks.suite import stream_tumbling
from benchmarks.verdict import Target, verdict

BENCHMARK = replace(
    stream_tumbling.BENCHMARK,
    name="stream_interval_join",
    about="pairs of rows of a key up to --size apart, of two streams; a run is a micro-batch, "
    "--rows are those of a side",
    size="5 seconds",
    contestants={
        "gpu_windows": with_result(streams.OurQuery(ours.in_time), written_pairs),
        "spark": with_result(streams.SparkQuery(spark.in_time), written_pairs),
    },
    rows=250_000,
    warmups=4,
    repeats=6,
    in_a_row=3,
    summary=partial(verdict, Target(of_spark=2.0, entry="row")),
    data=TwoStreams,
)
