"""Expressions of SQL whose meaning depends on types: what is written for Spark of them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp

from gpu_windows.errors import SqlError
from gpu_windows.expressions.spark_literals import SparkLiterals
from gpu_windows.sql.syntax.parse import parse_statement
from gpu_windows.sql.syntax.type_names import BOOLEAN, INTEGER, TIMESTAMP
from gpu_windows.sql.syntax.value_types import apply_type_rules, value_type

KINDS = {
    "i": INTEGER,
    "j": INTEGER,
    "ts": TIMESTAMP,
    "t2": TIMESTAMP,
    "b": BOOLEAN,
    "l": value_type(pa.list_(pa.int32())),
    "m": value_type(pa.map_(pa.string(), pa.timestamp("us", "UTC"))),
}


def written(expression: str) -> str:
    tree = parse_statement(f"SELECT {expression} AS x FROM t")

    def of_column(column: exp.Column) -> str | None:
        return KINDS.get(column.name.lower())

    return str(apply_type_rules(tree.expressions[0].this, of_column).sql(dialect=SparkLiterals))


@pytest.mark.parametrize(
    "dividend",
    "i|GREATEST(i, j)|LEAST(i, 1)|l[1]|ROUND(i)|ROUND(i, -1)|FLOOR(i)|CEIL(i)|SIGN(i)|ABS(i)"
    "|(i & 1)|IFNULL(GREATEST(i, j), 1)|MIN(i)|CARDINALITY(l)|EXTRACT(DAY FROM ts)".split("|"),
)
def test_whole_numbers_are_divided_without_a_remainder(dividend: str) -> None:
    assert written(f"{dividend} / 2").endswith(" DIV 2")


@pytest.mark.parametrize("dividend", ["f", "GREATEST(i, f)", "CAST(i AS DOUBLE)"])
def test_other_numbers_have_one(dividend: str) -> None:
    assert written(f"{dividend} / 2").endswith(" / 2")


def test_a_decimal_is_divided_by_an_int() -> None:
    assert written("i + 0.5 / 2") == "i + 0.5 / CAST(2 AS INT)"


DAY = "MAKE_INTERVAL(0, 0, 0, 0, 0, 0, 86400)"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ts + INTERVAL '1' DAY", f"ts + {DAY}"),
        ("INTERVAL '1' DAY + ts", f"ts + {DAY}"),
        ("ts + (INTERVAL '1' DAY)", f"ts + {DAY}"),
        ("ts + -INTERVAL '1' DAY", f"ts - {DAY}"),
        ("ts - (-INTERVAL '1' DAY)", f"ts + {DAY}"),
        ("m['t'] + INTERVAL '1' DAY", f"TRY_ELEMENT_AT(m, 't') + {DAY}"),
        ("ts + INTERVAL '1' HOUR", "ts + INTERVAL '1' HOUR"),
    ],
)
def test_a_day_has_24_hours_however_it_is_added(expression: str, expected: str) -> None:
    assert written(expression) == expected


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ("INTERVAL '1' MONTH + ts", "months have no fixed length"),
        ("ts + (INTERVAL '1' DAY + INTERVAL '2' DAY)", "one interval"),
        ("ts + CASE WHEN b THEN INTERVAL '1' DAY ELSE INTERVAL '2' DAY END", "one interval"),
        ("CAST(l[1] AS TIMESTAMP)", "convert a number to a time with TO_TIMESTAMP_LTZ"),
        ("CAST(ts AS BIGINT)", "a time can be cast to TIMESTAMP and DATE"),
    ],
)
def test_what_means_something_else_in_spark_is_refused(expression: str, rule: str) -> None:
    with pytest.raises(SqlError, match=rule):
        written(expression)
