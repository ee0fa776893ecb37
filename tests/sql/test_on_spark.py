"""What Spark would compute in its own way: conditions of joins, expressions of many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from gpu_windows.errors import QueryError
from gpu_windows.sql.files import table_reader
from tests.planning.queries import rows_of
from tests.sql.texts import MONOTONOUS, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NEAR = "f.k = g.k AND f.ts BETWEEN g.ts AND g.ts + INTERVAL '1' HOUR"
ZONE = "spark.sql.session.timeZone"


def table() -> pa.Table:
    times = pa.array([0, 60, 120], pa.timestamp("us", "UTC")).cast(pa.int64())
    at = pa.array([value.as_py() * 1_000_000 for value in times]).cast(pa.timestamp("us", "UTC"))
    return pa.table({"k": ["a", "a", "b"], "ts": at, "v": [1, 2, 3], "s": ["x", "Y", "z"]})


@pytest.mark.thorough
def test_conditions_of_one_side_are_computed_by_spark(spark: SparkSession) -> None:
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "Asia/Tokyo")  # where it is nine hours later
    try:
        rows = spark.createDataFrame(table())
        frame = rows.selectExpr("*", "CAST(ts AS TIMESTAMP_NTZ) AS clock")  # in that zone
        for moved, plain in (
            ("f.ts > TIMESTAMP '1970-01-01 09:00:30'", "f.v > 1"),
            ("(f.v = g.v OR f.ts > TIMESTAMP '1970-01-01 09:01:30')", "f.v = g.v"),
            ("f.s RLIKE '[xY]' AND f.v > g.v", "f.v > g.v"),
            (
                "CASE WHEN f.v = 1 AND g.v = 1 THEN TIMESTAMP '1970-01-01 09:00:00' ELSE f.ts END "
                ">= g.ts + INTERVAL '1' MINUTE",
                "f.v > g.v",
            ),
            ("f.clock > g.clock", "f.ts > g.ts"),
            ("f.clock - INTERVAL '1' SECOND > g.clock", "f.ts - INTERVAL '1' SECOND > g.ts"),
            ("f.clock > g.ts AND g.clock < f.clock", "f.ts > g.ts"),
            (
                "CASE WHEN f.v = g.v THEN TIMESTAMP '1970-01-01 09:09:00' ELSE f.clock END > g.ts",
                "(f.v = g.v OR f.ts > g.ts)",
            ),
        ):
            text = f"SELECT f.v, g.v AS w FROM t AS f LEFT JOIN u AS g ON {NEAR} AND "
            of = gw.stream(frame).event_time("ts", MONOTONOUS)
            found = gw.sql(text + moved, t=of, u=of).result().toArrow()
            wanted = gw.sql(text + plain, t=stream(table()), u=stream(table())).result()
            assert rows_of(found) == rows_of(wanted), moved
    finally:
        spark.conf.set(ZONE, str(before))


@pytest.mark.parametrize(
    "text", ["sum(n)", "row_number() over (order by n)", "explode(array(n))", "1 + max(n)"]
)
def test_expressions_are_of_one_row(spark: SparkSession, text: str) -> None:
    frame = spark.createDataFrame(table()).withColumnRenamed("v", "n")
    of = gw.stream(frame).event_time("ts", MONOTONOUS)
    windowed = of.key_by("k").window(gw.TumblingEventTimeWindows.of("1 hour"))
    outputs = windowed.with_outputs().aggregate(n=gw.count())
    with pytest.raises(QueryError, match=r"an expression gives a value for each row: .*got "):
        outputs.select("k", x=text)
    with pytest.raises(QueryError, match=r"an expression gives a value for each row: .*got "):
        of.with_columns(x=text)
    with pytest.raises(QueryError, match="Spark computes"):
        outputs.select(where=f"{text} > 1")
    assert outputs.select("k", x="n + 1").result().columns == ["k", "x"]


def test_conditions_on_changes_are_refused(spark: SparkSession) -> None:
    of = gw.stream(spark.createDataFrame(table())).event_time("ts", MONOTONOUS)
    tops = of.key_by("k").with_outputs().top(2, "v", columns=["v"])
    with pytest.raises(QueryError, match="filtered by keys and number alone"):
        tops.select("k", where="length(k) > 0 AND v > 1")
    assert tops.select("k", where="upper(k) = 'B' AND row_number = 1").result().count() == 1
    rates = spark.readStream.format("rate").load()  # on a stream rows are taken back, too
    changing = (
        gw.stream(rates).key_by("value").with_outputs().top(1, "timestamp", columns=["timestamp"])
    )
    with pytest.raises(QueryError, match="select change, too, got value"):
        changing.select("value")
    assert changing.select("value", "change").selections


def test_files_have_columns_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException

    pq.write_table(pa.table({"a`b": [1], "c.d": [2]}), tmp_path / "rows.parquet")
    with table_reader(on_spark=True) as read:
        assert read(tmp_path / "rows.parquet").collect() == [(1, 2)]
    assert spark.range(1).count() == 1
    with pytest.raises(AnalysisException, match="nowhere"):  # what Spark logs, it still can
        spark.range(1).selectExpr("nowhere")
