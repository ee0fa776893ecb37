"""The API on Arrow tables: results, outputs, bad input."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.options import show_ticks, ticks

WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
START = datetime(2013, 1, 1, tzinfo=UTC)


def flights(**columns: Any) -> pa.Table:
    minutes = [0, 5, 12, 31, None]
    times = [None if m is None else START + timedelta(minutes=m) for m in minutes]
    data = {
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "origin": pa.array(["JFK", "LGA", "JFK", None, "JFK"]),
        "delay": pa.array([10, 20, None, 40, 50], pa.int32()),
    }
    return pa.table({**data, **columns})


def windowed(
    table: pa.Table | None = None, assigner: gw.functions.WindowAssigner | None = None
) -> gw.typing.WindowedStream:
    assigner = assigner or gw.TumblingEventTimeWindows.of("10 minutes")
    source = gw.stream(flights() if table is None else table)
    return source.event_time("ts", WATERMARKS).key_by("origin").window(assigner)


def at(minutes: int) -> datetime:
    return START + timedelta(minutes=minutes)


def test_aggregate_gives_keys_bounds_results() -> None:
    result = windowed().aggregate(n=gw.count(), delay=gw.mean("delay"))
    assert result.schema.names == ["origin", "window_start", "window_end", "n", "delay"]
    assert result.schema.field("window_start").type == pa.timestamp("us", "UTC")
    assert not result.schema.field("window_end").nullable
    assert [tuple(row.values()) for row in result.to_pylist()] == [
        ("JFK", at(0), at(10), 1, 10.0),
        ("LGA", at(0), at(10), 1, 20.0),
        ("JFK", at(10), at(20), 1, None),
        (None, at(30), at(40), 1, 40.0),
    ]


def test_null_timestamps_are_counted_and_kept() -> None:
    outputs = windowed().with_outputs().aggregate(n=gw.count())
    (counters,) = outputs.metrics().to_pylist()
    assert counters["rows"] == 5
    assert counters["null_timestamp"] == 1
    assert counters["fired"] == 4
    (rejected,) = outputs.rejected().to_pylist()
    assert rejected == {
        "ts": None,
        "origin": "JFK",
        "delay": 50,
        "rejection_reason": "null_timestamp",
    }
    assert outputs.late().num_rows == 0


def test_out_of_range_timestamps_are_counted_and_kept() -> None:
    table = pa.table({"ts": pa.array([0, LONG_MAX - 1]), "origin": ["a", "b"]})
    outputs = windowed(table).with_outputs().aggregate(n=gw.count())
    assert outputs.metrics().to_pylist()[0]["out_of_range_timestamp"] == 1
    assert outputs.rejected().to_pylist() == [
        {"ts": LONG_MAX - 1, "origin": "b", "rejection_reason": "out_of_range_timestamp"}
    ]


def test_rows_in_gaps_are_counted() -> None:
    assigner = gw.SlidingEventTimeWindows.of("10 minutes", "30 minutes")
    outputs = windowed(assigner=assigner).with_outputs().aggregate(n=gw.count())
    assert outputs.metrics().to_pylist()[0]["gap"] == 1
    assert outputs.result().column("n").to_pylist() == [1, 1, 1]


@pytest.mark.parametrize("rows", [0, 3])
def test_empty_input_and_empty_batches(rows: int) -> None:
    schema = flights().schema
    batches = [schema.empty_table().to_batches()[:1], flights().slice(0, rows).to_batches()]
    reader = pa.RecordBatchReader.from_batches(schema, [b for part in batches for b in part])
    result = windowed(reader).aggregate(n=gw.count(), last=gw.last("delay"))
    assert result.num_rows == rows
    assert result.schema.field("last").type == pa.int32()


def test_reader_and_table_give_the_same() -> None:
    aggregates = {"n": gw.count(), "first": gw.first("delay"), "last": gw.last("delay")}
    table = pa.concat_tables([flights()] * 5)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))
    assert windowed(reader).aggregate(**aggregates).equals(windowed(table).aggregate(**aggregates))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_event_times_of_any_unit(unit: str) -> None:
    table = flights()
    coarse = table.set_column(0, "ts", table.column("ts").cast(pa.timestamp(unit, "UTC")))
    aggregates = {"n": gw.count(), "first": gw.first("ts"), "latest": gw.max("ts")}
    for source in (coarse, pa.RecordBatchReader.from_batches(coarse.schema, coarse.to_batches())):
        assert (
            windowed(source).aggregate(**aggregates).equals(windowed(table).aggregate(**aggregates))
        )


def test_builders_are_immutable() -> None:
    base = windowed()
    changed = base.allowed_lateness("1 minute").trigger(gw.CountTrigger.of(2)).options(device="cpu")
    assert (base.lateness, base.trigger_, base.options_.device) == (
        0,
        gw.EventTimeTrigger(),
        "auto",
    )
    assert changed.lateness == 60_000_000


def test_collect_and_reduce_keep_the_order_of_arrival() -> None:
    table = flights()
    collected = windowed(table, gw.TumblingEventTimeWindows.of("1 hour")).collect_lists("delay")
    assert dict(
        zip(collected["origin"].to_pylist(), collected["delay"].to_pylist(), strict=True)
    ) == {
        "JFK": [10, None],
        "LGA": [20],
        None: [40],
    }
    longest = windowed(flights().slice(0, 2), gw.TumblingEventTimeWindows.of("1 hour")).reduce(
        lambda a, b: max(a, b, key=lambda row: float(str(row["delay"]))), ["delay"]
    )
    assert sorted(longest["delay"].to_pylist()) == [10, 20]


def test_types_of_results() -> None:
    table = flights(
        money=pa.array([Decimal("0.05"), Decimal("0.10"), None, None, None], pa.decimal128(10, 2)),
        day=pa.array([date(2013, 1, 1)] * 5),
        real=pa.array([1.5] * 5, pa.float32()),
        ok=pa.array([True, False, None, True, True]),
    )
    hour = gw.TumblingEventTimeWindows.of("1 hour")
    result = windowed(table, hour).aggregate(
        total=gw.sum("money"),
        average=gw.mean("money"),
        latest=gw.max("ts"),
        day=gw.min("day"),
        real=gw.max("real"),
        reals=gw.sum("real"),
        ints=gw.sum("delay"),
        every=gw.bool_and("ok"),
    )
    types = {field.name: field.type for field in result.schema}
    assert types["total"] == pa.decimal128(20, 2)
    assert types["average"] == pa.decimal128(14, 6)
    assert types["latest"] == pa.timestamp("us", "UTC")
    assert (types["day"], types["real"]) == (pa.date32(), pa.float32())
    assert (types["reals"], types["ints"], types["every"]) == (pa.float64(), pa.int64(), pa.bool_())
    (jfk,) = [row for row in result.to_pylist() if row["origin"] == "JFK"]
    assert (jfk["total"], jfk["average"]) == (Decimal("0.05"), Decimal("0.050000"))


def test_bigint_sums_are_exact_and_never_wrap() -> None:
    big = 2**62
    table = flights(big=pa.array([big, big, big - 1, -1, 0]))
    hour = gw.TumblingEventTimeWindows.of("1 hour")
    sums = windowed(table, hour).aggregate(s=gw.sum("big"))["s"].to_pylist()
    assert sorted(sums) == [-1, big, 2 * big - 1]
    table = flights(big=pa.array([big, big, big, -1, 0]))
    with pytest.raises(errors.ArithmeticOverflowError, match=r"9223372036854775808.*'big'"):
        windowed(table, hour).aggregate(s=gw.sum("big"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 minute", 60_000_000),
        ("5 seconds", 5_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("-250 ms", -250_000),
        ("2 weeks", 14 * 86_400_000_000),
        (" 7 us ", 7),
        (timedelta(milliseconds=3), 3_000),
    ],
)
def test_durations(text: str | timedelta, expected: int) -> None:
    assert ticks(text) == expected


@pytest.mark.parametrize("text", ["", "5", "minute", "1 month", "1.5 s", "1 s x", 5, None])
def test_durations_that_cannot_be_read(text: Any) -> None:
    with pytest.raises(errors.InvalidDurationError, match=r"duration|unit of time"):
        ticks(text)


def test_durations_are_shown_as_they_are_read() -> None:
    for value in (0, 1, 90_000_000, -250_000, 86_400_000_000 + 5):
        assert ticks(show_ticks(value)) == value


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: gw.TumblingEventTimeWindows.of("0 s"), "size must be positive, got 0 s"),
        (lambda: gw.TumblingEventTimeWindows.of("-5 s"), "size must be positive, got -5 s"),
        (lambda: gw.SlidingEventTimeWindows.of("5 s", "0 s"), "slide must be positive"),
        (lambda: gw.SlidingEventTimeWindows.of("5 s", "-1 s"), "slide must be positive, got -1 s"),
        (lambda: gw.SlidingEventTimeWindows.of("5 s", "2 s", "2 s"), "offset must be smaller"),
        (lambda: gw.TumblingEventTimeWindows.of("5 s", "-5 s"), "offset must be smaller"),
        (lambda: gw.CumulativeEventTimeWindows.of("5 s", "2 s"), "multiple of step"),
        (lambda: gw.TumblingEventTimeWindows(LONG_MAX), "size is too long"),
        (lambda: gw.TumblingEventTimeWindows("1 minute"), "size must be in ticks.*got '1 minute'"),  # type: ignore[arg-type]
        (lambda: gw.EventTimeSessionWindows(timedelta(1)), "gap must be in ticks.*with_gap"),  # type: ignore[arg-type]
    ],
)
def test_windows_that_break_the_rules(make: Any, text: str) -> None:
    with pytest.raises(errors.InvalidWindowError, match=text):
        make()


def test_other_parts_that_break_the_rules() -> None:
    with pytest.raises(errors.InvalidTriggerError, match="positive integer, got 0"):
        gw.CountTrigger.of(0)
    with pytest.raises(errors.InvalidDurationError, match="out-of-orderness"):
        gw.WatermarkStrategy.for_bounded_out_of_orderness("-1 s")
    with pytest.raises(errors.InvalidOptionError, match="device must be one of"):
        windowed().options(device="tpu")
    with pytest.raises(errors.InvalidOptionError, match="threads must be in"):
        windowed().options(threads=0)
    with pytest.raises(errors.InvalidOptionError, match="options are"):
        windowed().options(gpu=True)
    with pytest.raises(errors.InvalidDurationError, match="lateness"):
        windowed().allowed_lateness("-1 s").aggregate(n=gw.count())
    with pytest.raises(errors.QueryError, match="stream takes"):
        gw.stream([1, 2, 3])
    with pytest.raises(errors.QueryError, match="at least one column"):
        gw.stream(flights()).event_time("ts", WATERMARKS).key_by().window(
            gw.TumblingEventTimeWindows.of("1 s")
        ).aggregate(n=gw.count())
    with pytest.raises(errors.InvalidOptionError, match="shards must be a whole number, got '4'"):
        windowed().options(shards="4")
    with pytest.raises(errors.InvalidOptionError, match=r"got gpu$"):
        windowed().options(gpu=True, shards=4)
    with pytest.raises(errors.QueryError, match="at least one result"):
        windowed().aggregate()
    with pytest.raises(errors.QueryError, match="must be an aggregate"):
        windowed().aggregate(n="count")  # type: ignore[arg-type]
    with pytest.raises(errors.QueryError, match="ddof"):
        gw.variance("delay", ddof=2)


def test_columns_that_are_missing_or_of_the_wrong_type() -> None:
    with pytest.raises(errors.ColumnNotFoundError, match=r"ts, origin, delay \(column 'time'\)"):
        gw.stream(flights()).event_time("time", WATERMARKS)
    with pytest.raises(errors.ColumnNotFoundError, match="'orign'"):
        gw.stream(flights()).event_time("ts", WATERMARKS).key_by("orign")
    with pytest.raises(errors.ColumnNotFoundError, match="'dealy'"):
        windowed().aggregate(n=gw.sum("dealy"))
    with pytest.raises(
        errors.ColumnTypeError, match=r"must be TIMESTAMP: .*to_timestamp.*, got string"
    ):
        gw.stream(flights()).event_time("origin", WATERMARKS).key_by("origin").window(
            gw.TumblingEventTimeWindows.of("1 s")
        ).aggregate(n=gw.count())
    days = flights(ts=pa.array([None] * 5, pa.date32()))
    with pytest.raises(errors.ColumnTypeError, match="event time must be TIMESTAMP"):
        windowed(days).aggregate(n=gw.count())
    lists = flights(origin=pa.array([[1]] * 5))
    with pytest.raises(errors.ColumnTypeError, match="a key must be"):
        windowed(lists).aggregate(n=gw.count())
    with pytest.raises(errors.NameClashError, match="'window_start'"):
        windowed().aggregate(window_start=gw.count())
    with pytest.raises(errors.NameClashError, match="'origin'"):
        windowed().aggregate(origin=gw.count())


@pytest.mark.parametrize(
    ("aggregate", "text"),
    [
        (gw.sum("origin"), "sum takes integers, floats .* got string"),
        (gw.mean("ts"), "mean takes"),
        (gw.max("lists"), "max takes integers, .* strings and binary.* got list"),
        (gw.bool_or("delay"), "bool_or takes booleans.* got int32"),
        (gw.arg_min("delay", by="lists"), "the ordering of arg_min"),
        (gw.sum("widest"), r"up to 38 digits.*decimal256\(40, 2\)"),
    ],
)
def test_aggregates_that_the_type_does_not_support(
    aggregate: gw.typing.Aggregate, text: str
) -> None:
    widest = pa.array([None] * 5, pa.decimal256(40, 2))
    table = flights(widest=widest, lists=pa.array([None] * 5, pa.list_(pa.int64())))
    with pytest.raises(errors.UnsupportedAggregateError, match=text):
        windowed(table).aggregate(x=aggregate)


def test_errors_survive_pickling() -> None:
    import pickle

    error = errors.ColumnTypeError("a rule", value=5, column="c")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(again), str(again), again.column) == (type(error), str(error), "c")


def test_cuda_without_a_device_is_an_error() -> None:
    with pytest.raises(errors.DeviceUnavailableError, match="device='cuda' needs"):
        windowed().options(device="cuda").aggregate(n=gw.count())


def test_explain_says_what_and_why() -> None:
    text = (
        windowed(assigner=gw.SlidingEventTimeWindows.of("1 hour", "7 minutes"))
        .with_outputs()
        .aggregate(delay=gw.mean("delay"))
        .explain()
    )
    assert "sliding 1 h every 7 min" in text
    assert "strategy  slices" in text
    assert "17 slices a window, 2 a slide" in text
    late = (
        windowed()
        .trigger(gw.CountTrigger.of(3))
        .with_outputs()
        .aggregate(delay=gw.mean("delay"))
        .explain()
    )
    assert "because the trigger (every 3 rows) looks at single rows" in late


def test_names_used_inside_are_refused() -> None:
    for name in ("__slice", "__P0", "__arrival", "rejection_reason"):
        table = flights(**{name: pa.array([1] * 5)})
        with pytest.raises(errors.NameClashError, match="used inside"):
            windowed(table).aggregate(n=gw.count())
    with pytest.raises(errors.NameClashError, match="__counters"):
        windowed().aggregate(__counters=gw.count())


def test_duplicate_columns_that_are_not_used() -> None:
    table = flights()
    table = table.append_column("d", table.column("delay")).append_column("d", table.column("ts"))
    outputs = windowed(table).with_outputs().aggregate(n=gw.count(), first=gw.first("delay"))
    assert outputs.rejected().column_names == [
        "ts",
        "origin",
        "delay",
        "d",
        "d",
        "rejection_reason",
    ]
    assert outputs.result().num_rows == 4


def test_unsigned_64_bits_do_not_wrap() -> None:
    table = flights(big=pa.array([2**63 + 5, 1, 2, 3, 4], pa.uint64()))
    found = windowed(table).aggregate(top=gw.max("big"), total=gw.sum("big"))
    assert max(found["top"].to_pylist()) == 2**63 + 5
    assert sum(found["total"].to_pylist()) == 2**63 + 11  # one row has no time
    with pytest.raises(errors.UnsupportedAggregateError, match=r"decimal128\(20, 0\)"):
        windowed(table).aggregate(spread=gw.stddev("big"))
    keyed = gw.stream(table).event_time("ts", WATERMARKS).key_by("big")
    result = keyed.window(gw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=gw.count())
    assert sorted(result["big"].to_pylist()) == [1, 2, 3, 2**63 + 5]


def test_hours_that_come_twice_in_local_time() -> None:
    times = [datetime(2013, 11, 3, hour, 30, tzinfo=UTC) for hour in (5, 6)]
    for unit in ("s", "ms", "us", "ns"):
        column = pa.array(times, pa.timestamp(unit, "America/New_York"))
        table = pa.table({"ts": column, "origin": ["a", "a"]})
        assert windowed(table).aggregate(n=gw.count()).num_rows == 2


def test_coarse_times_beyond_microseconds_are_rejected_not_lost() -> None:
    column = pa.array([2**60, -(2**60), 0], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    table = pa.table({"ts": column, "origin": ["a", "b", "c"]})
    (counters,) = windowed(table).with_outputs().aggregate(n=gw.count()).metrics().to_pylist()
    assert (counters["out_of_range_timestamp"], counters["fired"]) == (2, 1)


def test_keys_that_cannot_be_encoded_are_refused() -> None:
    for origin in (pa.array([["a"]] * 5), pa.nulls(5)):
        with pytest.raises(errors.ColumnTypeError, match="a key must be"):
            windowed(flights(origin=origin)).aggregate(n=gw.count())
