"""Watermarks that rows carry: on tables, in batch, on streams."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.planning.own_columns import REASON
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.lanes import quick
from tests.planning.queries import counters_of, rows_of
from tests.spark_glue.stream_runs import files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
INSTANT = pa.timestamp("us", "UTC")
SCHEMA = "ts timestamp, k string, v long, wm timestamp"

#: Key, event time, watermark: ticks after `BEGIN`; None: null. A key of None makes a marker.
Row = tuple[str | None, int | None, int | None]


def table(rows: Iterable[Row]) -> pa.Table:
    keys, times, carried = zip(*rows, strict=True)
    return pa.table(
        {
            "ts": _instants(times),
            "k": pa.array(keys, pa.string()),
            "v": pa.array([None if k is None else 1 for k in keys], pa.int64()),
            "wm": _instants(carried),
        }
    )


def _instants(ticks: Iterable[int | None]) -> pa.Array:
    moved = [None if tick is None else BEGIN + tick for tick in ticks]
    return pa.array(moved, pa.int64()).cast(INSTANT)


def windowed(source: Any, column: Any = "wm") -> gw.typing.WindowedStream:
    timed = gw.stream(source).event_time("ts", gw.WatermarkStrategy.for_punctuated(column))
    windows = gw.TumblingEventTimeWindows.of("10 s")
    return timed.key_by("k").window(windows).options(device="cpu", shards=2)


#: A marker, a row without a time that is none, and one without a key.
MIXED: list[Row] = [
    ("a", 1 * SECOND, None),
    ("b", 2 * SECOND, 1 * SECOND),
    (None, None, 4 * SECOND),
    ("a", None, 5 * SECOND),
    (None, None, None),
    ("a", 3 * SECOND, None),
]


def test_on_a_table_all_rows_count_and_markers_are_left_out() -> None:
    outputs = windowed(table(MIXED)).with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    assert [(r["k"], r["n"]) for r in outputs.result().to_pylist()] == [("a", 2), ("b", 1)]
    (counters,) = outputs.metrics().to_pylist()
    assert (counters["rows"], counters["null_timestamp"], counters["late"]) == (5, 2, 0)
    assert outputs.rejected()["k"].to_pylist() == ["a", None]
    assert "watermark carried by wm" in outputs.explain()


def test_a_table_without_watermarks_has_no_markers() -> None:
    rows = table([(key, time, None) for key, time, _ in MIXED])
    (counters,) = windowed(rows).with_outputs().aggregate(n=gw.count()).metrics().to_pylist()
    assert (counters["rows"], counters["null_timestamp"]) == (6, 3)


def test_a_time_that_is_its_own_watermark_makes_no_marker() -> None:
    rows = table([(None, SECOND, None), ("a", 2 * SECOND, None)])
    outputs = windowed(rows, "ts").with_outputs().aggregate(n=gw.count())
    assert outputs.result()["k"].to_pylist() == [None, "a"]


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_a_row_is_late_up_to_the_watermark_before_it(unit: str) -> None:
    said = 10 * SECOND - (1 if unit == "us" else 1_000)  # the last tick of the first window
    rows = table(
        [
            ("a", SECOND, said - 1_000),
            ("a", SECOND, said),
            ("a", SECOND, None),
            (None, None, said - 2_000),
            ("a", 10 * SECOND, None),
        ]
    )
    columns = [
        column.cast(pa.timestamp(unit, "UTC")) if pa.types.is_timestamp(column.type) else column
        for column in rows.columns
    ]
    sample = pa.table(columns, rows.schema.names)
    found = gw.trace_firings(windowed(sample).with_outputs().aggregate(n=gw.count()), sample)
    carried = [said - 1_000, *[said] * 4]
    assert found.watermarks == [BEGIN + tick for tick in carried]
    closed = unit == "us"  # before it: rows may come between the last ms and the window's end
    assert [row.rejected for row in found.rows] == [
        None,
        None,
        "late" if closed else None,
        *[None] * 2,
    ]
    assert found.rows[3].key is None
    assert next((f.step, f.rows) for f in found.firings) == (
        (1, (0, 1)) if closed else (5, (0, 1, 2))
    )
    assert (
        len(gw.plot_firings(windowed(sample).with_outputs().aggregate(n=gw.count()), sample).axes)
        == 1
    )


def test_no_row_carries_a_watermark() -> None:
    sample = table([("a", SECOND, None)])
    found = gw.trace_firings(windowed(sample).with_outputs().aggregate(n=gw.count()), sample)
    assert found.watermarks == [LONG_MIN]


def test_what_carries_no_watermark_is_refused() -> None:
    rows = table(MIXED)
    with pytest.raises(errors.ColumnNotFoundError, match=r"no such column.*'mark'"):
        windowed(rows, "mark")
    with pytest.raises(errors.ColumnTypeError, match="column of watermarks must be TIMESTAMP: "):
        windowed(rows, "k")
    naive = rows.set_column(3, "wm", rows["wm"].cast(pa.timestamp("us")))
    with pytest.raises(errors.ColumnTypeError, match=r"times are TIMESTAMP: .*got TIMESTAMP_NTZ"):
        windowed(naive)
    with pytest.raises(errors.QueryError, match="not both, got 1 us"):
        gw.WatermarkStrategy(1, "wm")


# ---- Spark


def test_markers_are_left_out_of_windows_of_all_rows() -> None:
    """Though a column of our own, the key, is null in no row."""
    rows = table([("a", 1 * SECOND, None), (None, None, 1 * SECOND), ("b", 2 * SECOND, None)])
    timed = gw.stream(rows).event_time("ts", gw.WatermarkStrategy.for_punctuated("wm"))
    counted = timed.count_window_all(2).with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    assert [row["n"] for row in counted.result().to_pylist()] == [2]
    tumbling = (
        timed.window_all(gw.TumblingEventTimeWindows.of("10 s"))
        .with_outputs()
        .aggregate(total=gw.sum("v"))
    )
    (counters,) = tumbling.metrics().to_pylist()
    assert (counters["rows"], counters["null_timestamp"]) == (2, 0)


def test_markers_are_left_out_of_rows_counted_by_side() -> None:
    rows = table([("a", 1 * SECOND, None), (None, None, 1 * SECOND)])
    timed = gw.stream(rows).event_time("ts", gw.WatermarkStrategy.for_punctuated("wm"))
    both = timed.key_by("k").co_group(timed.key_by("k"))
    whole = both.window(gw.GlobalWindows.create_with_end_of_stream_trigger())
    found = whole.with_outputs().aggregate(left={"n": gw.count()}, right={"m": gw.count()}).result()
    assert [(row["k"], row["n"], row["m"]) for row in found.to_pylist()] == [("a", 1, 1)]


@pytest.mark.parametrize("partials", ["kernels", "spark"])
def test_batch_leaves_markers_out(spark: SparkSession, partials: str) -> None:
    aggregates = {"n": gw.count(), "total": gw.sum("v")}
    local = windowed(table(MIXED)).with_outputs().aggregate(**aggregates)
    made = windowed(spark.createDataFrame(table(MIXED))).options(partials=partials)
    outputs = made.with_outputs().aggregate(**aggregates)
    assert rows_of(outputs.result().toArrow()) == rows_of(local.result())
    assert counters_of(outputs.metrics()) == counters_of(local.metrics())
    assert rows_of(outputs.rejected().toArrow()) == rows_of(local.rejected())


def test_what_spark_refuses(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark.createDataFrame(table(MIXED))
    with pytest.raises(
        errors.ColumnTypeError, match=r"watermarks must be TIMESTAMP: .*, got bigint"
    ):
        windowed(frame, "v")
    with pytest.raises(errors.ColumnTypeError, match=r"times are TIMESTAMP: .*got TIMESTAMP_NTZ"):
        windowed(frame, F.col("wm").cast("timestamp_ntz"))
    with pytest.raises(
        errors.ColumnTypeError, match=r"event time must be TIMESTAMP: .*_seconds.*, got bigint"
    ):
        gw.stream(frame).event_time("v", gw.WatermarkStrategy.for_monotonous_timestamps())


def test_tasks_are_sent_carried_watermarks_to_the_tick(spark: SparkSession) -> None:
    """And markers, with nothing else; a row without a time may carry one."""
    from gpu_windows.spark_glue.contract.watermarks import (
        CARRIED_WATERMARK,
        IS_MARKER,
        with_progress,
    )

    carried = [-BEGIN - 5, 0, 1, 998, 999, 1_000, 1_001, 1_999, LONG_MAX - BEGIN]
    rows: list[Row] = [("a", 0, tick) for tick in carried]
    rows += [("a", None, 7), ("a", 0, None), (None, None, 8), (None, None, None)]
    frame = spark.createDataFrame(table(rows))
    plan = windowed(frame).with_outputs().aggregate(n=gw.count()).plan
    found = with_progress(frame, "ts", plan.query.watermarks, plan.marker_columns)
    sent = [tuple(row) for row in found.select(CARRIED_WATERMARK, IS_MARKER).collect()]
    ticks = [None if tick is None else BEGIN + tick for _, _, tick in rows]
    assert sent == [(tick, tick == BEGIN + 8) for tick in ticks]


def streamed(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def written(outputs: gw.typing.Outputs, folder: Path) -> list[tuple[list[Any], list[Any]]]:
    """Return results and rows given back of each micro-batch."""
    found: dict[int, tuple[list[Any], list[Any]]] = {}

    def take(results: DataFrame, back: DataFrame, number: int) -> None:
        windows = [(r["k"], r["window_start"].timestamp(), r["n"]) for r in results.collect()]
        reasons = [(r["k"], r[REASON]) for r in back.collect()]
        found[number] = (sorted(windows), sorted(reasons, key=repr))

    state = str(folder / "state")
    gw.write_stream(outputs, take, state, trigger={"availableNow": True}).awaitTermination()
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize("as_column", quick([False, True]))
def test_on_a_stream_rows_carry_the_watermark(
    spark: SparkSession, tmp_path: Path, as_column: bool
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    last = 10 * SECOND - 1
    batches: list[list[Row]] = [
        # A microsecond before the end of the first window.
        [("a", SECOND, last - 1), ("a", 99 * SECOND, None), ("b", 2 * SECOND, 3 * SECOND)],
        [("a", 3 * SECOND, None)],
        [(None, None, last)],
        [("a", 4 * SECOND, 5 * SECOND), ("b", last + 1, None), ("b", None, last)],
        [("b", 11 * SECOND, last + 10 * SECOND)],
    ]
    files(tmp_path / "in", [table(rows) for rows in batches])
    column = F.expr("wm + INTERVAL '0' SECOND") if as_column else "wm"
    outputs = (
        windowed(streamed(spark, tmp_path / "in"), column).with_outputs().aggregate(n=gw.count())
    )
    assert outputs.plan.input_columns == ("k", "ts")
    first, second = BEGIN / SECOND, BEGIN / SECOND + 10
    assert written(outputs, tmp_path) == [
        ([], []),
        ([], []),
        ([("a", first, 2), ("b", first, 1)], []),
        ([], [("a", "late"), ("b", "null_timestamp")]),
        ([("b", second, 2)], []),  # the row at 99 s waits
    ]
