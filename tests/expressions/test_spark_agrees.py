"""Expressions over awkward values give what Spark gives in ANSI mode, or an error where it does."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from gpu_windows.errors import ExpressionError, SqlError
from gpu_windows.expressions.arrow import compute
from gpu_windows.spark_glue.columns.types import to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAN, _INF = float("nan"), float("inf")
_MAX, _MIN = 2**63 - 1, -(2**63)


def _decimals(*each: str, digits: int, scale: int) -> pa.Array:
    return pa.array([*map(Decimal, each), None], pa.decimal128(digits, scale))


_INSTANTS = [0, -1, 1_500_000, -1_500_000, 253_402_300_799_999_999, 86_400_000_000, None]
_NANOSECONDS = [0, 2_000, -1_000, 1_500_001_000, 10**18, 5_000, None]
_FINER = [0, 1_999, -1_000, 1_500_000_001, 10**18, 5, None]
_DAYS = [(1970, 1, 1), (1969, 12, 31), (2024, 2, 29), (1, 1, 1), (9999, 12, 31), (2000, 1, 1)]
_WRITTEN_DAYS = ["2024-02-29", "1969-1-5", "2024", "2024-12", " 2024-12-3T99", "0001-1-1", None]
_STRUCTS = [{"m": 5, "s": "p"}, None, {"m": None, "s": "q"}, *[{"m": 1, "s": ""}] * 4]
#: What is null, nothing, the most there is, or has no digits left.
ROWS = pa.table(
    {
        "m": pa.array([0, 1, -7, _MAX, _MIN, 2**53 + 1, None], pa.int64()),
        "n": pa.array([0, 1, -7, 2**31 - 1, -(2**31), 3, None], pa.int32()),
        "tiny": pa.array([0, 1, -7, 127, -128, 3, None], pa.int8()),
        "x": pa.array([0.0, -0.0, 2.5, _NAN, _INF, -1e300, None], pa.float64()),
        "y": pa.array([-0.0, 1.5, _NAN, _NAN, -_INF, 1e-300, 1.0], pa.float64()),
        "f": pa.array([0.1, 16777216.0, -2.5, _NAN, 0.0, 3.0, None], pa.float32()),
        "d": _decimals("0", "1.255", "-1.255", "0.005", "9999999.995", "-3", digits=10, scale=3),
        "e": _decimals(*"012345", digits=12, scale=2),
        "long": _decimals("0.1", "-0.7", "1e-18", "1e17", "3", "0.3", digits=38, scale=18),
        "s": pa.array(["", "straße", " x%y ", "a\nb", "Σίσυφος ΟΔΟΣ", "ŉﬁ İı", None]),
        "digits": pa.array([" 12 ", "+7", "-0", "007", "127", "\t-5\n", None]),
        "floats": pa.array(["1.5", " 1e3 ", "NaN", "-Infinity", "+.5", "2.5d", None]),
        "places": pa.array(["1.255", "-1.255", " 2 ", "1e1", "0.005", "9.994", None]),
        "truths": pa.array(["t", "FALSE", " yes ", "0", "n", "1", None]),
        "days": pa.array(_WRITTEN_DAYS),
        "ok": pa.array([True, False, None, True, False, None, True]),
        "day": pa.array([*(date(*each) for each in _DAYS), None], pa.date32()),
        "ts": pa.array(_INSTANTS, pa.timestamp("us", "UTC")),
        "fine": pa.array(_NANOSECONDS, pa.timestamp("ns", "UTC")),
        "finer": pa.array(_FINER, pa.timestamp("ns", "UTC")),
        "here": pa.array([0, -1, 1, 2, 3, 4, None], pa.timestamp("us", "America/New_York")),
        "wide": pa.array(["a", "B", "", "é", "z", "x", None], pa.large_string()),
        "info": pa.array(_STRUCTS),
    }
)

_LAZY = """
CASE WHEN n <> 0 THEN m / n ELSE 0e0 END | CASE WHEN n = 0 THEN 0 ELSE 10 DIV n END
IF(m = 0, NULL, 1 / m) | m <> 0 AND 1 / m > 0 | m = 0 OR 1 / m > 0 | COALESCE(m, 1 / m)
CASE n WHEN 0 THEN -1 WHEN 1 / n THEN 1 ELSE 2 END | IF(false, 1 / 0, 2)
CASE WHEN n = 0 THEN 'none' WHEN 10 / n > 1 THEN 'more' ELSE 'less' END
IF(LENGTH(digits) > 0 AND s = '', CAST(digits AS TINYINT), 0)
IF(s = '', 0, COALESCE(n, CAST(s AS INT)))
n = 0 OR n IS NULL OR (1 / n > 0 AND n BETWEEN 1 / n AND 5)
NULLIF(IF(n = 0, 1, 1 / n), 1) | n IN (0, 1, IF(n = 0, 1, 6 DIV n)) | NULLIF(NULLIF(n, 1), 3)
CAST(NULL AS INT) + 1 / 0 | 1 / 0 / CAST(NULL AS INT) | n <> 0 AND n <> 1 AND 5 % n > 0
n = 0 OR n IN (1 / n, 3) | n <> 0 AND CASE WHEN 1 / n > 0 THEN true ELSE 1 / (n + 8) IS NULL END
"""
_DECIMALS = """
e * 2 | e + 1 | 1 - e | 1.5 + 1 | e * -1 | d * n | d - tiny | e + m | d * 2.50 | e * (10) | e + 100
-e | ABS(d) | e = 2 | d > 1e0 | d < 1.255 | e IN (1, 2.00, 4) | d + NULL | e - 00100 | 00.5 + 1
CASE WHEN e > 1 THEN e ELSE 0 END | COALESCE(d, 0) | 99999999999999999999 | CAST(long AS DOUBLE)
long * 3e0 | long = 0.1e0 | f * d | d / 3 | d / 7.5 | e / (e + 1) | -5 / (d + 4)
long / 3 | 1 / 3.0 | d % 2 | d % -0.7 | e % 2.5 | m % 0.3 | long % 0.07 | FLOOR(d) | CEIL(d)
FLOOR(long) | CEIL(-e) | FLOOR(m)
"""
_NUMBERS = """
m / 2 | m > 1e0 | CAST(m AS DOUBLE) | m = x | n / NULL | NULL / n | NULL % n | -NULL | ABS(NULL)
CAST(16777217 AS FLOAT) | CAST(m AS FLOAT) | f * 2 | f + n | f + f | f < x | tiny * 1 | tiny + 1
m % -1 | n % -1 | n DIV -1 | -2147483648 | -9223372036854775808 | 5 - -1 | -5 % 3
FLOOR(f) | CEIL(f) | CEIL(n / 3) | FLOOR(NULL) | x <= y | x >= y | x = y | x < y | x > y | x <> y
x <=> y | x IN (0.0, 2.5) | x IN (0e0, NULL) | x IN (CAST('NaN' AS DOUBLE), 1e0) | n IN (1, 3, NULL)
n NOT IN (1, 3) | NULL IN (1) | NULLIF(x, 0) | x BETWEEN y AND 3e0 | n NOT BETWEEN 0 AND 5
1e2 | 0.5 | 1. | .25 | x IS NULL | NOT ok | ok <=> NULL | ok IS NOT TRUE | NULL OR ok | ok = true
ok < true | m IN (1, 2.5) | CASE WHEN ok THEN f ELSE m END | CASE WHEN ok THEN tiny ELSE m END
"""
_CASTS = """
CAST(ts AS BIGINT) | CAST(ts AS DOUBLE) | CAST(n AS TIMESTAMP) | CAST(day AS STRING)
CAST(ok AS STRING) | CAST(ok AS DOUBLE) | CAST(ok AS DECIMAL(3, 1)) | CAST(m AS BOOLEAN)
CAST(x AS BOOLEAN) | CAST(d AS BOOLEAN) | CAST(ok AS INT) | CAST(d AS DECIMAL(12, 2))
CAST(d AS DECIMAL(8, 0)) | CAST(d AS BIGINT) | CAST(d AS INT) | CAST(d AS DOUBLE) | CAST(d AS FLOAT)
CAST(d AS STRING) | CAST(tiny AS DECIMAL(5, 2)) | CAST(m AS DECIMAL(38, 10))
CAST(m AS DECIMAL(20))
CAST(1.255 AS DECIMAL(3, 2)) | CAST(-0.005 AS DECIMAL(4, 2)) | CAST(digits AS INT)
CAST(digits AS TINYINT) | CAST(' 12 ' AS INT) | CAST(floats AS DOUBLE) | CAST(floats AS FLOAT)
CAST(places AS DECIMAL(4, 2)) | CAST(truths AS BOOLEAN) | CAST(days AS DATE) | CAST(n AS STRING)
CAST(NULL AS DATE) | CAST(f AS DOUBLE) | CAST(y AS FLOAT) | CAST(2.9e0 AS INT) | CAST(-2.9 AS INT)
1.5BD | 2L | 1.5D | CAST(s AS STRING) | CAST(x AS STRING) | CAST(y AS STRING)
CAST(1.5e7 AS STRING) | CAST(CAST(d AS DECIMAL(14, 7)) AS STRING)
 CAST(long AS STRING) | CAST(y AS DECIMAL(38, 10))
