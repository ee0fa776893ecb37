"""Collated text (Spark 4): carried as it is, and refused before anything compares its bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import ArrayType, StringType, StructType

import gpu_windows as gw
from gpu_windows.errors import ColumnTypeError
from gpu_windows.spark_glue.columns.types import to_arrow_schema, to_spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IN_ORDER = gw.WatermarkStrategy.for_monotonous_timestamps()
TUMBLING = gw.TumblingEventTimeWindows.of("10 seconds")
LOWER = StringType("UTF8_LCASE")


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Two texts that are equal but for their case, and one more."""
    return spark.sql(
        "SELECT col1 COLLATE UTF8_LCASE AS c, col1 AS k, timestamp_seconds(col2) AS ts, col2 AS v, "
        "named_struct('c', col1 COLLATE UTF8_LCASE) AS s, array(col1 COLLATE UTF8_LCASE) AS a "
        "FROM VALUES ('a', 1), ('A', 2), ('b', 3)"
    )


def timed(frame: Any, time: str = "ts") -> gw.typing.TimedStream:
    return gw.stream(frame).event_time(time, IN_ORDER)


def windowed(frame: DataFrame, *keys: str) -> gw.typing.WindowedStream:
    return timed(frame).key_by(*keys).window(TUMBLING)


def right(frame: DataFrame) -> DataFrame:
    return frame.withColumnsRenamed({"ts": "t2", "v": "w"})


def _joined(frame: DataFrame, key: str) -> Any:
    return timed(frame).key_by(key).interval_join(timed(right(frame), "t2").key_by(key))


def _both(frame: DataFrame) -> Any:
    return timed(frame).key_by("k").interval_join(timed(right(frame), "t2").key_by("k"))


#: What compares it, and the name of the column.
COMPARED: dict[str, Callable[[DataFrame], Any]] = {
    "key": lambda f: windowed(f, "c").aggregate(n=gw.count()),
    "second key": lambda f: windowed(f, "k", "c").aggregate(n=gw.count()),
    "key in a struct": lambda f: windowed(f, "s").aggregate(n=gw.count()),
    "key of an expression": lambda f: windowed(f.withColumn("c", F.upper("c")), "c").aggregate(
        n=gw.count()
    ),
    "grouping sets": lambda f: windowed(f, "k", "c").grouping_sets(["k"], ["c"]).aggregate(
        n=gw.count()
    ),
    "distinct": lambda f: windowed(f, "k").aggregate(n=gw.count_distinct("c")),
    "sketch": lambda f: windowed(f, "k").aggregate(n=gw.approx_count_distinct("c")),
    "list of distinct": lambda f: windowed(f, "k").aggregate(n=gw.collect_list("c").distinct()),
    "top": lambda f: windowed(f, "k").top(1, "c"),
    "top of keys": lambda f: timed(f).key_by("k").top(1, "c"),
    "top_keys by": lambda f: windowed(f, "k").top_keys(1, "f").aggregate(f=gw.first("c")),
    "top_keys per": lambda f: windowed(f, "k").top_keys(1, "n", per="f").aggregate(
        f=gw.first("c"), n=gw.count()
    ),
    "arrival_order": lambda f: windowed(f, "k").arrival_order("c").aggregate(n=gw.first("v")),
    "partition of OVER": lambda f: timed(f).key_by("c").over(gw.Rows()).aggregate(n=gw.count()),
    "distinct over": lambda f: timed(f).key_by("k").over(gw.Rows()).aggregate(
        n=gw.count_distinct("c")
    ),
    "interval join": lambda f: _joined(f, "c").between("-1 h", "1 h").select(["v"], ["w"]),
    "temporal join": lambda f: timed(f).key_by("c").temporal_join(
        timed(right(f), "t2").key_by("c")
    ).select(["v"], ["w"]),
    "window join": lambda f: timed(f).key_by("c").join(timed(right(f), "t2").key_by("c")).window(
        TUMBLING
    ).select(["v"], ["w"]),
    "condition of a join": lambda f: _both(f).between("-1 h", "1 h").select(
        ["c"], ["w"], where=pc.equal(pc.field("left_c"), "a")
    ),
    "pattern": lambda f: timed(f).key_by("k").match_recognize("A B", {"B": "B.c = A.c"}).measures(
        v="B.v"
    ),
}  # fmt: skip


@pytest.mark.parametrize("asked", COMPARED.values(), ids=COMPARED)
def test_what_compares_collated_text_is_refused(
    rows: DataFrame, asked: Callable[[DataFrame], Any]
) -> None:
    with pytest.raises(ColumnTypeError, match="collated strings cannot be keys, orders") as caught:
        asked(rows)
    assert caught.value.value == "UTF8_LCASE"
    assert caught.value.column is not None
    assert "'UTF8_BINARY')" in str(caught.value)


