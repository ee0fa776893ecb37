"""Windows without rows on batch DataFrames, however rows get to the tasks that fill."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from tests.lanes import quick
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import BEGIN, SECOND, WATERMARKS, batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = pa.concat_tables(batches(2))
WINDOWS = gw.TumblingEventTimeWindows.of("1 second")
MERGEABLE = {"n": gw.count(), "total": gw.sum("v"), "spread": gw.mean("v")}
#: Aggregates of which the first one needs all rows of a window.
OF_ROWS = {"n": gw.count_distinct("v"), "total": gw.sum("v"), "spread": gw.mean("v")}
START = dt.datetime.fromtimestamp(BEGIN // SECOND, dt.UTC)
END = START + dt.timedelta(seconds=90)
EVERY_KEY: dict[str, Any] = {"carry_forward": "total", "interpolate": "spread"}
GIVEN: dict[str, Any] = EVERY_KEY | {"keys": [1, 3, 998, 999], "start": START, "end": END}


def fill(source: Any, how: dict[str, Any]) -> gw.typing.WindowedStream:
    by_key = gw.stream(source).event_time("ts", WATERMARKS).key_by("k")
    windows = by_key.window_gapfill(WINDOWS, **how).arrival_order("seq")
    return windows.options(device="cpu", shards=7)


#: Results that are filled, aggregates, and who makes partials.
CASES: dict[str, tuple[Any, Any, Any]] = {
    f"{name}, {kind}": (how, aggregates, partials)
    for name, how in (("known", EVERY_KEY), ("given", GIVEN), ("until", {"until": "5 seconds"}))
    for kind, aggregates, partials in (
        ("kernels", MERGEABLE, "kernels"),
        ("spark", MERGEABLE, "spark"),
        ("rows", OF_ROWS, "auto"),
    )
}


@pytest.mark.parametrize("case", quick(CASES, "given, kernels", "given, rows", "known, spark"))
def test_a_batch(spark: SparkSession, case: str) -> None:
    """Partials of either, or rows that are shuffled by their keys."""
    how, aggregates, partials = CASES[case]
    local = fill(TABLE, how).aggregate(**aggregates)
    found = fill(spark.createDataFrame(TABLE), how).options(partials=partials)
    assert rows_of(found.aggregate(**aggregates).toArrow()) == rows_of(local)


@pytest.mark.thorough
def test_no_rows(spark: SparkSession) -> None:
    """Given keys have results though no task has a row."""
    nothing = spark.createDataFrame(TABLE.slice(0, 0))
    for aggregates in (MERGEABLE, OF_ROWS):
        found = fill(nothing, GIVEN).aggregate(**aggregates).toArrow()
        assert (len(found), {*found["n"].to_pylist()}) == (4 * 90, {0})
        assert fill(nothing, EVERY_KEY).aggregate(**aggregates).count() == 0


@pytest.mark.thorough
def test_scanned_files_and_written_results(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "in.parquet")
    local = fill(TABLE, GIVEN).aggregate(**MERGEABLE)
    outputs = fill(gw.scan(tmp_path / "in.parquet", spark), GIVEN).with_outputs()
    outputs.aggregate(**MERGEABLE).write_parquet(tmp_path / "out")
    written = gw.read_output(spark, tmp_path / "out").toArrow().select(local.column_names)
    assert rows_of(written.cast(local.schema)) == rows_of(local)


@pytest.mark.thorough
def test_keys_of_several_types(spark: SparkSession) -> None:
    """Keys with nulls, of several columns, given as a table."""
    table = TABLE.append_column("text2", pa.array(["x", None] * (len(TABLE) // 2)))
    given = pa.table({"text2": ["x", None, "new"], "k": pa.array([1, 2, None], pa.int64())})
    how = GIVEN | {"keys": given}
    found = []
    for source in (table, spark.createDataFrame(table)):
        by_key = gw.stream(source).event_time("ts", WATERMARKS).key_by("k", "text2")
        results = by_key.window_gapfill(WINDOWS, **how).aggregate(**MERGEABLE)
        found.append(rows_of(results if isinstance(results, pa.Table) else results.toArrow()))
    assert found[0] == found[1]