CAST(f AS DECIMAL(20, 4)) | CAST(CAST(n AS DOUBLE) AS DECIMAL(20, 4))
"""
_TIMES = """
ts > TIMESTAMP '1970-01-01 00:00:01.5' | ts >= TIMESTAMP '1970-01-01' | fine = ts | day = ts
fine > TIMESTAMP '1970-01-01 00:00:00' | here < TIMESTAMP '1970-01-01 00:00:00.000002'
here + INTERVAL '1' HOUR | fine - INTERVAL '1 02:03:04.5' DAY TO SECOND | CAST(day AS TIMESTAMP)
TIMESTAMP '2024-1-2T3:4:5.1234567Z' | TIMESTAMP '2024-01-02 03:04:05 +01:30' | TIMESTAMP '2024'
TIMESTAMP '2024-01-02 03' | TIMESTAMP '2024-01-02 03:04:05.-18' | DATE '2024-2'
day < DATE '2024-02-29' | COALESCE(here, fine, ts) | ts < DATE '1970-01-02' | CAST(ts AS DATE)
IF(ok, day, DATE '2000-01-01') | CASE WHEN ok THEN ts END | CAST(here AS DATE)
CAST(fine AS BIGINT) | CAST(finer AS DATE) | CAST((finer) AS TIMESTAMP) | finer IS NULL
CAST(CAST(finer AS TIMESTAMP) AS TIMESTAMP_NTZ)
"""
_TEXTS = """
UPPER(s) | LOWER(s) | LOWER(UPPER(s)) | LENGTH(s) | s || wide | CONCAT(s, NULL) | wide = 'a'
wide < 'é' | wide IN ('a', 'z', NULL) | COALESCE(wide, s) | s < wide | s LIKE '%\\%%' | s LIKE 'a_b'
s LIKE '______' | s NOT LIKE '%x%' | s LIKE '' | UPPER('straße') | 'it''s' || "q" | s LIKE '%ß_'
info.m | INFO.S || 'x' | info.m + 1 | UPPER(NULL) | LENGTH(NULL)
"""


def _listed(*texts: str) -> list[str]:
    lines = "\n".join(texts).replace("\n", " | ").split(" | ")
    return [each.strip() for each in lines if each.strip()]


#: What Spark and we have values for.
EXPRESSIONS = _listed(_LAZY, _DECIMALS, _NUMBERS, _CASTS, _TIMES, _TEXTS)

#: What Spark and we have no value for.
WITHOUT = _listed(
    """
