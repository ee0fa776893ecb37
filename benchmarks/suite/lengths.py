"""Ten window lengths in one pass against one, on an Arrow table in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.contest import Work
from benchmarks.engines import ours
from benchmarks.measure import Measurement
from benchmarks.stage import Stage
from benchmarks.suite import kernels_sliding

#: In slides.
TEN = (1, 2, 3, 5, 10, 15, 20, 30, 45, 60)
#: Ten lengths may take so many times as long as the longest alone.
MOST = 2.5
ONE = "gpu_windows[one length]"


def _ratios(measurements: Sequence[Measurement]) -> list[str]:
    base = next(m for m in measurements if m.contestant == ONE)
    return [
        f"{m.contestant}: {m.median / base.median:.2f} of one length (target {MOST} at most)"
        for m in measurements
        if m is not base
    ]


def _ten_queries(stage: Stage) -> Work:
    """Run a query for each length, one after the other."""
    each = [ours.lengths_from_memory([slides])(stage) for slides in TEN]
    return replace(each[0], measure=lambda: sum(work.measure() for work in each))


BENCHMARK = replace(
    kernels_sliding.BENCHMARK,
    name="lengths",
    about="sum, count and max by key over windows of ten lengths up to 60 slides (--slide), in one "
    "pass or in ten, on an Arrow table in memory",
    contestants={
        ONE: ours.lengths_from_memory(TEN[-1:]),
        "gpu_windows[ten lengths]": ours.lengths_from_memory(TEN),
        "gpu_windows[ten lengths, changed keys]": ours.lengths_from_memory(TEN, changed=True),
        "gpu_windows[ten queries]": _ten_queries,
    },
    peers=(),
    summary=_ratios,
)
