"""The same join of one hot key: many pairs a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.join_data import HotData
from benchmarks.measure import Measurement
from benchmarks.suite import interval_join
from benchmarks.verdict import faster


def _target(measurements: Sequence[Measurement]) -> list[str]:
    return [
        line
        for peer, least in (("spark", 25.0), ("spark[buckets]", None))
        for line in faster("gpu_windows", peer, least, measurements)
    ]


BENCHMARK = replace(
    interval_join.BENCHMARK,
    name="interval_join_hot",
    about="pairs of rows of one hot key up to --size apart, from Parquet; --rows are those of the "
    "left side",
    contestants={
        name: interval_join.BENCHMARK.contestants[name]
        for name in ("gpu_windows", "spark", "spark[buckets]")
    },
    peers=("spark",),
    rows=100_000,
    keys=1,
    summary=_target,
    data=HotData,
)
