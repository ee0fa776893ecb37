"""Process functions in memory: rows one by one, many keys at once, and by hand."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.contest import Benchmark
from benchmarks.engines import processing
from benchmarks.measure import Measurement
from benchmarks.report import OWN
from benchmarks.stream_data import StreamData

_BY_ROW = f"{OWN}[row at a time]"
#: What may take how many times as long as what.
_TARGETS = (
    (OWN, 5.0, "numpy", "a group-by by NumPy"),
    (_BY_ROW, 3.0, "python", "a plain loop over a dict"),
)


def _ratios(measurements: Sequence[Measurement]) -> list[str]:
    medians = {m.contestant: m.median for m in measurements}
    lines = []
    for contestant, most, other, named in _TARGETS:
        if {contestant, other} <= medians.keys():
            ratio = medians[contestant] / medians[other]
            verdict = "reached" if ratio <= most else "missed"
            lines.append(f"{contestant}: {ratio:.2f} times {named}, at most {most:g}: {verdict}")
    return lines


BENCHMARK = Benchmark(
    name="process",
    about="a running count with a timer (--size is its period) by process functions, in memory; "
    "a run is a micro-batch",
    size="15 minutes",
    contestants={
        OWN: processing.in_memory(processing.Vectorised),
        f"{OWN}[stored]": processing.in_memory(processing.Vectorised, stored=True),
        _BY_ROW: processing.in_memory(processing.RowByRow),
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
