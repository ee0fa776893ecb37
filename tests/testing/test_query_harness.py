"""A query step by step: rows, watermarks, the clock, outputs, state."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, ClassVar, cast

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import QueryError, StateError, UnsupportedQueryError
from gpu_windows.testing import assert_rows, harness

SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})
SUMMER = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
BOUND = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")


def row(at: str, value: int, key: str = "a") -> dict[str, Any]:
    return {"k": key, "ts": f"2026-05-01 12:{at}", "v": value}


def windowed(rows: Any) -> Any:
    keyed = rows.where("v > 0").event_time("ts", BOUND).key_by("k")
    return keyed.window(gw.TumblingEventTimeWindows.of("1 minute")).with_outputs()


def sums(rows: Any) -> Any:
    return windowed(rows).aggregate(total=gw.sum("v"), last=gw.last("v"))


def test_windows_fire_when_the_watermark_says_so() -> None:
    test = harness(sums, SCHEMA)
    test.push([row("00:10", 1), row("00:20", -7), row("00:30", 2)])
    test.push([row("01:10", 5)])
    assert len(test.take()) == 0
    test.advance_watermark("2026-05-01 12:00:59.999998")
    assert len(test.take()) == 0
    test.advance_watermark("2026-05-01 12:00:59.999999")
    assert_rows(test.take(), [{"k": "a", "total": 3, "last": 2}], columns=["k", "total", "last"])
    test.push([row("00:50", 9), {"k": "a", "v": 1}])
    assert_rows(test.take("late"), pa.Table.from_pylist([row("00:50", 9)]), columns=["k", "v"])
    assert test.take("rejected")["rejection_reason"].to_pylist() == ["null_timestamp"]
    assert len(test.take("rejected")) == 0
    test.end_input()
    assert test.take()["total"].to_pylist() == [5]
    assert (test.counters.rows, test.counters.late, test.counters.fired) == (5, 1, 2)
    assert set(test.state_size().values()) <= {0}


def test_the_watermark_of_the_query() -> None:
    test = harness(sums, SCHEMA)
    test.advance_watermark()
    test.push([row("01:04", 1), row("00:10", 1)])
    test.advance_watermark()
    assert len(test.take()) == 0
    test.push([row("01:05", 1)])
    test.advance_watermark()
    assert test.take()["total"].to_pylist() == [1]


def test_a_snapshot_is_gone_back_to() -> None:
    test = harness(sums, SCHEMA)
    test.push([row("00:10", 1)])
    snapshot = test.snapshot()
    test.push([row("00:11", 10)])
    test.end_input()
    assert test.take()["total"].to_pylist() == [11]
    for other in (test, harness(sums, SCHEMA)):
        other.restore(snapshot)
        assert len(other.take()) == 0
        other.push([row("00:12", 100)])
        other.advance_watermark("2026-05-01 12:01")
        found = other.take()
        assert (found["total"].to_pylist(), found["last"].to_pylist()) == ([101], [100])


def test_the_watermark_of_the_query_goes_on_from_a_snapshot() -> None:
    test = harness(sums, SCHEMA)
    test.push([row("00:10", 1)])
    test.push([row("01:30", 1)])
    snapshot = test.snapshot()
    test.push([row("09:00", 1)])
    for other in (test, harness(sums, SCHEMA)):
        other.restore(snapshot)
        assert other.watermark is None
        other.advance_watermark()
        ended, nothing = (other.take()["total"].to_pylist() for _ in range(2))
        assert (ended, nothing) == ([1], [])
        assert other.watermark == snapshot.times[-1] - 5_000_001
        other.push([row("02:30", 1)])
        other.advance_watermark()
        assert other.take()["total"].to_pylist() == [1]


def test_filled_keys_are_counted_after_a_snapshot() -> None:
    def filled(rows: Any) -> Any:
        keyed = rows.event_time("ts", BOUND).key_by("k")
        minutes = gw.TumblingEventTimeWindows.of("1 minute")
        return (
            keyed.window_gapfill(minutes, until="2 minutes").with_outputs().aggregate(n=gw.count())
        )

    def sizes(*, restores: bool) -> list[int]:
        test, found = harness(filled, SCHEMA), []
        for minute, keys in enumerate(["ab", "bc", "", "c", "", "", "", "d"]):
            test.push([row(f"0{minute}:10", 1, key) for key in keys])
            if restores:
                test.restore(test.snapshot())
            test.advance_watermark(f"2026-05-01 12:0{minute + 1}")
            found.append(test.state_size()["filled keys"])
        return found

    without = sizes(restores=False)
    assert sizes(restores=True) == without
    assert (without[0], max(without), without[-2]) == (2, 3, 0)


def test_a_snapshot_of_another_query() -> None:
    first = harness(sums, SCHEMA)
    first.push([row("00:10", 1)])
    other = harness(lambda rows: windowed(rows).process(Counts(), ["v"], output="n LONG"), SCHEMA)
    with pytest.raises(StateError):
        other.restore(first.snapshot())
    with pytest.raises(QueryError, match="takes a Snapshot"):
        other.restore(b"")  # type: ignore[arg-type]


class Counts(gw.functions.ProcessWindowFunction):
    def process(self, key: Any, context: Any, rows: Any) -> list[dict[str, int]]:
        return [{"n": len(rows)}]


class Alarm(gw.functions.KeyedProcessFunction):
    uses_processing_time = True
    state: ClassVar = {"n": gw.functions.ValueStateDescriptor(pa.int64())}
    output_schema = pa.schema({"n": pa.int64()})
    side_outputs: ClassVar = {"seen": pa.schema({"v": pa.int64()})}

    def process_element(self, row: Any, context: Any) -> Any:
        count = (context.state("n").value() or 0) + 1
        context.state("n").update(count)
        context.output("seen", {"v": row["v"]})
        context.register_processing_time_timer(context.current_processing_time + 10_000_000)
        return []

    def on_timer(self, timestamp: int, context: Any) -> Any:
        return [{"n": context.state("n").value()}]


def test_timers_side_outputs_and_the_clock() -> None:
    def alarms(rows: Any) -> Any:
        keyed = rows.event_time("ts", BOUND).key_by("k").with_outputs()
        return keyed.process(Alarm(), ["v"], output="n LONG")

    test = harness(alarms, SCHEMA)
    test.set_processing_time("2026-05-01 08:00")
    test.push([row("00:10", 1), row("00:20", 2, "b")])
    assert test.take("sides/seen")["v"].to_pylist() == [1, 2]
    test.set_processing_time("2026-05-01 08:00:09")
    assert len(test.take()) == 0
    test.set_processing_time("2026-05-01 08:00:10")
    assert_rows(test.take(), [{"k": "a", "n": 1}, {"k": "b", "n": 1}])


def test_windows_of_processing_time() -> None:
    def counts(rows: Any) -> Any:
        windows = gw.TumblingProcessingTimeWindows.of("10 seconds")
        return rows.key_by("k").window(windows).with_outputs().aggregate(n=gw.count())

    test = harness(counts, SCHEMA)
    test.set_processing_time("2026-05-01 08:00:05")
    test.push([row("00:10", 1), row("00:20", 2)])
    test.set_processing_time("2026-05-01 08:00:10")
    assert test.take()["n"].to_pylist() == [2]


def test_two_inputs_have_names() -> None:
    def pairs(left: Any, right: Any) -> Any:
        sides = [each.event_time("ts", BOUND).key_by("k") for each in (left, right)]
        join = sides[0].interval_join(sides[1]).between("-5 seconds", "5 seconds")
        return join.with_outputs().select(["v"], ["v"])

    test = harness(pairs, left=SCHEMA, right=SCHEMA)
    test.push(left=[row("00:10", 1)])
    test.push(right=[row("00:12", 2), row("00:50", 3)])
    assert len(test.take()) == 1
    with pytest.raises(QueryError, match="several strategies"):
        test.advance_watermark()
    with pytest.raises(QueryError, match="the inputs of this harness are 'left', 'right'"):
        test.push([row("00:10", 1)])


def test_sql_is_a_query_like_others() -> None:
    text = """
        SELECT k, SUM(v) AS total FROM TUMBLE(TABLE rows, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
        GROUP BY k, window_start, window_end"""

    def query(rows: Any) -> Any:
        return gw.sql(text, rows=rows.event_time("ts", BOUND)).outputs()

    with pytest.raises(QueryError, match=r"without distinct|outputs"):
        harness(lambda rows: query(rows).distinct(), SCHEMA)
    test = harness(query, rows=SCHEMA)
    test.push(rows=[row("00:10", 1), row("00:20", 2)])
    test.advance_watermark("2026-05-01 12:01:00+00:00")
    assert test.take()["total"].to_pylist() == [3]


def push_after_the_end() -> None:
    test = harness(sums, SCHEMA)
    test.end_input()
    test.push([row("00:10", 1)])


def test_rows_of_pandas_and_times_that_look_like_seconds(caplog: pytest.LogCaptureFixture) -> None:
    test = harness(sums, SCHEMA)
    test.push(pa.table({"k": ["a"], "ts": [SUMMER], "v": [5]}, SCHEMA).to_pandas())
    assert not caplog.records
    test.push([{"k": "a", "ts": 1_777_636_800, "v": 5}])
    assert "all of column 'ts' look like seconds" in caplog.text
    test.end_input()
    assert [each.year for each in test.take()["window_start"].to_pylist()] == [1970, 2026]


@pytest.mark.parametrize(
    ("does", "rule"),
    [
        (lambda: harness(sums), "takes the schema of one input"),
        (lambda: harness(sums, {"k": "string"}), "is a pyarrow.Schema"),
        (lambda: harness(lambda rows: rows, SCHEMA), "returns outputs"),
        (lambda: harness(sums, SCHEMA).push({"k": "a"}), "a list of dicts"),
        (lambda: harness(sums, SCHEMA).push([{"key": "a"}]), "some of the columns k, ts, v"),
        (lambda: harness(sums, SCHEMA).push([{"v": "many"}]), "does not fit its column, int64"),
        (lambda: harness(sums, SCHEMA).push([{"ts": 1.5}]), r"microseconds since 1970, got 1\.5"),
        (lambda: harness(cast("Any", 5), SCHEMA), "takes a function of streams.*got int"),
        (lambda: push_after_the_end(), "rows come before end_input"),
        (lambda: harness(sums, SCHEMA).push(pa.table({"k": ["a"]})), "have the columns k, ts, v"),
        (lambda: harness(sums, SCHEMA).take("sides/x"), "outputs are result, late, rejected"),
        (lambda: harness(sums, SCHEMA).advance_watermark("noon"), "a time as text"),
        (lambda: harness(sums, SCHEMA).advance_watermark(1.5), "a time is a datetime"),  # type: ignore[arg-type]
    ],
)
def test_misuse(does: Any, rule: str) -> None:
    with pytest.raises(QueryError, match=rule):
        does()


def test_schemas_of_spark_and_of_ddl() -> None:
    from pyspark.sql.pandas.types import from_arrow_schema

    for schema in ("k STRING, ts TIMESTAMP, v INT", from_arrow_schema(SCHEMA)):
        test = harness(sums, schema)
        test.push([{"k": "a", "ts": "2026-05-01 12:00:10", "v": 5}])
        test.end_input()
        assert test.take().num_rows == 1


def test_a_watermark_does_not_go_back() -> None:
    test = harness(sums, SCHEMA)
    test.advance_watermark(5)
    with pytest.raises(QueryError, match=r"back; it is 1970-01-01 00:00:00\.000005, got .*04$"):
        test.advance_watermark(4)


def test_a_chain_is_tested_query_by_query() -> None:
    def chain(rows: Any) -> Any:
        results = gw.stream_results(sums(rows), name="minutes")
        return results.key_by("k").window(gw.TumblingEventTimeWindows.of("1 hour")).with_outputs()

    with pytest.raises(QueryError, match="a harness runs one query"):
        harness(lambda rows: chain(rows).aggregate(n=gw.count()), SCHEMA)


@pytest.mark.parametrize("value", [1.9, float("nan")])
def test_numbers_are_not_rounded(value: float) -> None:
    run = harness(sums, SCHEMA)
    run.push([{**row("00:01", 1), "v": 2.0}])
    with pytest.raises(QueryError, match=r"int64: a fraction .*, got (1.9|nan) \(column"):
        run.push([{**row("00:01", 1), "v": value}])
    with pytest.raises(QueryError, match=r"its column, int64: a fraction .* got Decimal\('1.5'\)"):
        run.push([{**row("00:01", 1), "v": Decimal("1.5")}])
    nested = harness(sums, SCHEMA.append(pa.field("n", pa.list_(pa.struct({"i": pa.int32()})))))
    with pytest.raises(QueryError, match=r"its column, list.*'i': 2.5}, None\] \(column 'n'\)"):
        nested.push([{**row("00:01", 1), "n": [{"i": 2}, {"i": 2.5}, None]}])
    rows = pa.table({"k": ["a"], "ts": [SUMMER], "v": [value]})
    with pytest.raises(QueryError, match="a value does not fit the columns"):
        run.push(rows)


def test_windows_of_processing_time_end_by_the_clock() -> None:
    def query(rows: Any) -> Any:
        keyed = rows.processing_time().key_by("k")
        windows = keyed.window(gw.TumblingProcessingTimeWindows.of("1 minute"))
        return windows.with_outputs().aggregate(n=gw.count())

    run = harness(query, "k STRING, v INT")
    run.set_processing_time("2026-05-01 12:00:10")
    run.push([{"k": "a", "v": 1}, {"k": "a", "v": 2}])
    run.set_processing_time("2026-05-01 12:00:50")
    run.push([{"k": "a", "v": 3}])
    assert len(run.take()) == 0
    run.set_processing_time("2026-05-01 12:01:00")
    assert run.take()["n"].to_pylist() == [3]
    with pytest.raises(UnsupportedQueryError, match="all rows arrive at once"):
        query(gw.stream(pa.table({"k": ["a"], "v": [1]})))  # no harness
    with pytest.raises(UnsupportedQueryError, match="all rows arrive at once"):
        harness(lambda rows: rows.ingestion_time(), "k STRING")
