"""Streams at a steady rate: state and memory over time."""

from __future__ import annotations

from benchmarks.contest import Benchmark, Factory, Window, Work
from benchmarks.engines import ours, over, streams
from benchmarks.soak import flatness, steady
from benchmarks.stage import Stage
from benchmarks.stream_data import StreamData

#: Seconds from one micro-batch of a query to the next.
PERIOD = 10.0
GAP, FRAME = Window.of("5 seconds"), Window.of("1 minute")


def _sessions(stage: Stage) -> Work:
    return _SESSIONS(stage.at(GAP))


def _over(stage: Stage) -> Work:
    return _OVER(stage.at(FRAME))


_OVER: Factory = steady(streams.OurQuery(over.outputs), PERIOD)
_SESSIONS: Factory = steady(streams.OurQuery(ours.sessions), PERIOD)

BENCHMARK = Benchmark(
    name="stream_soak",
    about=f"a micro-batch every {PERIOD:g} s for --minutes, of sliding windows, of sessions "
    "with a gap of 5 s and of sums over the minute before each row: state and memory over time",
    size="60 minutes",
    slide="1 minute",
    contestants={
        "gpu_windows[sliding]": steady(streams.OurQuery(ours.query), PERIOD),
        "gpu_windows[sessions]": _sessions,
        "gpu_windows[over]": _over,
    },
    rows=100_000,
    keys=10_000,
    warmups=2,
    repeats=round(15 * 60 / PERIOD),
    summary=flatness,
    data=StreamData,
    period=PERIOD,
)
