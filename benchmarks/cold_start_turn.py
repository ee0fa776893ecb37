"""A process of its own that runs the first query of a session, and again, by some checkout.

Run by `benchmarks.cold_start`: ``python -m benchmarks.cold_start_turn FOLDER``; the last line that
it writes is the answer: for each step its seconds, and processor seconds of all processes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from benchmarks import processes

Figures = dict[str, dict[str, float]]

#: Settings of the session besides those of `gpu_windows.session`.
_SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.log.level": "ERROR",
    "spark.master": "local[*]",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def measured(figures: Figures, step: str) -> Iterator[None]:
    """Put what a step takes among the figures."""
    cpu, began = processes.cpu_seconds(), perf_counter()
    yield
    seconds = perf_counter() - began
    figures[step] = {"seconds": seconds, "cpu_s": processes.cpu_seconds() - cpu}


def run(folder: str) -> Figures:
    """Run sliding windows over a folder of the benchmarks' data, as a user's program does."""
    figures: Figures = {}
    with measured(figures, "import"):
        import gpu_windows as gw

    with measured(figures, "session"):
        spark = gw.session(config=_SETTINGS)
    for step in ("first result", "second result"):
        with measured(figures, step):
            rows = gw.stream(spark.read.parquet(folder))
            timed = rows.event_time("ts", gw.WatermarkStrategy.for_bounded_out_of_orderness("5 s"))
            windows = gw.SlidingEventTimeWindows.of("60 min", "1 min")
            found = timed.key_by("key").window(windows).options(partials="kernels")
            results = found.aggregate(sum=gw.sum("value"), n=gw.count(), max=gw.max("value"))
            results.write.format("noop").mode("overwrite").save()
    spark.stop()
    return figures


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1])) + "\n")
