"""Whether four times as much state takes four times as long, in every direction that it grows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

from benchmarks.contest import Benchmark, Factory, Work
from benchmarks.growth import DIRECTIONS, Direction
from benchmarks.measure import Measurement
from benchmarks.stage import Stage

#: The sizes, as multiples of the smallest one.
TIMES = (1, 4, 16)


def _name(direction: str, times: int) -> str:
    return f"gpu_windows[{direction}, {times}x]"


def _sized(direction: Direction, times: int) -> Factory:
    def factory(stage: Stage) -> Work:
        rows = stage.resources.data_set.rows * times // TIMES[-1]
        count = max(1, round(rows * direction.each))
        run = direction.make(count)

        def measure() -> float:
            began = time.process_time()
            run()
            return time.process_time() - began

        return Work(measure, stage.window, details=lambda _: {direction.unit: count})

    return factory


def _growth(measurements: Sequence[Measurement]) -> list[str]:
    """Say what each direction costs at all sizes, and how much more at each than at the last."""
    by_name = {m.contestant: m for m in measurements}
    lines = ["CPU seconds at 1x, 4x and 16x, and the ratios for 4x:"]
    for name, direction in DIRECTIONS.items():
        found = [m for times in TIMES if (m := by_name.get(_name(name, times)))]
        if len(found) < len(TIMES):
            continue
        medians = [m.median for m in found]
        ratios = [f"{b / max(a, 1e-9):.1f}" for a, b in pairwise(medians)]
        seconds = ", ".join(f"{median:.3f}" for median in medians)
        most = found[-1].details[direction.unit]
        lines.append(f"{name}: {seconds} s; {', '.join(ratios)} (16x: {most:,} {direction.unit})")
    return lines


BENCHMARK = Benchmark(
    name="growth",
    about="CPU seconds of work that is 1x, 4x and 16x as large, in memory: no Spark, no files; "
    "--rows are those of the largest size, one a unit or a share of them",
    size="1 minute",
    contestants={
        _name(name, times): _sized(direction, times)
        for name, direction in DIRECTIONS.items()
        for times in TIMES
    },
    rows=160_000,
    keys=1,
    summary=_growth,
)
