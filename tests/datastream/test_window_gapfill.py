"""Windows in which a key has no rows, as users ask for them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import (
    ColumnNotFoundError,
    ColumnTypeError,
    GapError,
    InvalidDurationError,
    QueryError,
    UnsupportedQueryError,
)
from gpu_windows.operators.gaps import operator
from gpu_windows.vocabulary import gap_filling
from tests.examples import examples

MINUTE = 60_000_000
MINUTES = gw.TumblingEventTimeWindows.of("1 minute")
MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()
SUMMER = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)


def by_key(table: pa.Table, *keys: str) -> gw.typing.KeyedStream:
    return gw.stream(table).event_time("ts", MONOTONOUS).key_by(*(keys or ("k",)))


def fill(table: pa.Table, *keys: str, assigner: Any = MINUTES, **how: Any) -> Any:
    return by_key(table, *keys).window_gapfill(assigner, **how)


def table_of(*rows: tuple[Any, int, Any], value: pa.DataType | None = None) -> pa.Table:
    """Return rows of a key, a minute and a value."""
    keys, minutes, values = zip(*rows, strict=True) if rows else ((), (), ())
    times = pa.array([minute * MINUTE for minute in minutes], pa.int64())
    return pa.table({"k": pa.array(keys, pa.string()), "ts": times, "v": pa.array(values, value)})


rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-50, 50), st.integers(-400, 400)), min_size=1
)


@examples(30)
@given(rows)
def test_pandas_fills_the_same(made: list[tuple[str, int, int]]) -> None:
    """`resample` of each key, from its first row to its last one."""
    minutes = [(key, at * 15, value / 4) for key, at, value in made]
    times = pa.array([SUMMER + dt.timedelta(seconds=at) for _, at, _ in minutes])
    table = pa.table({"k": [k for k, _, _ in minutes], "ts": times, "v": [v for *_, v in minutes]})
    found = fill(table, carry_forward="top", interpolate="mean").aggregate(
        n=gw.count(), total=gw.sum("v"), top=gw.max("v"), mean=gw.mean("v")
    )
    grouped = table.to_pandas().set_index("ts").groupby("k")["v"].resample("1min")
    wanted = pd.DataFrame({"n": grouped.count(), "total": grouped.sum(min_count=1)})
    wanted["top"] = grouped.max().groupby("k").ffill()
    wanted["mean"] = grouped.mean().groupby("k").transform(pd.Series.interpolate)
    got = found.to_pandas().set_index(["k", "window_start"]).drop(columns="window_end")
    pd.testing.assert_frame_equal(
        got.sort_index(), wanted, check_names=False, check_dtype=False, check_index_type=False
    )


def test_a_key_with_one_row_has_one_window() -> None:
    assert fill(table_of(("a", 7, 1))).aggregate(n=gw.count())["n"].to_pylist() == [1]


def test_no_row_has_no_window() -> None:
    assert fill(table_of(value=pa.int64())).aggregate(n=gw.count()).num_rows == 0


def test_rows_may_come_in_any_order() -> None:
    found = fill(table_of(("a", 3, 4), ("a", 0, 1)), carry_forward="v").aggregate(v=gw.sum("v"))
    assert found["v"].to_pylist() == [1, 1, 1, 4]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (None, pa.int64()),
        (math.nan, pa.float64()),
        (Decimal("1.50"), pa.decimal128(30, 2)),
        ("zwei", pa.string()),
        (b"\0", pa.binary()),
        (True, pa.bool_()),
        (dt.date(2026, 5, 1), pa.date32()),
        (SUMMER, pa.timestamp("us", "UTC")),
        ([1, None], pa.list_(pa.int64())),
        ({"x": 1}, pa.struct([("x", pa.int64())])),
    ],
)
def test_values_of_any_type_are_carried(value: Any, dtype: pa.DataType) -> None:
    table = table_of(("a", 0, value), ("a", 2, None), value=dtype)
    found = fill(table, carry_forward="v").aggregate(v=gw.last("v"))["v"]
    assert found.type == dtype
    wanted = pa.chunked_array([[value, value, None]], dtype)
    assert repr(found.to_pylist()) == repr(wanted.to_pylist())


def test_a_null_is_carried_not_the_value_before_it() -> None:
    table = table_of(("a", 0, 1.0), ("a", 1, None), ("a", 3, 3.0))
    found = fill(table, carry_forward="v", interpolate="m")
    results = found.aggregate(v=gw.sum("v"), m=gw.mean("v"))
    assert results["v"].to_pylist() == [1.0, None, None, 3.0]
    assert results["m"].to_pylist() == [1.0, None, None, 3.0]


def test_times_are_interpolated() -> None:
    later = SUMMER + dt.timedelta(microseconds=10)
    table = table_of(("a", 0, SUMMER), ("a", 3, later), value=pa.timestamp("us", "UTC"))
    found = fill(table, interpolate="v").aggregate(v=gw.max("v"))["v"].to_pylist()
    assert [(each - SUMMER) // dt.timedelta(microseconds=1) for each in found] == [0, 3, 6, 10]


def test_far_times_are_interpolated_exactly() -> None:
    low, high = -(2**61), 2**61
    table = table_of(("a", 0, low), ("a", 1000, high), value=pa.timestamp("us"))
    found = fill(table, interpolate="v").aggregate(v=gw.max("v"))["v"].cast(pa.int64())
    assert found.to_pylist() == [low + (high - low) * i // 1000 for i in range(1001)]


def test_a_key_is_filled_until_it_is_forgotten() -> None:
    table = table_of(("a", 0, 1.0), ("a", 5, 2.0), ("a", 7, 4.0), ("b", 9, 8.0))
    how = {"carry_forward": "v", "interpolate": "m", "until": "2 minutes"}
    found = fill(table, **how).aggregate(v=gw.sum("v"), m=gw.mean("v")).sort_by("window_start")
    of_a = [row for row in found.to_pylist() if row["k"] == "a"]
    minutes = [(row["window_start"] // MINUTE, row["v"], row["m"]) for row in of_a]
    assert minutes == [
        (0, 1.0, 1.0), (1, 1.0, None), (2, 1.0, None),
        (5, 2.0, 2.0), (6, 2.0, 3.0), (7, 4.0, 4.0), (8, 4.0, None), (9, 4.0, None),
    ]  # fmt: skip


def test_given_keys_have_results_without_rows() -> None:
    table = table_of(("a", -3, 1), ("a", 1, 2), ("b", 1, 3), ("a", 7, 4))
    how = {"keys": ["a", "never", None], "start": -MINUTE, "end": 3 * MINUTE, "carry_forward": "v"}
    found = fill(table, **how).aggregate(n=gw.count(), v=gw.sum("v")).to_pylist()
    assert sorted((r["k"] or "", r["window_start"] // MINUTE, r["n"], r["v"]) for r in found) == [
        ("", -1, 0, None), ("", 0, 0, None), ("", 1, 0, None), ("", 2, 0, None),
        ("a", -3, 1, 1), ("a", -1, 0, 1), ("a", 0, 0, 1), ("a", 1, 1, 2), ("a", 2, 0, 2),
        ("a", 7, 1, 4), ("b", 1, 1, 3),
        ("never", -1, 0, None), ("never", 0, 0, None), ("never", 1, 0, None), ("never", 2, 0, None),
    ]  # fmt: skip


def test_a_range_of_windows_of_a_zone_is_in_that_zone() -> None:
    """As a text or a datetime; a zone that is given counts."""
    table = pa.table({"k": ["a"], "ts": pa.array([dt.datetime(2017, 5, 9, tzinfo=dt.UTC)])})
    months = gw.CalendarWindows.of("1 month", time_zone="America/New_York")
    starts = [dt.datetime(2017, 4, 1, 4, tzinfo=dt.UTC), dt.datetime(2017, 5, 1, 4, tzinfo=dt.UTC)]
    for start, end in (
        ("2017-04-01", "2017-06-01"),
        (dt.datetime(2017, 4, 1), dt.datetime(2017, 6, 1)),
        ("2017-04-01T04:00+00:00", "2017-06-01 04:00Z"),
    ):
        windowed = fill(table, assigner=months, keys=["a"], start=start, end=end)
        assert sorted(windowed.aggregate(n=gw.count())["window_start"].to_pylist()) == starts


def test_given_keys_as_a_data_frame(spark: Any) -> None:
    frame = spark.createDataFrame(table_of(("a", 0, 1), ("b", 1, 1), ("a", 2, 1)))
    frame = frame.selectExpr("k", "timestamp_micros(ts) AS ts")
    keys = frame.select("k").distinct()
    windowed = fill(frame, keys=keys, start="1970-01-01 00:00Z", end="1970-01-01 00:03Z")
    found = windowed.aggregate(n=gw.count()).orderBy("k", "window_start").collect()
    assert [(row.k, row.n) for row in found] == [*zip("aaabbb", (1, 0, 1, 0, 1, 0), strict=True)]


def test_given_keys_of_several_columns() -> None:
    table = pa.table({"k": ["a"], "n": pa.array([1], pa.int16()), "ts": [0]})
    for keys in ([("b", 2)], pd.DataFrame({"n": [2], "k": ["b"]})):
        found = fill(table, "k", "n", keys=keys, start=0, end=MINUTE).aggregate(c=gw.count())
        assert found.select(["k", "n", "c"]).to_pylist() == [
            {"k": "a", "n": 1, "c": 1},
            {"k": "b", "n": 2, "c": 0},
        ]
        assert found.schema.field("n").type == pa.int16()


def test_aggregates_of_no_rows() -> None:
    class Total(gw.functions.AggregateFunction):
        accumulator = result = pa.int64()

        def create_accumulator(self) -> int:
            return 100

        def add(self, row: Any, accumulator: int) -> int:
            return accumulator + int(row["v"])

        def get_result(self, accumulator: int) -> int:
            return accumulator

    found = fill(table_of(("a", 0, 1), ("a", 2, 5))).aggregate(
        n=gw.count("v"),
        distinct=gw.count_distinct("v"),
        some=gw.collect_list("v"),
        median=gw.median("v"),
        mine=gw.user_aggregate(Total(), "v"),
    )
    of_none = found.select(["n", "distinct", "some", "median", "mine"]).to_pylist()[1]
    assert of_none == {"n": 0, "distinct": 0, "some": [], "median": None, "mine": 100}


def test_columns_of_firings_and_several_lengths() -> None:
    lengths = gw.MultiLengthEventTimeWindows.of("1 minute", "2 minutes")
    table = table_of(("a", 0, 1), ("a", 4, 5))
    step = fill(table, assigner=lengths, carry_forward="v_1m").with_firing_columns(changes=True)
    found = step.aggregate(v=gw.sum("v")).to_pydict()
    assert found["v_1m"] == [1, None, None, None, 5, None]
    assert found["v_2m"] == [1, 1, None, None, 5, 5]
    assert {*found["timing"], *found["change"]} == {"on_time", "insert"}


def test_many_windows_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(("a", 0, 1.0), ("b", 3, 2.0), ("a", 40, 3.0), ("b", 9, 3.0))
    how: dict[str, Any] = {"carry_forward": "v", "interpolate": "m", "until": "1 hour"}

    def results() -> list[Any]:
        found = fill(table, **how).aggregate(v=gw.sum("v"), m=gw.mean("v"))
        return sorted(found.to_pylist(), key=repr)

    whole = results()
    for max_windows in (1, 2, 7):
        monkeypatch.setattr(operator, "EMISSION_WINDOWS", max_windows)
        assert results() == whole


def test_a_gap_of_too_many_windows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    far = table_of(("a", 0, 1), ("b", 0, 1), ("b", 10_000_002, 1))
    with pytest.raises(GapError, match=r"until=.*10,000,001 windows of k='b'"):
        fill(far).aggregate(n=gw.count())
    monkeypatch.setattr(operator, "MAX_GAP_WINDOWS", 5)
    assert fill(table_of(("a", 0, 1), ("a", 6, 1))).aggregate(n=gw.count()).num_rows == 7
    with pytest.raises(GapError):
        fill(table_of(("a", 0, 1), ("a", 7, 1))).aggregate(n=gw.count())
    assert gap_filling.MAX_GAP_WINDOWS == 10_000_000


SESSIONS = gw.EventTimeSessionWindows.with_gap("1 minute")
ROWS = table_of(("a", 0, 1), ("a", 2, 5))
COUNT = {"n": gw.count(), "total": gw.sum("v"), "f": gw.mean("v")}
IN_UTC = ROWS.set_column(1, "ts", ROWS["ts"].cast(pa.timestamp("us", "UTC")))
DAYS_OF_MONTHS = gw.CalendarWindows.of("1 month", step="1 day", time_zone="UTC")


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (UnsupportedQueryError, "all keys share", lambda: fill(ROWS, assigner=SESSIONS)),
        (
            UnsupportedQueryError,
            "all keys share",
            lambda: fill(ROWS, assigner=gw.GlobalWindows.create()),
        ),
        (
            UnsupportedQueryError,
            "fire once",
            lambda: fill(ROWS).trigger(gw.CountTrigger.of(1)),
        ),
        (
            UnsupportedQueryError,
            "allowed lateness.*bounded_out_of_orderness",
            lambda: fill(ROWS).allowed_lateness("1 minute"),
        ),
        (UnsupportedQueryError, "top_keys", lambda: fill(ROWS).top_keys(1, "n")),
        (UnsupportedQueryError, "changed_keys", lambda: fill(ROWS).changed_keys()),
        (UnsupportedQueryError, "grouping_sets", lambda: fill(ROWS).grouping_sets("rollup")),
        (ColumnNotFoundError, "n, total, f.*'x'", lambda: fill(ROWS, carry_forward="x")),
        (ColumnTypeError, "DOUBLE", lambda: fill(ROWS, interpolate="total")),
        (QueryError, "once", lambda: fill(ROWS, carry_forward=["total", "total"])),
        (QueryError, "name of a result", lambda: fill(ROWS, carry_forward=3)),
        (InvalidDurationError, "positive", lambda: fill(ROWS, until="0 s")),
        (QueryError, "10,000,000 windows", lambda: fill(ROWS, until="10000001 minutes")),
        (QueryError, "say start", lambda: fill(ROWS, keys=["a"])),
        (UnsupportedQueryError, "say end", lambda: fill(ROWS, keys=["a"], start=0)),
        (QueryError, "for given keys", lambda: fill(ROWS, start=0)),
        (QueryError, "end instead of until", lambda: fill(ROWS, keys=["a"], until="1 h")),
        (QueryError, "after start", lambda: fill(ROWS, keys=["a"], start=5, end=5)),
        (QueryError, "values of k string", lambda: fill(ROWS, keys=[3], start=0, end=5)),
        (QueryError, "values of k string", lambda: fill(ROWS, keys=pa.table({"k": [1]}), start=0)),
        (QueryError, "values of v int64", lambda: given_numbers([2**70])),
        (
            UnsupportedQueryError,
            "of a calendar are not interpolated",
            lambda: fill(IN_UTC, assigner=DAYS_OF_MONTHS, interpolate="f"),
        ),
        (QueryError, "values of v int64", lambda: given_numbers([1.5])),
        (QueryError, "values of v int64", lambda: given_numbers(pa.table({"v": ["1"]}))),
        (QueryError, "must differ.*'a'", lambda: fill(ROWS, keys=["a", "a"], start=0, end=5)),
        (QueryError, "one at least", lambda: fill(ROWS, keys=[], start=0, end=5)),
        (QueryError, "takes a list", lambda: fill(ROWS, keys="a", start=0, end=5)),
        (QueryError, "columns k", lambda: fill(ROWS, keys=pa.table({"x": [1]}), start=0)),
        (
            QueryError,
            r"^start as a text is an ISO time, such as .*, got 'yesterday'$",
            lambda: fill(ROWS, keys=["a"], start="yesterday"),
        ),
        (
            QueryError,
            r"^start must have a time zone, as event times have one: '2026-05-01 00:00:00\+00:00'",
            lambda: fill(ROWS, keys=["a"], start="2026-05-01"),
        ),
        (
            QueryError,
            r"'2026-05-01 00:00:00\+00:00' in UTC",
            lambda: fill(ROWS, keys=["a"], start=dt.datetime(2026, 5, 1)),
        ),
        (
            QueryError,
            "10,000,000 windows",
            lambda: fill(ROWS, keys=["a"], start=0, end=MINUTE * 10**8),
        ),
        (
            QueryError,
            "windows can have",
            lambda: fill(ROWS, keys=["a"], start=-(2**63) + 1, end=0),
        ),
    ],
)
def test_what_cannot_be_filled_is_refused(error: Any, match: str, call: Any) -> None:
    with pytest.raises(error, match=match):
        call().aggregate(**COUNT)


def given_numbers(keys: Any) -> Any:
    return fill(ROWS, "v", keys=keys, start=0, end=MINUTE)


def test_given_keys_are_compared_as_keys_are() -> None:
    """All NaN are one key, a zero has no sign, and structs are keys too."""
    table = pa.table({"k": [math.nan], "ts": [0], "s": [{"x": 1}]})
    for same in ([math.nan, math.nan], [0.0, -0.0]):
        with pytest.raises(QueryError, match="must differ"):
            fill(table, keys=same, start=0, end=MINUTE)
    found = fill(table, keys=[math.nan, None], start=0, end=MINUTE).aggregate(n=gw.count())
    assert found["n"].to_pylist() == [1, 0]
    structs = fill(table, "s", keys=[{"x": 1}, {"x": 2}], start=0, end=MINUTE)
    assert structs.aggregate(n=gw.count())["n"].to_pylist() == [1, 0]


def test_times_as_keys_have_a_zone_or_none() -> None:
    table = pa.table({"k": pa.array([SUMMER], pa.timestamp("us", "UTC")), "ts": [0]})
    with pytest.raises(QueryError, match="no time zone"):
        fill(table, keys=[SUMMER.replace(tzinfo=None)], start=0, end=MINUTE)
    found = fill(table, keys=[SUMMER, None], start=0, end=MINUTE).aggregate(n=gw.count())
    assert found["n"].to_pylist() == [1, 0]


def test_functions_of_windows_are_refused() -> None:
    with pytest.raises(UnsupportedQueryError, match=r"for aggregate\(\.\.\.\)"):
        fill(ROWS).collect_lists("v")


def test_explain_says_how_gaps_are_filled() -> None:
    step = fill(ROWS, carry_forward="total", until="1 hour").with_outputs()
    text = step.aggregate(**COUNT).explain()
    assert "until 1 h after the rows of a key; total carried forward" in text


def test_a_stage_reads_filled_windows() -> None:
    minutes = fill(table_of(("a", 0, 2), ("a", 3, 4)), carry_forward="v").with_outputs()
    hours = gw.stream_results(minutes.aggregate(v=gw.sum("v")), "minutes").key_by("k")
    found = hours.window(gw.TumblingEventTimeWindows.of("1 hour")).aggregate(mean=gw.mean("v"))
    assert found["mean"].to_pylist() == [np.mean([2, 2, 2, 4])]
