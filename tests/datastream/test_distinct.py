"""Aggregates over each different value once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import UnsupportedAggregateError
from gpu_windows.planning.planner import plan

pytest.importorskip("datasketches", reason="no wheels for Python 3.14; of the extra `sketches`")

VALUES = [2, 2, None, 5, 2, 5]
FLOATS = [math.nan, 0.0, -0.0, math.nan, 1.5, 0.0]


def keyed() -> gw.typing.KeyedStream:
    table = pa.table(
        {
            "k": ["a"] * 6 + ["b"],
            "ts": pa.array(range(7), pa.timestamp("us", "UTC")),
            "v": [*VALUES, None],
            "f": [*FLOATS, None],
            "is_new": [False, True, True, True, True, False, False],
        }
    )
    timed = gw.stream(table).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    return timed.key_by("k")


def windowed(engine: Any = "auto") -> gw.typing.WindowedStream:
    windows = keyed().window(gw.TumblingEventTimeWindows.of("1 minute"))
    return windows.options(device="cpu", engine=engine)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_value_counts_once(engine: Any) -> None:
    found = windowed(engine).aggregate(
        n=gw.count("v").distinct(), total=gw.sum("v").distinct(), mean=gw.mean("v").distinct(),
        values=gw.collect_list("v").distinct(), new=gw.sum("v").distinct().filter("is_new"),
        floats=gw.count("f").distinct(), most=gw.max("f").distinct(), all=gw.sum("v"),
        spread=gw.variance("v", ddof=0).distinct(), half=gw.median("v").distinct(),
    )  # fmt: skip
    rows = {row["k"]: [*row.values()][3:] for row in found.to_pylist()}
    *a, most, total, spread, half = rows["a"]
    assert a == [2, 7, 3.5, [2, 5], 7, 3]
    assert math.isnan(most)
    assert (total, spread, half) == (16, 2.25, 3.5)
    assert rows["b"] == [0, None, None, [], None, 0, None, None, None, None]


def test_it_is_told() -> None:
    told = (
        windowed()
        .with_outputs()
        .aggregate(total=gw.sum("v").distinct(), n=gw.count("v").distinct())
        .explain()
    )
    assert "sum(DISTINCT v)" in told
    assert "count_distinct(v)" in told
    assert "needs all values of a window" in told


@pytest.mark.parametrize(
    "aggregate", [gw.count(), gw.first("v"), gw.arg_max("v", "f"), gw.approx_quantile("v", 0.5)]
)
def test_what_has_no_different_values_is_refused(aggregate: gw.typing.Aggregate) -> None:
    with pytest.raises(UnsupportedAggregateError, match="distinct is for count"):
        aggregate.distinct()


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_nested_values_are_refused(engine: Any) -> None:
    of = windowed(engine)
    nested = gw.collect_list("nested").distinct()
    source = keyed().source.add_constant("nested", pa.scalar([1, 2]))
    made = replace(of, keyed=replace(of.keyed, source=source))
    with pytest.raises(UnsupportedAggregateError, match="simple types"):
        made.aggregate(values=nested)


def test_over_frames() -> None:
    over = keyed().over(gw.Rows(2))
    got = over.aggregate([], n=gw.count_distinct("v"), total=gw.sum("v").distinct())
    assert list(zip(got["n"].to_pylist(), got["total"].to_pylist(), strict=True)) == [
        *[(1, 2), (1, 2), (1, 2), (2, 7), (2, 7), (2, 7), (0, None)],
    ]
    least = over.aggregate([], least=gw.min("f").distinct(), alone=gw.min("f"))
    assert repr(least["least"].to_pylist()) == repr(least["alone"].to_pylist())


@pytest.mark.parametrize("aggregate", [gw.sum("f"), gw.mean("f"), gw.variance("v")], ids=str)
def test_what_is_not_there_over_frames(aggregate: gw.typing.Aggregate) -> None:
    with pytest.raises(UnsupportedAggregateError, match="integers or decimals"):
        keyed().over(gw.Rows(2)).aggregate(x=aggregate.distinct())


def test_streams_do_not_keep_all_values() -> None:
    query = keyed().over(gw.Range()).with_outputs().aggregate(n=gw.count_distinct("v")).plan.query
    with pytest.raises(UnsupportedAggregateError, match="store all values"):
        plan(query, bounded=False)
