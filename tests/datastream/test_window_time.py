"""Windows of the results of windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_windows as gw
from gpu_windows.errors import ColumnNotFoundError, NameClashError, QueryError
from tests.examples import examples
from tests.planning.queries import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WATERMARKS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
SECOND = 1_000_000
ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-60, 60), st.integers(0, 9)))


def table(rows: list[tuple[str, int, int]]) -> pa.Table:
    names, times, values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "k": pa.array(names, pa.string()),
            "ts": pa.array([at * SECOND for at in times], pa.timestamp("us", "UTC")),
            "v": pa.array(values, pa.int64()),
        }
    )


def minutes(source: Any) -> gw.typing.WindowedStream:
    """Return rows in windows of 20 seconds."""
    keyed = gw.stream(source).event_time("ts", WATERMARKS).key_by("k")
    return keyed.window(gw.TumblingEventTimeWindows.of("20 seconds"))


def twice(source: Any) -> Any:
    """Return sums of a minute, of all keys together, from those of 20 seconds of each key."""
    first = minutes(source).aggregate(total=gw.sum("v"), n=gw.count())
    windows = gw.TumblingEventTimeWindows.of("1 minute")
    again = gw.stream(first).window_time().window_all(windows)
    return again.aggregate(total=gw.sum("total"), n=gw.sum("n"), most=gw.max("total"))


@examples(40)
@given(ROWS)
def test_a_result_is_in_the_windows_that_hold_its_own(rows: Any) -> None:
    windows = gw.TumblingEventTimeWindows.of("1 minute")
    at_once = gw.stream(table(rows)).event_time("ts", WATERMARKS).window_all(windows)
    wanted = at_once.aggregate(total=gw.sum("v"), n=gw.count())
    assert twice(table(rows)).drop_columns(["most"]).to_pylist() == wanted.to_pylist()


def test_readers_are_chained_too() -> None:
    first = minutes(table([("a", 3, 1), ("a", 19, 2), ("b", 20, 4)])).aggregate(n=gw.count())
    reader = pa.RecordBatchReader.from_batches(first.schema, first.to_batches())
    sliding = gw.SlidingEventTimeWindows.of("40 seconds", "20 seconds")
    found = gw.stream(reader).window_time().key_by("k").window(sliding).aggregate(n=gw.sum("n"))
    ends = [int(end.timestamp()) for end in found["window_end"].to_pylist()]
    assert [*zip(found["k"].to_pylist(), ends, found["n"].to_pylist(), strict=True)] == [
        ("a", 20, 2), ("a", 40, 2), ("b", 40, 1), ("b", 60, 1),
    ]  # fmt: skip


def test_spark_gives_what_the_local_runner_gives(spark: SparkSession) -> None:
    rows = table([("a", 3, 1), ("a", 19, 2), ("b", 59, 4), ("b", 60, 8), ("a", -1, 16)])
    assert rows_of(twice(spark.createDataFrame(rows)).toArrow()) == rows_of(twice(rows))


def test_results_of_other_kinds_are_refused() -> None:
    rows = table([("a", 3, 1)])
    with pytest.raises(ColumnNotFoundError, match="window_end"):
        gw.stream(rows).window_time()
    ended = minutes(rows).aggregate(n=gw.count())
    with pytest.raises(NameClashError, match="window_time"):
        gw.stream(ended.append_column("window_time", ended["k"])).window_time()
    early = minutes(rows).trigger(gw.EarlyAndLateTrigger.of(early=gw.CountTrigger.of(1)))
    fired = early.with_firing_columns().aggregate(n=gw.count())
    with pytest.raises(QueryError, match="name a strategy"):
        gw.stream(fired).window_time()
    assert gw.stream(fired).window_time(WATERMARKS).time == "window_time"
    naive = ended["window_end"].cast(pa.timestamp("us"))
    timed = gw.stream(ended.set_column(2, "window_end", naive)).window_time()
    assert timed.source.schema.field(timed.time).type == pa.timestamp("us")
