"""Times and durations finer than a microsecond: exact as values, refused where they would not be.

Expected values are by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, time
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.column_types.time_units import python_values, to_microseconds
from gpu_windows.errors import InvalidFunctionError, PrecisionError

INSTANT = pa.timestamp("ns", "UTC")
MONOTONOUS = gw.WatermarkStrategy.for_monotonous_timestamps()
SECOND = gw.TumblingEventTimeWindows.of("1 s")


def instants(*nanoseconds: int | None) -> pa.Array:
    return pa.array(nanoseconds, INSTANT)


def table(*nanoseconds: int | None, **columns: Any) -> pa.Table:
    places = [*range(len(nanoseconds))]
    return pa.table({"k": ["x"] * len(places), "ts": instants(*nanoseconds), "v": places} | columns)


def keyed(source: Any, time: str = "ts") -> gw.typing.KeyedStream:
    return gw.stream(source).event_time(time, MONOTONOUS).key_by("k")


def rows_of(stream: gw.typing.Stream) -> Any:
    source: Any = stream.source
    return source._data


# ---- event times


def _pandas(rows: pa.Table) -> Any:
    frame = rows.to_pandas()
    assert str(frame["ts"].dtype) == "datetime64[ns, UTC]"
    return frame


def _polars(rows: pa.Table) -> Any:
    pl = pytest.importorskip("polars", reason="needs the extra `benchmarks`")
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    assert frame["ts"].dtype == pl.Datetime("ns", "UTC")
    return frame


def _reader(rows: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=1))


SOURCES: tuple[Callable[[pa.Table], Any], ...] = (lambda rows: rows, _pandas, _polars, _reader)


@pytest.mark.parametrize("made", SOURCES)
def test_whole_microseconds_are_event_times_and_others_are_refused(
    made: Callable[[pa.Table], Any],
) -> None:
    found = keyed(made(table(1_000, 999_000))).window(SECOND).aggregate(latest=gw.max("ts"))
    assert found["latest"].cast("int64").to_pylist() == [999]
    with pytest.raises(PrecisionError) as caught:
        keyed(made(table(1_000, 1_100))).window(SECOND).aggregate(n=gw.count())
    assert caught.value.column == "ts"
    assert caught.value.value == "1970-01-01 00:00:00.000001100Z"
    assert '.with_columns(ts="CAST(`ts` AS TIMESTAMP)")' in str(caught.value)


def test_times_of_duckdb_in_nanoseconds_are_no_instants_until_they_are_cast() -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `benchmarks`")
    rows = duckdb.sql("SELECT 'x' AS k, make_timestamp_ns(1999) AS ts")
    with pytest.raises(PrecisionError, match=r"CAST\(`ts` AS TIMESTAMP_NTZ\)"):
        gw.stream(rows).with_columns(ts="COALESCE(ts, ts)")
    found = keyed(rows_of(gw.stream(rows).with_columns(ts="CAST(ts AS TIMESTAMP)")))
    assert found.window(SECOND).aggregate(n=gw.count())["n"].to_pylist() == [1]


def test_no_value_under_a_null_is_looked_at() -> None:
    hidden = pa.array([1, 2_000]).buffers()[1]
    times = pa.Array.from_buffers(INSTANT, 2, [pa.py_buffer(b"\x02"), hidden])
    rows = pa.table({"k": ["x", "x"], "ts": times})
    outputs = keyed(rows).window(SECOND).with_outputs().aggregate(n=gw.count())
    assert outputs.result()["n"].to_pylist() == [1]
    assert outputs.rejected()["rejection_reason"].to_pylist() == ["null_timestamp"]
    none = pa.array([None], pa.duration("ns"))
    assert to_microseconds(none, "d", "a duration").equals(pa.array([None], pa.duration("us")))


NAMES = ("ts", "a b", "or`d", "order", "class", "a.b", 'q"q', "time")


@pytest.mark.parametrize("name", NAMES)
def test_the_remedy_that_is_named_rounds_down(name: str) -> None:
    rows = pa.table({"k": ["x"] * 3, name: instants(1_999, -1, None)})
    with pytest.raises(PrecisionError) as caught:
        keyed(rows, name)
    said = re.search(r"with \.(with_columns\(.*\)), got", str(caught.value))
    assert said is not None
    rounded = eval(f"stream.{said[1]}", {"stream": gw.stream(rows)})  # noqa: S307 - as users do
    (latest,) = (
        rounded.event_time(name, MONOTONOUS)
        .window_all(gw.TumblingEventTimeWindows.of("1 day", "12 hours"))
        .aggregate(low=gw.min(name), high=gw.max(name))
        .select(["low", "high"])
        .to_pylist()
    )
    assert {each.astimezone(UTC).isoformat() for each in latest.values()} == {
        "1969-12-31T23:59:59.999999+00:00",
        "1970-01-01T00:00:00.000001+00:00",
    }


def test_carriers_of_watermarks_are_refused_alike() -> None:
    rows = table(1_000, w=instants(1_001))
    with pytest.raises(PrecisionError, match=r"the column of watermarks.*\(column 'w'\)"):
        gw.stream(rows).event_time("ts", gw.WatermarkStrategy.for_punctuated("w"))


# ---- what joins and orders rows by time


TRADES = pa.table({"k": ["x"], "lt": instants(1_100), "c": [1]})
QUOTES = pa.table({"k": ["x"] * 2, "rt": instants(900, 1_500), "r": ["past", "future"]})
JOINS: tuple[Callable[[], Any], ...] = (
    lambda: keyed(TRADES, "lt").interval_join(keyed(QUOTES, "rt")).between("-1 hour", "0 s"),
    lambda: keyed(TRADES, "lt").temporal_join(keyed(QUOTES, "rt")),
    lambda: keyed(table(1_900, 1_100)).over(gw.Rows()).aggregate(["v"], before=gw.lag("v")),
    lambda: keyed(table(1_900, 1_100)).window(SECOND).aggregate(f=gw.arg_min("v", "ts")),
    lambda: gw.stream(table(1_000)).event_time("ts", MONOTONOUS).union(
        gw.stream(table(1)).event_time("ts", MONOTONOUS)
    ),
)  # fmt: skip


@pytest.mark.parametrize("asked", JOINS)
def test_nothing_is_ordered_by_times_that_were_rounded(asked: Callable[[], Any]) -> None:
    with pytest.raises(PrecisionError, match="event time must be whole"):
        asked()


# ---- other columns of nanoseconds: exact, as every value is


FINE = instants(1_900, 1_100, None, 1_500)


def test_values_of_nanoseconds_are_compared_and_carried_exactly() -> None:
    rows = table(*[0] * 4, w=FINE)
    aggregates = {
        "low": gw.min("w"), "high": gw.max("w"), "first": gw.first("w"),
        "all": gw.collect_list("w"), "of_low": gw.arg_min("v", "w"),
        "of_high": gw.arg_max("v", "w"),
        "n": gw.count_distinct("w"), "about": gw.approx_count_distinct("w"),
    }  # fmt: skip
    found = keyed(rows).window(SECOND).aggregate(**aggregates)
    for name, nanoseconds in (("low", 1_100), ("high", 1_900), ("first", 1_900)):
        assert found.schema.field(name).type == INSTANT
        assert found[name].cast("int64").to_pylist() == [nanoseconds]
    assert [found[name][0].as_py() for name in ("n", "of_low", "of_high", "about")] == [3, 1, 0, 3]
    assert found["all"].combine_chunks().flatten().drop_null().equals(FINE.drop_null())


def test_keys_of_nanoseconds_are_told_apart() -> None:
    rows = table(0, 0, 0, w=instants(1_001, 1_002, 1_001))
    stream = gw.stream(rows).event_time("ts", MONOTONOUS).key_by("w")
    found = stream.window(SECOND).aggregate(n=gw.count())
    assert sorted(
        zip(found["w"].cast("int64").to_pylist(), found["n"].to_pylist(), strict=True)
    ) == [
        (1_001, 2),
        (1_002, 1),
    ]


def test_joins_compare_keys_of_nanoseconds_exactly() -> None:
    left = table(0, 0, w=instants(1_001, 1_002))
    right = left.rename_columns(["k", "t2", "v2", "w"])
    by = [
        gw.stream(t).event_time(n, MONOTONOUS).key_by("w") for t, n in ((left, "ts"), (right, "t2"))
    ]
    found = by[0].interval_join(by[1]).between("-1 s", "1 s").select(["v"], ["v2"])
    found = found.select(["left_v", "right_v2"]).to_pylist()
    assert sorted((*row.values(),) for row in found) == [(0, 0), (1, 1)]


def test_the_order_of_rows_is_by_nanoseconds() -> None:
    rows = table(0, 0, 0, w=instants(1_900, 1_100, 1_500))
    found = keyed(rows).window(SECOND).top(2, "w", descending=False)
    assert found["v"].to_pylist() == [1, 2]


# ---- expressions


COMPUTED = ("ts > TIMESTAMP '1970-01-01'", "COALESCE(w, w) IS NULL", "d + d = d", "s.t = ts")


@pytest.mark.parametrize("text", COMPUTED)
def test_expressions_refuse_what_is_finer(text: str) -> None:
    one = pa.array([{"t": 1}], pa.struct([("t", INSTANT)]))
    rows = table(1, w=instants(1), d=pa.array([1], pa.duration("ns")), s=one)
    with pytest.raises(PrecisionError, match="a time or duration in an expression"):
        gw.stream(rows).with_columns(x=text)


def test_expressions_round_where_they_are_told_to() -> None:
    one = pa.array([{"t": 1_999}], pa.struct([("t", INSTANT)]))
    rows = table(1, w=instants(None), d=pa.array([1_999], pa.duration("ns")), s=one)
    columns = {
        "d": "CAST(d AS INTERVAL DAY TO SECOND)", "no": "ts IS NULL", "t": "CAST(s.t AS TIMESTAMP)",
        "day": "CAST(ts AS DATE)", "same": "s", "w": "CAST(w AS TIMESTAMP)",
    }  # fmt: skip
    made = rows_of(gw.stream(rows).with_columns(**columns))
    assert made["d"].cast("int64").to_pylist() == made["t"].cast("int64").to_pylist() == [1]
    assert made["no"].to_pylist() == [False]
    assert made["same"].type == rows["s"].type


def test_conditions_of_patterns_refuse_what_is_finer() -> None:
    rows = table(0, 1_000, w=instants(1, 2_000))
    with pytest.raises(PrecisionError, match=r"in a condition.*CAST\(`w` AS TIMESTAMP\)"):
        keyed(rows).match_recognize("A B", {"B": "B.w > A.w"}).measures(v="B.v")


def test_conditions_of_joins_refuse_what_is_finer() -> None:
    tables = {"l": table(0, w=instants(1_001)), "r": table(0, w=instants(1_002))}
    asked = gw.sql(
        "SELECT l.v FROM l JOIN r ON l.k = r.k AND l.w < r.w AND "
        "l.ts BETWEEN r.ts - INTERVAL '1' HOUR AND r.ts",
        **{n: gw.stream(t).event_time("ts", MONOTONOUS) for n, t in tables.items()},
    )
    with pytest.raises(PrecisionError, match=r"in a condition.*00:00:00.000001001Z"):
        asked.result()


# ---- Python's own values


TIMES = pa.array([1_999], pa.time64("ns"))
NESTED: tuple[pa.Array, ...] = (
    TIMES,
    pa.array([{"t": 1_999}], pa.struct([("t", pa.time64("ns"))])),
    pa.array([[1_999]], pa.list_(pa.time64("ns"))),
    pa.array([[(1, 1_999)]], pa.map_(pa.int64(), pa.time64("ns"))),
)


class Copy(gw.functions.KeyedProcessFunction):
    def process_element(self, row: Any, context: Any) -> Iterator[Any]:
        del context
        yield row


@pytest.mark.parametrize("times", NESTED)
def test_python_is_given_no_time_of_day_that_was_rounded(times: pa.Array) -> None:
    for column in (times, pa.chunked_array([times])):
        with pytest.raises(PrecisionError, match=r"a time of day in Python.*got 1999 ns"):
            python_values(column, "t")


def test_functions_are_given_whole_microseconds_alone() -> None:
    def run(nanoseconds: int) -> Any:
        rows = table(0, t=pa.array([nanoseconds], pa.time64("ns")))
        return keyed(rows).process(Copy(), ["t"], output=pa.schema([("t", pa.time64("ns"))]))

    assert run(2_000)["t"].to_pylist() == [time(microsecond=2)]
    with pytest.raises(PrecisionError, match=r"floor_temporal.*\(column 't'\)"):
        run(1_999)


class _Passes(gw.functions.KeyedProcessFunction):
    """Gives a column of pandas' values as it is."""

    def process_element(self, row: Any, context: Any) -> Iterator[dict[str, object]]:
        del context
        yield {"x": row["x"]}


@pytest.mark.parametrize("dtype", [pa.timestamp("us", "UTC"), pa.duration("us")], ids=str)
@pytest.mark.parametrize("value", [1_001, 2_000])
def test_a_function_gives_no_time_that_would_be_cut(dtype: pa.DataType, value: int) -> None:
    finest = pa.duration("ns") if pa.types.is_duration(dtype) else pa.timestamp("ns", "UTC")
    ts = pa.array([0], pa.timestamp("us", "UTC"))
    rows = pa.table({"k": ["a"], "ts": ts, "x": pa.array([value], finest)})
    keyed = gw.stream(rows).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    output = pa.schema([("x", dtype)])
    if value % 1_000:
        with pytest.raises(InvalidFunctionError, match="column 'x'"):
            keyed.key_by("k").process(_Passes(), ["x"], output=output)
    else:
        given = keyed.key_by("k").process(_Passes(), ["x"], output=output)
        assert given["x"].cast(pa.int64()).to_pylist() == [value // 1_000]
