"""Windows without rows on streaming DataFrames: what is written, and after a restart."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import StateMismatchError, UnsupportedQueryError
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import (
    AGGREGATES,
    BEGIN,
    SECOND,
    WATERMARKS,
    batches,
    expected,
    files,
    results_in,
    run_to_the_end,
    streamed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WINDOWS = gw.TumblingEventTimeWindows.of("1 second")
EVERY_KEY = {"carry_forward": ["total", "first"], "until": "20 seconds"}
LINES = {"interpolate": ["total"], "until": "10 seconds"}
START = dt.datetime.fromtimestamp(BEGIN // SECOND, dt.UTC)
GIVEN = {"carry_forward": "first", "keys": [1, 3, 999], "start": START}


def fill(source: Any, how: dict[str, Any], shards: int = 3) -> gw.typing.Outputs:
    by_key = gw.stream(source).event_time("ts", WATERMARKS).key_by("k")
    windows = by_key.window_gapfill(WINDOWS, **how).arrival_order("seq")
    return windows.options(device="cpu", shards=shards).with_outputs().aggregate(**AGGREGATES)


@pytest.mark.thorough
@pytest.mark.parametrize("how", [GIVEN, EVERY_KEY, LINES], ids=["given", "known", "lines"])
def test_a_restarted_stream_fills_the_same(
    spark: SparkSession, tmp_path: Path, how: dict[str, Any]
) -> None:
    """Stopped after two micro-batches, and resumed with other shards."""
    tables = batches(3)
    files(tmp_path / "in", tables[:2])
    run_to_the_end(fill(streamed(spark, tmp_path / "in"), how), tmp_path)
    files(tmp_path / "in", tables)
    outputs = fill(streamed(spark, tmp_path / "in"), how, shards=5)
    run_to_the_end(outputs, tmp_path)
    found = results_in(spark, tmp_path)
    assert found == rows_of(expected(outputs, tables)[0])
    assert sum(row[3] == 0 for row in found) > 100
    if how is not LINES:  # all windows that have ended are filled, as those of a batch
        assert _without_end(found) == _without_end(_of_batch(spark, tables, how))


def _of_batch(spark: SparkSession, tables: list[pa.Table], how: dict[str, Any]) -> Any:
    """Return the results of a batch of the rows that are not late."""
    latest, on_time = 0, []
    for table in tables:
        ticks = table["ts"].cast(pa.int64())
        watermark = max(0, latest - 5 * SECOND)
        is_late = pa.compute.less(ticks, watermark // SECOND * SECOND)
        on_time.append(table.filter(pa.compute.invert(pa.compute.fill_null(is_late, False))))
        latest = max(latest, pa.compute.max(ticks).as_py())
    end = {"end": START + dt.timedelta(minutes=10)} if "keys" in how else {}
    frame = spark.createDataFrame(pa.concat_tables(on_time))
    table = fill(frame, how | end).result().toArrow()
    for at, name in enumerate(["window_start", "window_end"], 1):
        table = table.set_column(at, name, table[name].cast(pa.int64()))
    return rows_of(table)


def _without_end(rows: Any) -> Any:
    """Return results before the last watermark."""
    return [row for row in rows if row[2] <= BEGIN + 170 * SECOND]


@pytest.mark.thorough
def test_a_later_stage_reads_filled_windows_in_time(spark: SparkSession, tmp_path: Path) -> None:
    """Its watermark waits for gaps that are filled when the next row of their key is known."""
    files(tmp_path / "in", batches(4))
    seconds = fill(streamed(spark, tmp_path / "in"), LINES)
    assert seconds.plan.query.results_in_time.behind == 11 * SECOND
    by_key = gw.stream_results(seconds, "seconds", keep=True).key_by("k")
    windows = by_key.window(gw.TumblingEventTimeWindows.of("20 seconds"))
    run_to_the_end(windows.with_outputs().aggregate(rows=gw.count()), tmp_path)
    assert gw.read_output(spark, tmp_path / "out", "late").count() == 0
    kept = gw.read_output(spark, tmp_path / "out", "stages/seconds/result")
    counts = kept.selectExpr("k", "window(window_start, '20 seconds').start AS start")
    wanted = {
        (row.k, row.start): row["count"] for row in counts.groupBy("k", "start").count().collect()
    }
    found = gw.read_output(spark, tmp_path / "out").collect()
    assert len(found) > 100
    assert all(row.rows == wanted[row.k, row.window_start] for row in found)


@pytest.mark.thorough
def test_an_aggregate_may_be_added_at_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1))
    by_key = gw.stream(streamed(spark, tmp_path / "in")).event_time("ts", WATERMARKS).key_by("k")
    windows = by_key.window_gapfill(WINDOWS, carry_forward="n", until="9 seconds").with_outputs()
    run_to_the_end(windows.aggregate(n=gw.count()), tmp_path)
    files(tmp_path / "in", batches(2))
    more = {"n": gw.count(), "v": gw.count("v")}
    places = tmp_path / "out", tmp_path / "state"
    options: Any = {"begin_empty": ["v"], "trigger": {"availableNow": True}}
    gw.write_stream(windows.aggregate(**more), *places, **options).awaitTermination()
    rows = gw.read_output(spark, tmp_path / "out").where("v = 0 AND n > 0")
    assert rows.count() > 100
    other = by_key.window_gapfill(WINDOWS, until="9 seconds").with_outputs().aggregate(**more)
    with pytest.raises(StateMismatchError, match=r"gaps\.carry_forward"):
        run_to_the_end(other, tmp_path)


@pytest.mark.thorough
def test_other_keys_at_a_restart_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(1))
    source = streamed(spark, tmp_path / "in")
    run_to_the_end(fill(source, GIVEN), tmp_path)
    run_to_the_end(fill(source, GIVEN | {"keys": [999, 3, 1]}), tmp_path)  # the same keys
    with pytest.raises(StateMismatchError, match=r"gaps\.keys was 3, \w+, is 2, \w+"):
        run_to_the_end(fill(source, GIVEN | {"keys": [1, 3]}), tmp_path)
    with pytest.raises(StateMismatchError, match=r"gaps\.until was not there, is 1 min"):
        run_to_the_end(fill(source, {"until": "1 minute"}), tmp_path)


def test_a_stream_needs_to_know_when_keys_end(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = streamed(spark, tmp_path / "in")
    with pytest.raises(UnsupportedQueryError, match="until='1 day'"):
        fill(source, {})
    with pytest.raises(UnsupportedQueryError, match="cannot be interpolated"):
        fill(source, GIVEN | {"interpolate": "total"})
