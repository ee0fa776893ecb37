"""Records of Kafka: what they hold, and that a micro-batch that comes again has the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.spark_glue.files.kafka_records import (
    MICRO_BATCH,
    PLANNED,
    QUERY,
    ROW,
    Records,
    as_json,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.conftest import TimeZone

PAGE = Path(__file__).parents[2] / "docs" / "kafka.md"
ROWS = """
    SELECT k, TIMESTAMP '2024-03-31 00:30:00Z' AS at, IF(v = 2, NULL, v) AS v
    FROM VALUES (1, 1), (1, 2), (1, 1), (2, 1), (NULL, 1) AS t(k, v)
"""
JSON = Records(("k", "at"), None, as_json, as_json)


def read(records: DataFrame) -> list[Any]:
    """Keys, headers and values, in some order."""
    found = []
    for row in records.collect():
        headers = {each["key"]: each["value"].decode() for each in row.headers}
        found.append((row.key, headers[QUERY], headers[MICRO_BATCH], headers[ROW], row.value))
    return sorted(found, key=repr)


def test_what_records_hold(spark: SparkSession) -> None:
    found = read(JSON(spark.sql(ROWS), "q", 7))
    assert [row[1:4] for row in found if json.loads(row[0])["k"] == 1] == [
        ("q", "7", "1"),
        ("q", "7", "2"),
        ("q", "7", "3"),
    ]
    assert json.loads(found[0][0]) == {"k": 1, "at": "2024-03-31T00:30:00.000000Z"}
    values = [json.loads(row[4]) for row in found]
    assert {"k": None, "at": "2024-03-31T00:30:00.000000Z", "v": 1} in values
    assert sorted(v["v"] or 0 for v in values if v["k"] == 1) == [0, 1, 1]


def test_the_same_rows_are_the_same_records(spark: SparkSession, time_zone: TimeZone) -> None:
    """Whatever order and partitions they come in, and wherever the session is."""
    rows = spark.sql(ROWS).cache()
    wanted = read(JSON(rows, "q", 7))
    assert read(JSON(rows.orderBy("v").repartition(3, "v"), "q", 7)) == wanted
    with time_zone("Asia/Kathmandu"):
        assert read(JSON(rows.coalesce(1), "q", 7)) == wanted


def test_records_of_a_key_are_in_the_order_of_rows(spark: SparkSession) -> None:
    rows = spark.range(100).selectExpr("id % 3 AS k", "100 - id AS v").coalesce(1)
    found = Records(("k",), None, as_json, as_json)(rows, "q", 0).collect()
    for key in range(3):
        values = [json.loads(row.value)["v"] for row in found if json.loads(row.key)["k"] == key]
        assert values == sorted(values, reverse=True)


def test_own_encodings_and_tombstones(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    def text(row: Any) -> Any:
        return F.concat_ws("|", row["k"].cast("string"), row["v"].cast("string"))

    rows = spark.sql("SELECT 1 AS k, 2 AS v, 'delete' AS change UNION ALL SELECT 2, 3, 'insert'")
    made = Records(("k",), "change", lambda row: row["k"].cast("string"), text)
    found = read(made(rows, "q", 0, F.col("change") == "delete"))
    assert [(row[0], row[4]) for row in found] == [("1", None), ("2", "2|3")]
    assert read(Records((), None, as_json, as_json)(rows, "q", 0))[0][0] == "{}"


def written(spark: SparkSession, *records: DataFrame) -> DataFrame:
    """What the source of Kafka would give of records that were written one after another."""
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    headers = "headers array<struct<key string, value binary>>"
    columns = f"key binary, value binary, {headers}, topic string, partition int, offset long"
    topic = spark.createDataFrame([], columns)
    for number, each in enumerate(records):
        place = F.monotonically_increasing_id() + F.lit(number << 40)
        topic = topic.union(
            each.select(
                F.col("key").cast("binary"),
                F.col("value").cast("binary"),
                "headers",
                F.lit("t"),
                F.lit(0),
                place,
            )
        )
    return topic


def test_repeats_are_dropped(spark: SparkSession) -> None:
    """Those of somebody else stay, and so do the records of another micro-batch or query."""
    rows = spark.sql(ROWS)
    once = JSON(rows, "q", 7)
    others = [JSON(rows, "q", 8), JSON(rows, "p", 7)]
    alien = rows.selectExpr("'a' AS key", "'b' AS value", "NULL AS headers")
    found = gw.drop_repeats(written(spark, once.limit(2), once, *others, alien))
    assert found.count() == 5 * 4
    with pytest.raises(errors.QueryError, match=r"includeHeaders.*got no headers"):
        gw.drop_repeats(found.drop("headers"))


@pytest.mark.thorough
def test_an_older_copy_of_a_checkpoint_repeats_nothing(spark: SparkSession) -> None:
    """It gives other results the same numbers; when they were planned tells them apart."""
    one, other = (spark.sql(f"SELECT 1 AS k, {v} AS v") for v in (10, 20))
    records = Records(("k",), None, as_json, as_json)
    before = records(one, "q", 7, planned_ms=1_000)
    copied = records(other, "q", 7, planned_ms=2_000)
    found = gw.drop_repeats(written(spark, before, before, copied, copied)).collect()
    assert [json.loads(row.value)["v"] for row in found] in ([10, 20], [20, 10])
    is_repeat = reader_of_the_page()
    seen: dict[str, Any] = {}
    rows = [*before.collect(), *copied.collect(), *before.collect(), *copied.collect()]
    told = [is_repeat(seen, row.key, [(e["key"], e["value"]) for e in row.headers]) for row in rows]
    assert told == [False, False, True, True]


def test_headers_say_when_a_micro_batch_was_planned(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 1 AS k")
    told = []
    for planned_ms in (1_700_000_000_123, None):
        made = Records(("k",), None, as_json, as_json)(rows, "q", 7, planned_ms=planned_ms)
        (row,) = made.collect()
        told.append({each["key"]: each["value"].decode() for each in row.headers}[PLANNED])
    assert told == ["1700000000123", ""]


def reader_of_the_page() -> Any:
    code = re.search(r"```python\n(def is_repeat.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code[1], names)  # noqa: S102
    return names["is_repeat"]


def test_the_reader_of_the_page(spark: SparkSession) -> None:
    rows, is_repeat = spark.sql(ROWS), reader_of_the_page()
    one, two = (JSON(rows, "q", number).collect() for number in (7, 8))
    seen: dict[str, Any] = {}
    kept = []
    for row in [*one[:3], *one[1:4], *one, *two, one[0], *two]:
        headers = [(each["key"], each["value"]) for each in row.headers]
        if not is_repeat(seen, row.key, headers):
            kept.append(row)
    assert kept == [*one, *two]
