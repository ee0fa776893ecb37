"""Aggregates over frames on Spark batch: what the local runner gives, and Spark's own OVER."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.window import Window, WindowSpec

import gpu_windows as gw
from tests.lanes import quick
from tests.operators.over.queries import (
    AGGREGATES,
    WATERMARKS,
    Case,
    assert_same,
    range_of,
    result,
    rows_of,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ROWS = rows_of(11, 400, keys=4, ticks=3_000)
FRAMES: dict[str, gw.typing.Frame] = {
    "time before": range_of(40),
    "time around": range_of(40, 25),
    "time to come": range_of(-1, 200),
    "all up to now": range_of(None),
    "all from now on": range_of(0, None),
    "rows before": gw.Rows(5),
    "rows around": gw.Rows(2, 3),
    "a row before": gw.Rows(1, -1),
    "rows up to now": gw.Rows(),
}
#: What Spark's aggregates make of it, exactly.
SPARKS: dict[str, Any] = {
    "n": lambda: F.count(F.lit(1)),
    "known": lambda: F.count("i"),
    "total": lambda: F.sum("i"),
    "sum_x": lambda: F.sum("x"),
    "least": lambda: F.min("x"),
    "greatest": lambda: F.max("i"),
    "spread": lambda: F.stddev("x"),
}


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS.to_pandas(), _schema()).repartition(3)


def _schema() -> str:
    return "k string, ts timestamp, i long, x double, b boolean, d decimal(9,2), seq long"


def ours(frame: DataFrame, aggregates: dict[str, Any], **options: Any) -> pa.Table:
    over = gw.stream(frame).event_time("ts", WATERMARKS).key_by("k").over()
    given = over.arrival_order("seq").options(**options).aggregate(["seq"], **aggregates)
    return given.toArrow().sort_by("seq")


@pytest.mark.parametrize("name", quick(FRAMES, "time before", "rows around"))
def test_batch_is_the_local_runner(frame: DataFrame, name: str) -> None:
    made = {each: aggregate.over(FRAMES[name]) for each, aggregate in AGGREGATES.items()}
    expected = result(Case(ROWS, made))
    assert_same(ours(frame, made).cast(expected.schema), expected)


@pytest.mark.parametrize("name", quick(FRAMES, "time around", "a row before"))
def test_batch_is_sparks_own_over(frame: DataFrame, name: str) -> None:
    made = {each: AGGREGATES[each].over(FRAMES[name]) for each in SPARKS}
    over = _window(FRAMES[name])
    columns = [make().over(over).alias(each) for each, make in SPARKS.items()]
    expected = frame.select("k", "ts", "seq", *columns).toArrow().sort_by("seq")
    assert_same(ours(frame, made).cast(expected.schema), expected)


def _window(frame: gw.typing.Frame) -> WindowSpec:
    low, high = max(frame.lower, -(1 << 63)), min(frame.upper, (1 << 63) - 1)
    keyed = Window.partitionBy("k")
    if frame.in_time:
        return keyed.orderBy(F.unix_micros("ts")).rangeBetween(low, high)
    return keyed.orderBy("ts", "seq").rowsBetween(low, high)


def test_numbers_of_rows_are_sparks(frame: DataFrame) -> None:
    made = {"number": gw.row_number(), "rank": gw.rank(), "dense": gw.dense_rank(),
            "before": gw.lag("i", 2), "after": gw.lead("x")}  # fmt: skip
    by_time, by_row = (
        Window.partitionBy("k").orderBy("ts"),
        Window.partitionBy("k").orderBy("ts", "seq"),
    )
    columns = [
        F.row_number().over(by_row).cast("long").alias("number"),
        F.rank().over(by_time).cast("long").alias("rank"),
        F.dense_rank().over(by_time).cast("long").alias("dense"),
        F.lag("i", 2).over(by_row).alias("before"),
        F.lead("x").over(by_row).alias("after"),
    ]
    expected = frame.select("k", "ts", "seq", *columns).toArrow().sort_by("seq")
    assert_same(ours(frame, made).cast(expected.schema), expected)


def test_expressions_and_all_columns(frame: DataFrame) -> None:
    keyed = gw.stream(frame).event_time("ts", WATERMARKS).key_by("k")
    found = keyed.over(gw.Range("1 second")).aggregate(double=gw.sum(_doubled()))
    assert found.columns == ["k", "ts", "i", "x", "b", "d", "seq", "double"]
    assert found.schema["ts"].dataType.simpleString() == "timestamp"
    assert found.count() == len(ROWS)


def _doubled() -> Column:
    return F.col("i") * 2
