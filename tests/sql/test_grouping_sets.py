"""GROUPING SETS of aggregates that need all values of a window, in windows of any kind."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from tests.spark_glue.stream_runs import files, run_to_the_end, streamed
from tests.sql.texts import INSTANT, MONOTONOUS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.table(
    {
        "a": pa.array(["x", "x", "y", None]),
        "b": pa.array(["p", "q", "p", "p"]),
        "v": pa.array([1, 1, 2, None], pa.int64()),
        "ts": pa.array([0, 1, 2, 3], INSTANT),
    }
)
DAY = "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY)"
BY = "GROUP BY window_start, window_end"
TEXT = f"SELECT a, b, COUNT(DISTINCT v) AS n, GROUPING_ID(b, a) AS g FROM {DAY} {BY}, CUBE (a, b)"
CUBE = [
    (None, "p", 0, 0), (None, "p", 2, 1), (None, "q", 1, 1), (None, None, 0, 2), (None, None, 2, 3),
    ("x", "p", 1, 0), ("x", "q", 1, 0), ("x", None, 1, 2), ("y", "p", 1, 0), ("y", None, 1, 2),
]  # fmt: skip
#: Texts, and their rows in any order.
RESULTS: dict[str, list[Any]] = {
    TEXT: CUBE,
    f"SELECT a, COUNT(DISTINCT a) AS n, SUM(DISTINCT v) AS s, GROUPING(a) AS g FROM {DAY} {BY}, "
    "ROLLUP (a)": [("x", 1, 1, 0), ("y", 1, 2, 0), (None, 0, None, 0), (None, 2, 3, 1)],
    f"SELECT b, COUNT(DISTINCT v) AS n FROM {DAY} {BY}, GROUPING SETS ((b), ()) "
    "HAVING COUNT(DISTINCT v) > 1": [("p", 2), (None, 2)],
    f"SELECT COUNT(DISTINCT v) AS n, GROUPING_ID() AS g FROM {DAY} {BY}, GROUPING SETS (())": [
        (2, 0)
    ],
    "SELECT b, COUNT(*) AS n FROM t GROUP BY SESSION(ts, INTERVAL '1' DAY), ROLLUP (b)": [
        ("p", 3), ("q", 1), (None, 4)
    ],
    "SELECT b, n, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER "
    f"BY n DESC) AS r FROM (SELECT window_start, window_end, b, COUNT(*) AS n FROM {DAY} {BY}, "
    "ROLLUP (b))) WHERE r <= 2": [("p", 3, 2), (None, 4, 1)],
}  # fmt: skip


@pytest.mark.parametrize("text", RESULTS)
def test_each_set_has_values_of_its_own(text: str) -> None:
    timed = gw.stream(ROWS).event_time("ts", MONOTONOUS)
    found = [tuple(row.values()) for row in gw.sql(text, t=timed).result().to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, RESULTS[text]))
    none = gw.sql(text, t=gw.stream(ROWS.slice(0, 0)).event_time("ts", MONOTONOUS)).result()
    assert len(none) == 0


def test_a_set_comes_once() -> None:
    timed = gw.stream(ROWS).event_time("ts", MONOTONOUS)
    text = f"SELECT COUNT(DISTINCT v) AS n FROM {DAY} {BY}, GROUPING SETS ((a), (a))"
    with pytest.raises(SqlError, match="each grouping set comes once"):
        gw.sql(text, t=timed)


def test_on_a_batch_of_spark_it_is_the_same(spark: SparkSession) -> None:
    timed = gw.stream(spark.createDataFrame(ROWS)).event_time("ts", MONOTONOUS)
    found = map(tuple, gw.sql(TEXT, t=timed).result().collect())
    assert sorted(map(repr, found)) == sorted(map(repr, CUBE))


@pytest.mark.thorough
def test_on_a_stream_it_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    later = datetime(1970, 1, 3, tzinfo=UTC)
    last = pa.table({"a": ["z"], "b": ["z"], "v": [1], "ts": pa.array([later], INSTANT)})
    files(tmp_path / "in", [ROWS.slice(0, 2), ROWS.slice(2), last])
    timed = gw.stream(streamed(spark, tmp_path / "in", ROWS)).event_time("ts", MONOTONOUS)
    run_to_the_end(gw.sql(TEXT, t=timed).options(shards=2).outputs(), tmp_path)
    found = map(tuple, gw.read_output(spark, tmp_path / "out").collect())
    assert sorted(map(repr, found)) == sorted(map(repr, CUBE))
