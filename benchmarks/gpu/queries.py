"""Whole queries on an Arrow table, by both back ends, by rows a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import gpu_windows as gw
from benchmarks.gpu.scene import Row, Scene, timed

_DAY = 86_400_000_000


def run(scene: Scene) -> Iterator[Row]:
    """Yield the time of every query, back end and number of rows a call; results must be equal."""
    rows = scene.sizes(23)[-1]
    table = _table(rows)
    for name, windowed, most in _queries(table):
        expected: pa.Table | None = None
        for device in ("cpu", scene.device):
            for batch in scene.sizes(17, 20, 23):
                query = windowed.options(device=device, batch_rows=batch)
                results: list[pa.Table] = []

                def work(query: Any = query, results: list[pa.Table] = results) -> None:
                    results[:] = [query.aggregate(n=gw.count(), s=gw.sum("v"), m=gw.max("v"))]

                seconds = _host_seconds(scene, work)
                expected = results[0] if expected is None else expected
                equal = bool(results[0].equals(expected))
                yield {
                    "what": name, "device": device, "rows": most, "rows_a_call": batch,
                    "host_s": seconds, "rows_per_s": most / seconds, "equal": equal,
                }  # fmt: skip


def _host_seconds(scene: Scene, work: Any) -> float:
    return timed(Scene(dry=True, seconds=scene.seconds), work)[1]  # a query has no one stream


def _table(rows: int) -> pa.Table:
    random = np.random.default_rng(9)
    return pa.table(
        {
            "ts": pa.array(np.sort(random.integers(0, _DAY, rows)), pa.timestamp("us", "UTC")),
            "k": random.integers(0, 1_000, rows),
            "v": random.integers(-(10**6), 10**6, rows),
        }
    )


def _queries(table: pa.Table) -> Iterator[tuple[str, Any, int]]:
    """Yield names, windows and numbers of rows; machines get an eighth of the rows."""
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()

    def keyed(rows: pa.Table) -> Any:
        return gw.stream(rows).event_time("ts", strategy).key_by("k")

    sliding = gw.SlidingEventTimeWindows.of("60 minutes", "1 minute")
    minute = gw.TumblingEventTimeWindows.of("1 minute")
    yield "tumbling", keyed(table).window(minute), len(table)
    yield "sliding 60/1", keyed(table).window(sliding), len(table)
    session = gw.EventTimeSessionWindows.with_gap("1 minute")
    yield "session", keyed(table).window(session), len(table)
    eighth = table.slice(0, len(table) // 8)
    early = gw.EarlyAndLateTrigger.of(early=gw.CountTrigger.of(100))
    hourly = gw.TumblingEventTimeWindows.of("1 hour")
    yield "early firings", keyed(eighth).window(hourly).trigger(early), len(eighth)
