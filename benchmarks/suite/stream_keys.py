"""Whether a micro-batch costs what it touches, however many other keys the state holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.contest import Benchmark
from benchmarks.data import DISORDER, START
from benchmarks.engines import ours, streams
from benchmarks.measure import Measurement
from benchmarks.stage import Stage
from benchmarks.stream_data import Batches, StreamData, rows_of
from benchmarks.streams import data_of, without_result

#: How many times the keys that a micro-batch touches are in the state.
TIMES = (1, 100, 1_000)
#: Micro-batches between two ends of windows: so many slides are they long.
_IN_A_SLIDE = 100
_QUERIES = {"slices": ours.query, "evictor": ours.last_rows}


def _supply(times: int) -> Callable[[Stage], Batches]:
    """Fill the state with all keys, then touch some in each micro-batch; no window ends but one.

    All keys have a row in the first slide. Those touched have theirs in the next one: the first of
    these micro-batches fires the only window that ends with the first slide.
    """

    def supply(stage: Stage) -> Batches:
        return partial(_batch, data_of(stage), stage.window.slide, times)

    return supply


def _batch(data: StreamData, slide: int, times: int, index: int) -> pa.Table:
    random = np.random.default_rng([times, index])
    if index == 0:
        keys = random.permutation(data.keys * times)
        return rows_of(keys, START + random.integers(0, slide // 10, len(keys)), random)
    step = slide // _IN_A_SLIDE
    begin = START + slide + DISORDER + index * step
    keys = random.integers(0, data.keys, data.rows)
    return rows_of(keys, begin + random.integers(0, step, data.rows), random)


def _growth(measurements: Sequence[Measurement]) -> list[str]:
    """Say how the cost grows with the state."""
    by_name = {m.contestant: m for m in measurements}
    lines = [f"cost over that of a state of {TIMES[0]}x the keys touched, at {TIMES}x:"]
    for name in _QUERIES:
        found = [m for times in TIMES if (m := by_name.get(_name(name, times)))]
        ratios = [f"{m.median / found[0].median:.2f}" for m in found]
        sizes = [f"{m.details['state_live_bytes'] / 1e6:.1f}" for m in found]
        if found:
            lines.append(f"{name}: {' : '.join(ratios)}; state in MB {' : '.join(sizes)}")
    return lines


def _name(query: str, times: int) -> str:
    return f"gpu_windows[{query}, {times}x]"


BENCHMARK = Benchmark(
    name="stream_keys",
    about="micro-batches on --keys keys, with state of 1x, 100x and 1000x as many",
    size="60 minutes",
    slide="10 minutes",
    contestants={
        _name(name, times): without_result(streams.OurQuery(query), _supply(times))
        for name, query in _QUERIES.items()
        for times in TIMES
    },
    rows=10_000,
    keys=1_000,
    warmups=4,  # fill, touch and fire the window that has ended, touch, touch
    repeats=6,
    summary=_growth,
    data=StreamData,
)
