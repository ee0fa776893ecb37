"""Process functions on a stream, against Spark's transformWithStateInPandas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.engines import processing, streams
from benchmarks.measure import Measurement
from benchmarks.report import OWN
from benchmarks.streams import with_result
from benchmarks.suite import stream_tumbling
from benchmarks.verdict import Target, faster, verdict

_BY_ROW = f"{OWN}[row at a time]"


def _summary(measurements: Sequence[Measurement]) -> list[str]:
    target = Target(of_spark=1.5, entry="key or timer")
    return [*verdict(target, measurements), *faster(_BY_ROW, "spark", None, measurements)]


BENCHMARK = replace(
    stream_tumbling.BENCHMARK,
    name="stream_process",
    about="a running count with a timer (--size is its period) by process functions on a stream; "
    "a run is a micro-batch",
    size="15 minutes",
    contestants={
        OWN: with_result(
            streams.OurQuery(processing.ours(processing.Vectorised)), processing.summed
        ),
        _BY_ROW: with_result(
            streams.OurQuery(processing.ours(processing.RowByRow)), processing.summed
        ),
        "spark": with_result(streams.SparkQuery(processing.spark), processing.summed),
    },
    keys=1_000,
    warm_seconds=0.0,
    warmups=2,
    repeats=3,
    in_a_row=1,
    summary=_summary,
)
