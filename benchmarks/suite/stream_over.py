"""Aggregates over the rows before each row on a stream, against rows that pass unchanged."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.contest import Work
from benchmarks.engines import over, streams
from benchmarks.report import OWN
from benchmarks.stage import Stage
from benchmarks.stream_data import Batches
from benchmarks.streams import data_of, without_result
from benchmarks.suite import stream_tumbling


def _rows(stage: Stage) -> Batches:
    (make,) = data_of(stage).inputs
    return make


def _over(stage: Stage) -> Work:
    return without_result(streams.OurQuery(over.outputs), _rows)(stage)


def _through(stage: Stage) -> Work:
    return without_result(streams.OurQuery(over.through), _rows)(stage)


BENCHMARK = replace(
    stream_tumbling.BENCHMARK,
    name="stream_over",
    about="sum, count and max over the rows of a key up to --size before each row, on a stream; "
    "through: the same rows, given back by a function as they come",
    contestants={OWN: _over, "through": _through},
    peers=(),
    warm_seconds=0.0,
    warmups=4,
    repeats=6,
    in_a_row=2,
    summary=lambda _: (),
    checks_runs=False,
)
