"""What a hot key costs, on an Arrow table in memory: no Spark, no files."""

from __future__ import annotations

from collections.abc import Sequence

import gpu_windows as gw
from benchmarks.contest import Benchmark
from benchmarks.engines import ours
from benchmarks.measure import Measurement

#: Share of the rows that are of one key.
HOT = 0.9

_EVICTOR = gw.CountEvictor.of(100)


def _ratios(measurements: Sequence[Measurement]) -> Sequence[str]:
    """Say how much longer the hot key takes."""
    medians = {measurement.contestant: measurement.median for measurement in measurements}
    return [
        f"{name}: {HOT:.0%} of the rows on one key take "
        f"{medians[f'gpu_windows[{name}, hot]'] / medians[f'gpu_windows[{name}, uniform]']:.2f} "
        "of the uniform time"
        for name in ("slices", "evictor")
        if {f"gpu_windows[{name}, hot]", f"gpu_windows[{name}, uniform]"} <= medians.keys()
    ]


BENCHMARK = Benchmark(
    name="hot_key",
    about=f"sliding windows in memory, keys uniform or {HOT:.0%} of the rows on one key",
    size="5 minutes",
    slide="1 minute",
    contestants={
        "gpu_windows[slices, uniform]": ours.windows_from_memory(),
        "gpu_windows[slices, hot]": ours.windows_from_memory(hot=HOT),
        "gpu_windows[evictor, uniform]": ours.windows_from_memory(evictor=_EVICTOR),
        "gpu_windows[evictor, hot]": ours.windows_from_memory(evictor=_EVICTOR, hot=HOT),
    },
    summary=_ratios,
)
