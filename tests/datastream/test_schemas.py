"""What functions declare: schemas of Arrow and Spark, and DDL, which is read as Spark reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark_types

import gpu_windows as gw
from gpu_windows.datastream.schemas import read_schema
from gpu_windows.errors import InvalidFunctionError, QueryError, SqlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = (
    "total DOUBLE",
    "a LONG, b SHORT, c BYTE, d REAL, e NUMERIC(5,1), f INTEGER, g DEC, h bigint",
    "b ARRAY<STRUCT<x: INT, y: DECIMAL(10,2)>>, c MAP<STRING, BIGINT> NOT NULL",
    "d TIMESTAMP_NTZ, `e f` STRING COMMENT 'as it came', t TIMESTAMP_LTZ, u TIMESTAMP",
    "a CHAR(3), b VARCHAR(7), v BINARY, dd DATE, bb BOOLEAN NOT NULL",
    "s STRUCT<x INT, y STRUCT<z: STRING>>",
    "a: int, b: long, d INTERVAL DAY TO SECOND",
)
ROWS = pa.table({"k": ["a", "a", "b"], "v": [1.0, 2.0, 4.0]})


class Sum(gw.functions.ProcessWindowFunction):
    """The sum of the rows of a window."""

    def process(self, key: Any, context: Any, rows: Any) -> Any:
        del key, context
        yield {"total": sum(rows["v"].to_pylist()), "n": len(rows)}


@pytest.mark.parametrize("text", TEXTS)
def test_ddl_is_what_spark_reads(spark: SparkSession, text: str) -> None:
    del spark  # whose parser reads it
    assert read_schema(text) == read_schema(spark_types.StructType.fromDDL(text))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "at least one column"),
        ("a", "is DDL|be DDL"),
        ("INT", "a name and a type"),
        ("a FOO", "must be DDL"),
        ("a INT,", "must be DDL"),
        ("a INT) COMMENT 'x' --", "must be DDL"),
        ("a INT); DROP TABLE x (b INT", "must be DDL"),
        ("a INT, PRIMARY KEY (a)", "PRIMARY KEY .line 1"),
        ("a INT DEFAULT 3", "NOT NULL alone"),
        ("a INT,\nb ARRAY", r"such as ARRAY<INT>, got ARRAY \(line 2, position 1 "),
        ("a DECIMAL(40, 2)", "up to 38 digits"),
        ("a TIMESTAMP(3)", "does not support this type"),
        ("a JSON", r"does not support this type, got JSON \(line 1, position 1"),
    ],
)
def test_other_texts_are_refused_with_their_place(text: str, rule: str) -> None:
    with pytest.raises(SqlError, match=rule):
        read_schema(text)


def test_other_values_are_refused() -> None:
    for wrong in (None, ["total"], {"total": "double"}, pa.float64(), spark_types.DoubleType()):
        with pytest.raises(QueryError, match="a StructType or DDL"):
            read_schema(wrong)
    odd = spark_types.StructType().add("m", spark_types.YearMonthIntervalType())
    with pytest.raises(QueryError, match=r"no Arrow type that crosses, got interval.*month.*m"):
        read_schema(odd)


def test_a_function_declares_by_any_of_them() -> None:
    windows = gw.stream(ROWS).key_by("k").window(gw.GlobalWindows.create())
    windows = windows.trigger(gw.EndOfStreamTrigger())
    fields = [
        spark_types.StructField("total", spark_types.DoubleType()),
        spark_types.StructField("n", spark_types.LongType()),
    ]
    outputs: tuple[Any, ...] = (
        pa.schema({"total": pa.float64(), "n": pa.int64()}),
        "total DOUBLE, n BIGINT",
        spark_types.StructType(fields),
    )
    found = [windows.process(Sum(), ["v"], output=each).to_pylist() for each in outputs]
    assert found[0] == found[1] == found[2]
    assert [(row["k"], row["total"], row["n"]) for row in found[0]] == [
        ("a", 3.0, 2),
        ("b", 4.0, 1),
    ]


class Total(gw.functions.ProcessWindowFunction):
    """Nothing where something is declared."""

    def process(self, key: Any, context: Any, rows: Any) -> Any:
        del key, context, rows
        yield {"total": None}


class Totals(gw.functions.VectorWindowFunction):
    """The same, of many windows at once."""

    def process(self, batch: gw.typing.WindowBatch) -> Any:
        return pa.table({"total": pa.nulls(len(batch), pa.float64())})


@pytest.mark.parametrize("function", [Total(), Totals()])
def test_a_null_is_refused_where_a_column_is_declared_not_null(function: Any) -> None:
    windows = gw.stream(ROWS).key_by("k").count_window(1)
    assert windows.process(function, ["v"], output="total DOUBLE")["total"].null_count == 3
    rule = r"Total.* declared NOT NULL.*, got None .*total"
    with pytest.raises(InvalidFunctionError, match=rule):
        windows.process(function, ["v"], output="total DOUBLE NOT NULL")
