"""Rows with the windows that they are in, on Arrow tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import NameClashError, QueryError
from gpu_windows.functions.window_rows import WINDOW_COLUMNS, windows_of
from gpu_windows.vocabulary.windows import SlicedAssigner
from tests.examples import examples

SECOND = 1_000_000
IN_ORDER = gw.WatermarkStrategy.for_monotonous_timestamps()
INSTANT = pa.timestamp("us", "UTC")
ASSIGNERS: list[SlicedAssigner] = [
    gw.TumblingEventTimeWindows(10),
    gw.TumblingEventTimeWindows(7, -3),
    gw.SlidingEventTimeWindows(10, 5),
    gw.SlidingEventTimeWindows(10, 3, 2),
    gw.SlidingEventTimeWindows(3, 10, 1),
    gw.CumulativeEventTimeWindows(12, 4, 1),
]


def table(*at: int | None) -> pa.Table:
    """Rows at seconds, and their numbers."""
    ticks = [None if each is None else each * SECOND for each in at]
    return pa.table({"ts": pa.array(ticks, INSTANT), "v": range(len(at))})


def timed(rows: pa.Table) -> gw.typing.TimedStream:
    return gw.stream(rows).event_time("ts", IN_ORDER)


def shown(found: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    """Rows, their times in seconds."""
    plain = [
        [None if t is None else t / SECOND for t in found[name].cast(pa.int64()).to_pylist()]
        if pa.types.is_timestamp(found[name].type)
        else found[name].to_pylist()
        for name in columns
    ]
    return list(zip(*plain, strict=True))


@given(times=st.lists(st.integers(-(10**6), 10**6), max_size=30), which=st.sampled_from(ASSIGNERS))
@examples(200)
def test_windows_are_those_that_an_assigner_gives(times: list[int], which: SlicedAssigner) -> None:
    places, starts, ends = windows_of(np.array(times, np.int64), which)
    wanted = [(i, w.start, w.end) for i, t in enumerate(times) for w in which.assign(t)]
    found = list(zip(places.tolist(), starts.tolist(), ends.tolist(), strict=True))
    assert sorted(found) == sorted(wanted)
    assert [place for place, *_ in found] == [place for place, *_ in wanted]


def test_a_row_comes_once_for_every_window_in_order_of_arrival() -> None:
    assigner = gw.SlidingEventTimeWindows.of("10 s", "5 s")
    found = timed(table(7, 0)).with_windows(assigner).result()
    assert found.column_names == ["ts", "v", *WINDOW_COLUMNS]
    assert found.schema.field("window_time").type == INSTANT
    assert shown(found, "v", *WINDOW_COLUMNS) == [
        (0, 5, 15, 14.999999), (0, 0, 10, 9.999999),
        (1, 0, 10, 9.999999), (1, -5, 5, 4.999999),
    ]  # fmt: skip


def test_a_row_in_a_gap_is_in_no_window() -> None:
    assigner = gw.SlidingEventTimeWindows.of("1 s", "10 s")
    found = timed(table(0, 5, 10)).with_windows(assigner, columns=["v"]).result()
    assert shown(found, "v", "window_start") == [(0, 0), (2, 10)]


def test_rows_of_sessions_come_with_the_whole_session_of_their_key() -> None:
    rows = table(0, 3, 4, 20).append_column("k", pa.array(["a", "b", "a", "a"]))
    sessions = gw.EventTimeSessionWindows.with_gap("5 s")
    found = timed(rows).with_windows(sessions, partition_by=["k"]).result()
    assert found.column_names == ["ts", "v", "k", *WINDOW_COLUMNS]
    assert sorted(shown(found, "v", "k", *WINDOW_COLUMNS)) == [
        (0, "a", 0, 9, 8.999999), (1, "b", 3, 8, 7.999999),
        (2, "a", 0, 9, 8.999999), (3, "a", 20, 25, 24.999999),
    ]  # fmt: skip
    of_all = timed(rows).with_windows(sessions, columns=["v"]).result()
    assert shown(of_all, "v", "window_start") == [(0, 0), (1, 0), (2, 0), (3, 20)]


def test_times_may_be_integers_and_no_column_needed() -> None:
    rows = pa.table({"ts": [5, 25]})
    found = timed(rows).with_windows(gw.TumblingEventTimeWindows(10), columns=[]).result()
    assert found.to_pylist() == [
        {"window_start": 0, "window_end": 10, "window_time": 9},
        {"window_start": 20, "window_end": 30, "window_time": 29},
    ]
    sessions = gw.EventTimeSessionWindows(10)
    found = timed(rows).with_windows(sessions, columns=[]).result()
    assert found["window_end"].to_pylist() == [15, 35]


def test_rows_without_a_usable_time_are_rejected() -> None:
    minute = gw.TumblingEventTimeWindows.of("1 minute")
    outputs = timed(table(None, 1, None)).with_windows(minute)
    assert outputs.result()["v"].to_pylist() == [1]
    assert outputs.rejected().column_names == ["ts", "v", "rejection_reason"]
    assert outputs.rejected()["v"].to_pylist() == [0, 2]
    edge = pa.table({"ts": [2**63 - 5, 7], "v": [0, 1]})
    outputs = timed(edge).with_windows(minute)
    assert outputs.rejected()["rejection_reason"].to_pylist() == ["out_of_range_timestamp"]
    assert outputs.result()["v"].to_pylist() == [1]
    assert len(timed(table()).with_windows(minute).result()) == 0


def test_windows_of_rows_in_windows_are_those_of_their_last_tick() -> None:
    inner = timed(table(1, 2, 11)).with_windows(gw.SlidingEventTimeWindows.of("20 s", "10 s"))
    rows = gw.stream_results(inner.select("v"))
    assert rows.time == "window_time"
    found = rows.window_all(gw.TumblingEventTimeWindows.of("10 s")).aggregate(n=gw.count())
    assert shown(found, "window_end", "n") == [(10, 2), (20, 3), (30, 1)]


def test_windows_of_rows_in_sessions() -> None:
    sessions = gw.EventTimeSessionWindows.with_gap("5 s")
    rows = gw.stream_results(timed(table(1, 2, 11, 12)).with_windows(sessions, columns=["v"]))
    assert rows.source.user_columns == ("v", *WINDOW_COLUMNS)
    found = rows.window_all(gw.TumblingEventTimeWindows.of("10 s")).aggregate(n=gw.count())
    assert shown(found, "window_end", "n") == [(10, 2), (20, 2)]


def test_what_cannot_be_is_refused() -> None:
    rows = timed(table(1))
    minute = gw.TumblingEventTimeWindows.of("1 minute")
    with pytest.raises(QueryError, match=r"session windows, got TumblingProcessingTimeWindows"):
        rows.with_windows(gw.TumblingProcessingTimeWindows.of("1 minute"))
    with pytest.raises(QueryError, match="got GlobalWindows"):
        rows.with_windows(gw.GlobalWindows.create())
    with pytest.raises(QueryError, match="partition_by is for sessions"):
        rows.with_windows(minute, partition_by=["v"])
    with pytest.raises(QueryError, match="no such column"):
        rows.with_windows(minute, columns=["w"])
    with pytest.raises(NameClashError, match="columns have different names"):
        rows.with_windows(minute, columns=["v", "v"])
    with pytest.raises(QueryError, match="columns are a sequence of names"):
        rows.with_windows(gw.EventTimeSessionWindows.with_gap("1 s"), partition_by="v")
    named = rows.with_columns(Window_End="v")
    with pytest.raises(NameClashError, match="rows in windows have window_start"):
        named.with_windows(minute)
    assert len(named.with_windows(minute, columns=["v"]).result()) == 1
    with pytest.raises(QueryError, match="event_time"):
        gw.stream(table(1))._without_time.with_windows(minute)
