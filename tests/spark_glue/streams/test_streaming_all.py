"""Windows of all rows on streams: one shard combines what all tasks made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.planning.own_columns import NO_KEY
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import (
    WATERMARKS,
    batches,
    expected,
    files,
    metrics_in,
    results_in,
    run_to_the_end,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWENTY = gw.TumblingEventTimeWindows.of("20 seconds")
SESSIONS = gw.EventTimeSessionWindows.with_gap("1 second")
QUERIES: dict[str, Callable[[gw.typing.TimedStream], gw.typing.Outputs]] = {
    "slices": lambda timed: (
        timed.window_all(TWENTY).with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    ),
    "sessions": lambda timed: (
        timed.window_all(SESSIONS).arrival_order("seq").with_outputs().aggregate(n=gw.count())
    ),
    "counts": lambda timed: (
        timed.count_window_all(30, 20)
        .arrival_order("seq")
        .with_outputs()
        .aggregate(n=gw.count(), first=gw.first("seq"))
    ),
    "top": lambda timed: (
        timed.window_all(TWENTY).arrival_order("seq").with_outputs().top(3, "v", columns=["seq"])
    ),
}  # fmt: skip


def timed(source: Any) -> gw.typing.TimedStream:
    return gw.stream(source).event_time("ts", WATERMARKS)


@pytest.mark.parametrize(
    "name",
    quick(QUERIES, nightly=[name for name in QUERIES if name != "slices"]),
)
def test_streams(spark: SparkSession, tmp_path: Path, name: str) -> None:
    tables = batches(4, 300)
    files(tmp_path / "in", tables)
    outputs = QUERIES[name](timed(streamed(spark, tmp_path / "in")))
    run_to_the_end(outputs, tmp_path)
    given = [table.append_column(NO_KEY, pa.array([True] * len(table))) for table in tables]
    results, late = expected(outputs, given)
    assert len(results) > 10
    assert results_in(spark, tmp_path) == rows_of(results.drop_columns([NO_KEY]))
    back = gw.read_output(spark, tmp_path / "out", "late").toArrow()
    assert NO_KEY not in back.column_names
    assert sorted(back["ts"].to_pylist(), key=str) == sorted(
        late["ts"].cast(back.schema.field("ts").type).to_pylist(), key=str
    )


@pytest.mark.thorough
def test_partials_of_all_tasks_meet_in_one_shard(spark: SparkSession, tmp_path: Path) -> None:
    """Rows in time become partials before the shuffle; a restart goes on with what waits."""
    tables = batches(2, 2_000)
    files(tmp_path / "in", tables[:1])
    made = QUERIES["slices"](timed(streamed(spark, tmp_path / "in")))
    assert made.plan.query.options.shards == 1
    assert "partials of all tasks are combined in one shard" in made.explain()
    for number in (1, 2):
        files(tmp_path / "in", tables[:number])
        run_to_the_end(made, tmp_path)
    given = [table.append_column(NO_KEY, pa.array([True] * len(table))) for table in tables]
    results, late = expected(made, given)
    assert len(late) > 0
    counters = {each.number: each.counters for each in metrics_in(tmp_path)}
    assert sorted(counters) == [0, 1]
    assert sum(each.locally_aggregated for each in counters.values()) == 4_000 - len(late)
    assert len(results) > 3
    assert results_in(spark, tmp_path) == rows_of(results.drop_columns([NO_KEY]))


def test_where_rows_are_needed_one_task_sees_them_all(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1, 10))
    text = QUERIES["top"](timed(streamed(spark, tmp_path / "in"))).explain()
    assert "key       none: all rows together" in text
    assert "all of them go to one shard: one task sees them" in text


@pytest.mark.slow
def test_upserts_know_windows_by_their_bounds(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(3, 300))
    stream = timed(streamed(spark, tmp_path / "in"))
    windowed = stream.window_all(TWENTY).trigger(gw.ContinuousEventTimeTrigger.of("5 seconds"))
    known: dict[Any, Any] = {}

    def put(results: Any, keys: tuple[str, ...], _: int) -> None:
        assert keys == ("window_start", "window_end")
        known.update({row["window_start"]: row["n"] for row in results.collect()})

    made = windowed.with_firing_columns().with_outputs().aggregate(n=gw.count())
    query = gw.write_stream(
        made, gw.upsert(put), tmp_path / "state", trigger={"availableNow": True}
    )
    query.awaitTermination()
    assert len(known) > 5


class Odd(gw.functions.ProcessWindowFunction):
    """How many rows a window has; aside, windows with an odd number."""

    side_outputs: ClassVar = {"odd": pa.schema([("rows", pa.int64())])}

    def process(self, key: Any, context: Any, rows: pa.Table) -> list[dict[str, object]]:
        if len(rows) % 2:
            context.output("odd", {"rows": len(rows)})
        return [{"rows": len(rows)}]


@pytest.mark.slow
def test_side_outputs_have_no_key(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(3, 300))
    windowed = timed(streamed(spark, tmp_path / "in")).window_all(TWENTY).arrival_order("seq")
    made = windowed.with_outputs().process(Odd(), ["v"], output=pa.schema([("rows", pa.int64())]))
    run_to_the_end(made, tmp_path)
    back = gw.read_output(spark, tmp_path / "out", "sides/odd")
    assert back.columns == ["rows"]
    assert back.count() > 0
