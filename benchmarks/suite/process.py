"""Process functions in memory: rows one by one, many keys at once, and by hand."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.contest import Benchmark
from benchmarks.engines import processing
from benchmarks.measure import Measurement
from benchmarks.report import OWN
from benchmarks.stream_data import StreamData

#: What the vectorised function may take of the time of a group-by.
_OF_NUMPY = 5.0


def _ratios(measurements: Sequence[Measurement]) -> list[str]:
    medians = {m.contestant: m.median for m in measurements}
    if not {OWN, "numpy"} <= medians.keys():
        return []
    ratio = medians[OWN] / medians["numpy"]
    verdict = "reached" if ratio <= _OF_NUMPY else "missed"
    return [f"{OWN}: {ratio:.2f} times a group-by by NumPy, at most {_OF_NUMPY:g}: {verdict}"]


BENCHMARK = Benchmark(
    name="process",
    about="a running count with a timer (--size is its period) by process functions, in memory; "
    "a run is a micro-batch",
    size="15 minutes",
    contestants={
        OWN: processing.in_memory(processing.Vectorised),
        f"{OWN}[stored]": processing.in_memory(processing.Vectorised, stored=True),
        f"{OWN}[row at a time]": processing.in_memory(processing.RowByRow),
        "numpy": processing.by_hand(processing.group_by),
        "python": processing.by_hand(processing.loop),
    },
    rows=1_000_000,
    warmups=2,
    repeats=5,
    summary=_ratios,
    data=StreamData,
    checks_runs=True,
)
