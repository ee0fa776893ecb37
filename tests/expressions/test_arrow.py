"""Expressions over Arrow tables give what Spark gives, values and types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_windows.errors import ColumnTypeError, ExpressionError, GpuWindowsError, SqlError
from gpu_windows.expressions.arrow import compute, evaluate_condition
from gpu_windows.spark_glue.columns.types import to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.table(
    {
        "a": pa.array([1, -7, None, 4], pa.int64()),
        "i": pa.array([1, 2, 3, None], pa.int32()),
        "x": pa.array([1.5, np.nan, -0.0, None], pa.float64()),
        "y": pa.array([np.nan, np.nan, 0.0, 1.0], pa.float64()),
        "s": pa.array(["5", "b%", None, "Ax"], pa.string()),
        "ok": pa.array([True, None, False, True], pa.bool_()),
        "ts": pa.array([0, 1, -5_000_000, None], pa.int64()).cast(pa.timestamp("us", "UTC")),
    }
)

#: What Arrow computes alike.
EXPRESSIONS = (
    *("a", "A + 1", "a - i", "i + 1", "i * i", "-a", "a / 2", "a / i", "a % 3", "a DIV 2"),
    *("x + i", "x * 2.5", "a + 1.5", "a * 1.25", "i - 0.5", "1e2 + a", "5000000000", "0.125"),
    *("x = y", "x <> y", "x < y", "x <= y", "x > y", "x >= y", "x <=> y", "a <=> NULL"),
    *(
        "x > 1",
        "a >= 1.5",
        "s = 'b%'",
        "s < 'a'",
        "a = NULL",
        "ts > TIMESTAMP '1970-01-01 00:00:00'",
    ),
    *("ok AND a > 0", "ok OR a > 0", "NOT ok", "ok IS TRUE", "a IS NULL", "a IS NOT NULL"),
    *("a IN (1, 4)", "a NOT IN (1, NULL)", "a BETWEEN 0 AND 3", "NOT a BETWEEN i AND 9"),
    *("CASE WHEN a > 0 THEN 'p' WHEN ok THEN s END", "CASE i WHEN 1 THEN 10 ELSE a END"),
    *(
        "IF(ok, a, i)",
        "COALESCE(a, i, 0)",
        "NULLIF(a, 4)",
        "COALESCE(x, 0)",
        "CASE i WHEN 2 THEN 1.5 END",
    ),
    *(
        "CAST(a AS INT)",
        "CAST(x AS FLOAT)",
        "CAST(a AS STRING)",
        "CAST(i AS DECIMAL(12, 2))",
        "a::double",
    ),
    *(
        "UPPER(s)",
        "lower(s)",
        "LENGTH(s)",
        "ABS(a)",
        "s || 'z'",
        "CONCAT(s, '-', s)",
        "s LIKE '%x'",
    ),
    *(
        "ts + INTERVAL '1' HOUR",
        "ts - INTERVAL '0.5' SECOND",
        "ts + INTERVAL '1:30' MINUTE TO SECOND",
    ),
    *(
        "(a + 1) * 2",
        "true",
        "NULL AND ok",
        "'it''s'",
        "FLOOR(CAST(a AS DOUBLE) / 2)",
        "CEIL(a / 3)",
    ),
)


def _shown(values: list[Any]) -> list[str]:
    return ["-0.0" if repr(value) == "-0.0" else repr(value) for value in values]


def test_values_and_types_are_those_of_spark(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS)
    columns = [f"{text} AS c{place}" for place, text in enumerate(EXPRESSIONS)]
    chosen = frame.selectExpr(*columns)
    wanted, types = chosen.toArrow(), to_arrow_schema(chosen.schema)
    for place, text in enumerate(EXPRESSIONS):
        ours, theirs = compute(text, ROWS), wanted.column(place)
        if not pa.types.is_null(theirs.type):
            assert ours.type == types.field(place).type, text
        assert _shown(ours.to_pylist()) == _shown(theirs.to_pylist()), text


@pytest.mark.parametrize("text", ["1 / 0", "a / 0", "a % 0", "i + 2147483647", "CAST(s AS INT)"])
def test_what_has_no_value_in_spark_has_none_here(text: str) -> None:
    with pytest.raises(ExpressionError, match="must have a value for each row"):
        compute(text, ROWS)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("zz + 1", "there is no such column; there are a, i, x"),
        ("foo(a)", "foo is not covered over Arrow tables"),
        ("soundex(s)", "soundex is not covered over Arrow tables"),
        ("s + 1", "this takes numbers, got string"),
        ("a +", "cannot be parsed"),
        ("a = 'x'", "over Arrow tables these types have no common type"),
        ("SUM(a)", "sum is not covered"),
        ("(SELECT 1)", "subquery is not covered"),
        ("a AND ok", "this must be true or false, got int64"),
        ("", "SQL must be a string that is not empty"),
        ("ts + INTERVAL '1' MONTH", "months have no fixed length"),
    ],
)
def test_what_is_not_covered_is_refused(text: str, rule: str) -> None:
    with pytest.raises(SqlError, match=rule):
        compute(text, ROWS)


def test_a_refusal_tells_the_place() -> None:
    with pytest.raises(SqlError) as caught:
        compute("a > 1 AND\n  foo(s)", ROWS)
    assert (caught.value.line, caught.value.position) == (2, 3)
    assert "(line 2, position 3 of the SQL)" in str(caught.value)


def test_conditions_are_true_or_false() -> None:
    assert ROWS.filter(evaluate_condition("a > 0 AND NOT ok IS NULL", ROWS)).num_rows == 2
    assert ROWS.filter(evaluate_condition("NULL", ROWS)).num_rows == 0
    with pytest.raises(ColumnTypeError, match="a condition is true or false"):
        evaluate_condition("a + 1", ROWS)


def test_names_differ_in_more_than_case() -> None:
    twice = pa.table({"v": [1], "V": [2], "w": [3]})
    assert compute("V + W", twice).to_pylist() == [5]
    either = pa.table({"vv": [1], "VV": [2]})
    with pytest.raises(SqlError, match="the name is ambiguous: vv or VV"):
        compute("Vv", either)


def test_no_expression_ends_in_an_internal_error() -> None:
    words = "a x s ok ts NULL 'z' 1 2.5 ( ) + / = < AND NOT IN CASE WHEN THEN END IS LIKE , CAST AS"
    rng = np.random.default_rng(22)
    for _ in range(400):
        text = " ".join(rng.choice(words.split(), rng.integers(1, 7)))
        try:
            compute(text, ROWS)
        except GpuWindowsError:
            continue
