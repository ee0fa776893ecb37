"""A bad value of a row is a row given back, with its reason, and the query continues."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.operators.counters import Counters
from gpu_windows.planning.own_columns import REASON
from gpu_windows.rules import LONG_MAX, REASONS

SECOND = 1_000_000
WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
BAD = (None, 0, -1, LONG_MAX)


def rows(gaps: pa.Array) -> pa.Table:
    """Rows of one key, a second apart, and their gaps."""
    at = pa.array([i * SECOND for i in range(len(gaps))]).cast(pa.timestamp("us", "UTC"))
    return pa.table({"k": ["a"] * len(gaps), "ts": at, "g": gaps, "n": range(len(gaps))})


def sessions(table: pa.Table, **options: Any) -> gw.typing.WindowedStream:
    timed = gw.stream(table).event_time("ts", WATERMARKS)
    windows = gw.EventTimeSessionWindows.with_dynamic_gap("g")
    return timed.key_by("k").window(windows).options(device="cpu", **options)


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("aggregate", [gw.sum("n"), gw.first("n")], ids=["partials", "buffer"])
def test_rows_with_a_bad_gap_are_given_back(engine: Any, aggregate: Any) -> None:
    table = rows(pa.array([5 * SECOND, *BAD, 5 * SECOND], pa.int64()))
    outputs = (
        sessions(table, engine=engine).with_outputs().aggregate(found=aggregate, rows=gw.count())
    )
    assert outputs.result()["rows"].to_pylist() == [2]
    back = outputs.rejected()
    assert back["n"].to_pylist() == [1, 2, 3, 4]
    assert back[REASON].to_pylist() == ["invalid_session_gap"] * 4
    assert outputs.late().num_rows == 0
    counters = outputs.metrics().to_pylist()[0]
    assert (counters["rows"], counters["invalid_session_gap"], counters["fired"]) == (6, 4, 1)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_time_is_judged_before_a_gap(engine: Any) -> None:
    table = rows(pa.array([0, 0, SECOND], pa.int64()))
    at = pa.array([None, LONG_MAX, 0], pa.int64())
    timed = gw.stream(table.set_column(1, "ts", at)).event_time("ts", WATERMARKS)
    windows = gw.EventTimeSessionWindows.with_dynamic_gap("g")
    outputs = (
        timed.key_by("k")
        .window(windows)
        .options(engine=engine)
        .with_outputs()
        .aggregate(n=gw.count())
    )
    reasons = ["null_timestamp", "out_of_range_timestamp"]
    assert outputs.rejected()[REASON].to_pylist() == reasons
    assert outputs.result()["n"].to_pylist() == [1]


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize(
    ("unit", "gaps", "bad"),
    [
        ("ns", [5_000_000_000, 999, 1_500, -1, None], [1, 2, 3, 4]),  # 1.5 us is no whole tick
        ("s", [5, LONG_MAX, 0, -LONG_MAX, None], [1, 2, 3, 4]),
        ("ms", [5_000, LONG_MAX // 1_000 + 1, 1], [1]),
    ],
)
def test_intervals_are_exact_or_given_back(
    unit: str, gaps: list[int | None], bad: list[int], engine: Any
) -> None:
    table = rows(pa.array(gaps, pa.duration(unit)))
    outputs = sessions(table, engine=engine).with_outputs().aggregate(found=gw.sum("n"))
    assert outputs.rejected()["n"].to_pylist() == bad
    assert outputs.result()["window_end"].cast(pa.int64()).to_pylist()[0] == 5 * SECOND


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_session_may_end_at_the_last_tick(engine: Any) -> None:
    schema = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("g", pa.int64())])
    last = [("a", 10, LONG_MAX - 10), ("b", 10, LONG_MAX - 9), ("c", -10, LONG_MAX)]
    table = pa.Table.from_pylist(
        [dict(zip(schema.names, each, strict=True)) for each in last], schema=schema
    )
    outputs = sessions(table, engine=engine).with_outputs().aggregate(n=gw.count())
    assert outputs.rejected()["k"].to_pylist() == ["b"]
    ends = dict(
        zip(*outputs.result().select(["k", "window_end"]).to_pydict().values(), strict=True)
    )
    assert ends == {"a": LONG_MAX, "c": LONG_MAX - 10}


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_rows_of_both_sides_of_a_join_are_given_back(engine: Any) -> None:
    table = rows(pa.array([5 * SECOND, None, 5 * SECOND], pa.int64()))
    left, right = (gw.stream(table).event_time("ts", WATERMARKS) for _ in range(2))
    joined = (
        left.key_by("k")
        .join(right.key_by("k"))
        .window(gw.EventTimeSessionWindows.with_dynamic_gap("g"))
        .options(engine=engine, device="cpu")
    )
    outputs = joined.with_outputs().select(["n"], ["n"])
    assert outputs.result().num_rows == 4
    assert outputs.rejected()[REASON].to_pylist() == ["invalid_session_gap"] * 2


def test_every_status_has_a_counter_of_its_reason() -> None:
    assert {*REASONS.values()} <= {*Counters.names()}
