"""Queries without FROM, and VALUES: rows of constants, over Arrow."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = pa.table({"a": [3, 4]})


def result(text: str) -> pa.Table:
    """Return the result of a statement, whose values the code that `explain` shows gives too."""
    tables = {"t": gw.stream(TABLE)}
    query = gw.sql(text, **tables)
    code = query.explain().partition("\n\n")[0]
    again = eval(f"({code})", {"gw": gw, "pa": pa, "Decimal": Decimal, **tables}).result()  # noqa: S307
    assert again.to_pylist() == query.result().to_pylist()
    return query.result()


def test_one_row_without_a_table() -> None:
    assert gw.sql("SELECT 1 + 1 AS two, UPPER('abc')").result().to_pylist() == [
        {"two": 2, "EXPR$1": "ABC"}
    ]
    assert result("SELECT 'x' AS s WHERE 1 > 2").num_rows == 0
    both = result("SELECT 1 AS a UNION ALL SELECT a FROM t UNION ALL SELECT 2 ORDER BY a DESC")
    assert both["a"].to_pylist() == [4, 3, 2, 1]


def test_values() -> None:
    found = result(
        "SELECT name, id * 2 AS twice FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) AS v(id, name) "
        "WHERE v.id > 1"
    )
    assert found.to_pylist() == [{"name": "b", "twice": 4}, {"name": None, "twice": 6}]
    assert result("VALUES (1, TRUE), (2 * 3, FALSE)").to_pylist() == [
        {"EXPR$0": 1, "EXPR$1": True}, {"EXPR$0": 6, "EXPR$1": False}
    ]  # fmt: skip
    assert result("SELECT DISTINCT x FROM (VALUES 1, 1, 2) AS v(x)")["x"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ("(1), (2)", pa.int32()),
        ("(1), (5000000000)", pa.int64()),
        ("(1), (2.5)", pa.decimal128(11, 1)),
        ("(1), (2.5e0), (NULL)", pa.float64()),
        ("('a'), (NULL)", pa.string()),
    ],
)
def test_types_are_widened(values: str, wanted: pa.DataType) -> None:
    assert result(f"SELECT * FROM (VALUES {values}) AS v(x)").schema.field("x").type == wanted


#: Statements that are refused, with # before the place, and what the message says.
REFUSED = {
    "lengths": ("SELECT * FROM (VALUES (1), #(2, 3)) AS v(a)", "the same number of columns: 1"),
    "types": ("SELECT * FROM (VALUES (1), #('a')) AS v(a)", "a common type: CAST them"),
    "columns": ("SELECT * FROM (VALUES #(a)) AS v(x)", "there is no such column"),
    "names": ("SELECT * FROM (VALUES (1, 2)) AS #v(a, A)", "the same name"),
    "all of nothing": ("SELECT #*", "needs FROM"),
    "a column of nothing": ("SELECT #a", "there is no such column"),
    "an aggregate of nothing": ("SELECT #COUNT(*)", "GROUP BY window_start, window_end"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    text, rule = REFUSED[case]
    with pytest.raises(SqlError, match=rule) as caught:
        gw.sql(text.replace("#", ""))
    wanted = text.index("#") + 1
    assert caught.value.position in (wanted, wanted + 1), caught.value  # a row: its first value


def test_constants_are_not_rows_of_dataframes(spark: SparkSession) -> None:
    frame = gw.stream(spark.createDataFrame(TABLE))
    assert gw.sql("SELECT 1 AS x", t=frame).result().to_pylist() == [{"x": 1}]
    with pytest.raises(SqlError, match="union"):
        gw.sql("SELECT a FROM t UNION ALL SELECT 1", t=frame)