@pytest.mark.parametrize("collation", ["UNICODE", "UNICODE_CI", "UTF8_BINARY_RTRIM", "fr_CI_AI"])
def test_every_collation_is_refused_but_that_of_bytes(rows: DataFrame, collation: str) -> None:
    made = rows.withColumn("k", F.expr(f"v::STRING COLLATE {collation}"))
    with pytest.raises(ColumnTypeError, match=re.escape("compare its bytes, collate(`k`")):
        windowed(made, "k").aggregate(n=gw.count())
    made = rows.withColumn("k", F.expr("c COLLATE UTF8_BINARY"))
    assert windowed(made, "k").aggregate(n=gw.count()).count() == 3


def test_the_remedies_that_are_named_group_as_they_say(rows: DataFrame) -> None:
    with pytest.raises(ColumnTypeError) as caught:
        windowed(rows, "c").aggregate(n=gw.count())
    said = re.search(r"bytes, (.*), or by the collation, (.*), got", str(caught.value))
    assert said is not None
    by_bytes, alike = (
        timed(rows.withColumn("x", F.expr(text))).key_by("x").window(TUMBLING)
        for text in said.groups()
    )
    assert sorted(row["n"] for row in by_bytes.aggregate(n=gw.count()).collect()) == [1, 1, 1]
    groups = sorted(row["n"] for row in alike.aggregate(n=gw.count()).collect())
    assert groups == sorted(row["count"] for row in rows.groupBy("c").count().collect()) == [1, 2]


def test_lower_case_is_equal_where_the_collation_says_so(spark: SparkSession) -> None:
    with pytest.raises(ColumnTypeError) as caught:
        windowed(
            spark.sql("SELECT 'a' COLLATE UTF8_LCASE AS c, current_timestamp() AS ts"), "c"
        ).aggregate(n=gw.count())
    said = re.search(r"by the collation, (.*), got", str(caught.value))
    assert said is not None
    points = [*range(0x20, 0x2000), *range(0x2C00, 0x2E00), *range(0xA640, 0xAC00)]
    texts = [*map(chr, points), "ΟΔΟΣ", "οδος", "οδοσ", "İ", "i̇", "straße", "STRASSE"]
    frame = spark.createDataFrame([(text,) for text in texts], "c string")
    made = frame.selectExpr("c COLLATE UTF8_LCASE AS c").select("c", F.expr(said[1]).alias("x"))
    pairs = made.distinct().count(), made.select("c").distinct().count()
    assert pairs[0] == pairs[1] == made.select("x").distinct().count() < len(texts)


def test_collated_text_that_is_carried_keeps_its_type(rows: DataFrame) -> None:
    over = timed(rows).key_by("k").over(gw.Rows()).aggregate(["c", "a"], before=gw.lag("c"))
    assert over.schema["c"].dataType == over.schema["before"].dataType == LOWER
    assert over.schema["a"].dataType == ArrayType(LOWER)
    assert sorted(row["c"] for row in over.collect()) == ["A", "a", "b"]
    aggregates = {"f": gw.first("c"), "l": gw.collect_list("c"), "n": gw.count("c")}
    found = windowed(rows, "k").aggregate(**aggregates, x=gw.arg_max("c", "v"))
    assert found.schema["f"].dataType == found.schema["x"].dataType == LOWER
    assert found.schema["l"].dataType == ArrayType(LOWER)
    assert sorted(row["f"] for row in found.collect()) == ["A", "a", "b"]
    pairs = _both(rows).between("-1 h", "1 h").select(["c"], ["c"])
    assert [field.dataType for field in pairs.schema if "c" in field.name] == [LOWER, LOWER]
    assert pairs.count() == 3
    top = windowed(rows, "k").top(1, "v", columns=["c"])
    assert top.schema["c"].dataType == LOWER


def test_streams_refuse_it_when_the_query_is_built(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load().selectExpr(
        "value::STRING COLLATE UTF8_LCASE AS c", "timestamp AS ts", "value AS v"
    )  # fmt: skip
    with pytest.raises(ColumnTypeError, match="UTF8_LCASE"):
        windowed(rate, "c").aggregate(n=gw.count())
    assert (
        windowed(rate.withColumn("k", F.lit(1)), "k")
        .with_outputs()
        .aggregate(f=gw.first("c"))
        .is_streaming
    )


def test_collations_go_to_arrow_and_back() -> None:
    schema = StructType().add("c", LOWER).add("s", StructType().add("x", LOWER)).add("t", "string")
    schema = schema.add("a", ArrayType(LOWER))
    found = to_arrow_schema(schema)
    assert found.equals(
        pa.schema(
            {
                "c": pa.string(),
                "s": pa.struct({"x": pa.string()}),
                "t": pa.string(),
                "a": pa.list_(pa.string()),
            }
        )
    )
    assert to_spark_schema(found) == schema