1 / n | m % n | m DIV n | m + 1 | -m | -tiny | ABS(n) | tiny * tiny | m * m | m DIV -1 | x / y
CAST(m AS INT) | CAST(x AS INT) | CAST(d AS DECIMAL(9, 3)) | CAST(s AS INT) | CAST('0x1F' AS INT)
CAST('-0X1F' AS BIGINT) | CAST('1.5' AS INT) | CAST('' AS DOUBLE) | CAST('maybe' AS BOOLEAN)
CAST('-nan' AS DOUBLE) | CAST(s AS DATE) | CAST('9.995' AS DECIMAL(3, 2)) | CAST(d AS TINYINT)
IF(n = 1, 0, 1 / n) | n <> 0 OR 1 / n > 0 | CASE WHEN n > 0 THEN 1 ELSE 1 / n END | n IN (5, 1 / n)
CAST(m AS DECIMAL(10)) | FLOOR(1e300) | CEIL(x)
"""
)


def _shown(column: pa.ChunkedArray | pa.Array) -> list[str]:
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp("us", "UTC"))
    return [repr(value) for value in column.to_pylist()]


def test_values_and_types_are_those_of_spark(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS)
    chosen = frame.selectExpr(*(f"{text} AS c{place}" for place, text in enumerate(EXPRESSIONS)))
    wanted, types = chosen.toArrow(), to_arrow_schema(chosen.schema)
    different: dict[str, Any] = {}
    for place, text in enumerate(EXPRESSIONS):
        ours, theirs = compute(text, ROWS), wanted.column(place)
        if pa.types.is_null(ours.type) and theirs.null_count == len(theirs):
            continue
        kind = types.field(place).type
        if _shown(ours) != _shown(theirs) or (text not in PLAIN and ours.type != kind):
            different[text] = (ours.type, _shown(ours), kind, _shown(theirs))
    assert not different, "\n".join(f"{text}: {both}" for text, both in different.items())


#: Columns as they are keep a type of their own.
PLAIN = frozenset(ROWS.column_names)


def test_what_has_no_value_in_spark_has_none_here(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    frame, taken = spark.createDataFrame(ROWS), []
    for text in WITHOUT:
        with pytest.raises(ExpressionError, match="must have a value for each row"):
            compute(text, ROWS)
        try:
            frame.selectExpr(f"{text} AS c").collect()
            taken.append(text)
        except PySparkException:
            continue
    assert not taken


#: What Spark has, or refuses, and is refused over Arrow tables, with the rule.
REFUSED = {
    "FLOOR(x, 1)": "FLOOR does not support decimals",
    "CEIL(x TO HOUR)": "CEIL does not support to",
    "LENGTH(s, 'x')": "LENGTH does not support binary",
    "n BETWEEN SYMMETRIC 1 AND 0": "BETWEEN does not support symmetric",
    "IF(ok, 1)": "IF takes a condition and two values",
    "CAST(x AS DECIMAL(38, 30))": "differs from Spark: cast it before",
    "CAST(day AS INT)": "differs from Spark: cast it before",
    "CAST(1 AS DATE)": "differs from Spark: cast it before",
    "CAST(ts AS BOOLEAN)": "differs from Spark: cast it before",
    "CAST(x AS DATE)": "differs from Spark: cast it before",
    "CAST(ts AS STRING)": "differs from Spark: cast it before",
    "CAST(info AS STRING)": "differs from Spark: cast it before",
    "info = info": "Arrow cannot compute",
    "s.m": "s is not a struct and has no fields",
    "t.n": "there is no such column",
    "info.q": "there is no such column; there are m, s",
    "a.info.m": "there is no such column",
    "d * CAST(1 AS DECIMAL(38, 0))": "Arrow cannot compute",
    "-true": "Arrow cannot compute",
    "1e999": "a number with an exponent must fit DOUBLE",
    "s LIKE 'a\\\\b'": "a backslash in a pattern",
    "TIMESTAMP '2024-01-32'": "an instant is written as",
    "DATE 'x'": "a day is written as",
    "9" * 50: "up to 38 digits",
    "TIMESTAMP '2024-01-01 03+01:00'": "an instant is written as",
    "TIMESTAMP '2024-01-01 00:00+19'": "an instant is written as",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:30])
def test_what_cannot_be_the_same_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(SqlError, match=REFUSED[text]) as caught:
        compute(text, ROWS)
    assert caught.value.line == 1
