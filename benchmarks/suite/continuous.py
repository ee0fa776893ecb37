"""Sliding windows that look at single rows, on an Arrow table in memory: no Spark, no files."""

from __future__ import annotations

import gpu_windows as gw
from benchmarks.contest import Benchmark
from benchmarks.engines import memory, ours

#: Interval of the continuous trigger, and rows that the evictor keeps.
INTERVAL, ROWS = "1 minute", 100

_TRIGGER = gw.ContinuousEventTimeTrigger.of(INTERVAL)
_EVICTOR = gw.CountEvictor.of(ROWS)

BENCHMARK = Benchmark(
    name="continuous",
    about=(
        f"sum, count and max of sliding windows: fired every {INTERVAL}, and of the last {ROWS} "
        "rows of each, in memory"
    ),
    size="5 minutes",
    slide="1 minute",
    contestants={
        "gpu_windows[trigger]": ours.windows_from_memory(trigger=_TRIGGER),
        "gpu_windows[trigger, 1 thread]": ours.windows_from_memory(trigger=_TRIGGER, threads=1),
        "gpu_windows[evictor]": ours.windows_from_memory(evictor=_EVICTOR),
        "gpu_windows[evictor, 1 thread]": ours.windows_from_memory(evictor=_EVICTOR, threads=1),
        "copy": memory.copy(),
    },
)
