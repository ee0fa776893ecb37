"""What people get wrong in scripts: the advice, and the place in the text."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError

ROWS = pa.table(
    {
        "id": [1, 2],
        "name": ["a", "b"],
        "ts": pa.array([0, 1_000_000], pa.timestamp("us")),
    }
)
ORDERS = (
    "CREATE TABLE orders (id BIGINT, name STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
    "WITH ('connector' = 'kafka'); "
)
WITH = "WITH ('connector' = 'datagen'); SELECT 1 AS one"

#: A text in which # is before the place that is told, and words of the rule.
MISTAKES = {
    "a watermark of numbers": (
        f"CREATE TABLE t (id BIGINT, ts INT, WATERMARK FOR #id AS id - INTERVAL '5' SECOND) {WITH}",
        "id is BIGINT: add `ts2 AS TO_TIMESTAMP_LTZ(id, 3)` to the table, and write WATERMARK FOR "
        "ts2, got id",
    ),
    "a watermark of strings": (
        f"CREATE TABLE t (ts STRING, WATERMARK FOR #ts AS ts) {WITH}",
        "ts is STRING: add `ts2 AS TO_TIMESTAMP(ts)`",
    ),
    "a watermark of floats": (
        f"CREATE TABLE t (x DOUBLE, WATERMARK FOR #x AS x) {WITH}",
        "x is DOUBLE: name a column of one of these types",
    ),
    "a watermark of computed numbers": (
        "CREATE TABLE orders (id BIGINT, twice AS id * 2, WATERMARK FOR #twice AS twice) "
        "WITH ('connector' = 'kafka'); SELECT id FROM orders",
        "twice is BIGINT: add `ts AS TO_TIMESTAMP_LTZ(twice, 3)`",
    ),
    "rows of another type": (
        "CREATE TABLE orders (#id STRING) WITH ('connector' = 'kafka'); SELECT id FROM orders",
        "the rows of orders have BIGINT here, and STRING is declared",
    ),
    "a target of another type": (
        f"{ORDERS} CREATE TABLE o (id BIGINT) WITH ('connector' = 'print'); "
        "INSERT INTO #o SELECT name FROM orders",
        "column id is BIGINT, and the query gives STRING: CAST it",
    ),
    "a text and a number": (
        f"{ORDERS} SELECT id FROM orders WHERE #name > 5",
        "no common type: INT, STRING",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_advice_and_a_place(name: str) -> None:
    text, rule = MISTAKES[name]
    plain = text.replace("#", "", 1)
    with pytest.raises(SqlError) as caught:
        gw.sql_script(plain, orders=gw.stream(ROWS)).results()
    assert rule in str(caught.value)
    assert (caught.value.line, caught.value.position) == (1, text.index("#") + 1)
