"""Deltas of several columns: the distance between points."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.operators.build import restore_operator
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.planner import plan

FAR = gw.Delta.of(["x", "y"], math.dist)
POINTS: list[tuple[float | None, float | None]] = [
    *[(0.0, 0.0), (3.0, 3.9), (3.0, 4.1), (0.0, 4.0), (None, 1.0), (9.0, 9.0), (100.0, 9.0)],
]


def points() -> pa.Table:
    columns = zip(*POINTS, strict=True)
    xs, ys = (pa.array(column, pa.float64()) for column in columns)
    seq = range(len(POINTS))
    ts = pa.array([n * 1_000 for n in seq], pa.timestamp("us", "UTC"))
    return pa.table({"k": ["a"] * len(POINTS), "x": xs, "y": ys, "n": pa.array(seq), "ts": ts})


def windowed() -> gw.typing.WindowedStream:
    timed = gw.stream(points()).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    return timed.key_by("k").window(gw.GlobalWindows.create())


def test_a_trigger_asks_how_far_a_row_is_from_the_one_that_fired() -> None:
    """(3, 4.1) is 5.08 from (0, 0), and then the reference; nothing is far from NaN."""
    fired = windowed().trigger(gw.DeltaTrigger.of(5.0, FAR))
    got = fired.aggregate(last=gw.last("n"))
    assert got["last"].to_pylist() == [2, 5, 6]
    assert (
        "dist(old (x, y), new (x, y))"
        in fired.with_outputs().aggregate(last=gw.last("n")).explain()
    )


def test_an_evictor_keeps_the_rows_near_the_last_one() -> None:
    near = windowed().trigger(gw.CountTrigger.of(4)).evictor(gw.DeltaEvictor.of(3.5, FAR))
    got = near.collect_lists("n")
    assert got["n"].to_pylist() == [[1, 2, 3]]


def test_the_point_is_kept_between_micro_batches() -> None:
    query = (
        windowed()
        .trigger(gw.DeltaTrigger.of(5.0, FAR))
        .with_outputs()
        .aggregate(last=gw.last("n"))
        .plan.query
    )
    planned, store = plan(replace(query), bounded=False), MemoryLog()
    got: list[Any] = []
    rows = points().set_column(4, "ts", points()["ts"].cast(pa.int64()))
    rows = rows.append_column("__arrival", rows["n"])
    for number in range(len(rows)):
        operator = restore_operator(planned, store)
        for emission in operator.process(
            rows.slice(number, 1).select([*planned.input_columns, "__arrival"])
        ):
            got += emission.results["last"].to_pylist()
        operator.save()
    assert got == [2, 5, 6]


@pytest.mark.parametrize(
    ("ask", "rule"),
    [
        (lambda: gw.Delta.of([], math.dist), "a list of columns"),
        (lambda: gw.Delta.of(["x"], math.dist), "sees floats"),
        (lambda: gw.Delta.of(("x",), math.dist), "sees floats"),
        (lambda: gw.Delta.of({"x", "y"}, math.dist), "a list of columns"),  # type: ignore[arg-type]
        (lambda: gw.Delta.of(["x", 3], math.dist), "a list of columns"),  # type: ignore[list-item]
        (lambda: gw.Delta.of("x", 5), "function of old and new"),  # type: ignore[arg-type]
        (
            lambda: (
                windowed()
                .trigger(gw.DeltaTrigger.of(1.0, gw.Delta.of(["x", "k"], math.dist)))
                .aggregate(n=gw.count())
            ),
            "compares numbers",
        ),
        (
            lambda: (
                windowed()
                .trigger(gw.DeltaTrigger.of(1.0, gw.Delta.of(["x", "z"], math.dist)))
                .aggregate(n=gw.count())
            ),
            "z",
        ),
    ],
)
def test_what_is_refused(ask: Any, rule: str) -> None:
    with pytest.raises(errors.GpuWindowsError, match=rule):
        ask()
