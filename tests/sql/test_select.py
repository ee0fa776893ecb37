"""Statements without windows: columns and expressions of rows, and a condition."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from tests.planning.queries import rows_of
from tests.spark_glue.stream_runs import WATERMARKS, batches, files, run_to_the_end, streamed
from tests.sql.texts import rows, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = rows(random.Random(5), 40)


def tables() -> dict[str, Any]:
    """The same rows with an event time and without one."""
    return {"t": stream(ROWS), "u": gw.stream(ROWS)}


def check(text: str, wanted: list[dict[str, Any]]) -> gw.typing.SqlQuery:
    """Compare a statement, and the code that `explain` shows for it, with wanted rows."""
    query = gw.sql(text, **tables())
    assert query.result().to_pylist() == wanted
    code = query.explain().partition("\n\n")[0]
    again = eval(f"({code})", {"gw": gw, **tables()})  # noqa: S307
    assert again.result().to_pylist() == wanted
    return query


@pytest.mark.parametrize("name", ["t", "u"])
def test_columns_expressions_and_conditions(name: str) -> None:
    every = ROWS.drop_columns(["x"]).to_pylist()
    check(f"SELECT k, n, ts, v, ok FROM {name}", every)
    check(f"select V as v2, K from {name} where v > 3 and k is not null", [
        {"v2": row["v"], "K": row["k"]}
        for row in every if row["v"] is not None and row["v"] > 3 and row["k"] is not None
    ])  # fmt: skip
    check(
        f"SELECT v + n, CASE WHEN ok THEN 'yes' WHEN NOT ok THEN 'no' END AS said, 1 AS one, "
        f"'x' AS `where` FROM {name}",
        [
            {
                "EXPR$0": None if None in (row["v"], row["n"]) else row["v"] + row["n"],
                "said": {True: "yes", False: "no", None: None}[row["ok"]],
                "one": 1,
                "where": "x",
            }
            for row in every
        ],
    )


def test_all_columns() -> None:
    for star in ("*", "u.*", "U.*"):
        assert (
            gw.sql(f"SELECT {star} FROM u", **tables())
            .result()
            .to_pandas()
            .equals(ROWS.to_pandas())
        )
    twice = gw.sql("SELECT *, v * 2 AS w FROM t AS a", **tables()).result()
    assert twice.column_names == [*ROWS.column_names, "w"]


def test_subqueries_that_select_become_one_selection() -> None:
    query = check(
        "WITH a AS (SELECT k AS key, v + 1 AS w, ts FROM t WHERE v > 0) "
        "SELECT w * 2 AS twice, key FROM (SELECT key, w FROM a WHERE w < 9) AS b WHERE key = 'a'",
        [
            {"twice": 2 * (row["v"] + 1), "key": "a"}
            for row in ROWS.to_pylist()
            if row["k"] == "a" and row["v"] is not None and 0 < row["v"] < 8
        ],
    )
    assert query.explain().count("select(") == 1


def test_a_subquery_with_its_own_with_keeps_its_time() -> None:
    """It is a stage; windows over it are in the time that it selects, by the new name."""
    inner = "WITH b AS (SELECT k, ts AS at FROM t) SELECT k AS key, at AS moment FROM b"
    text = f"""WITH a AS ({inner}) SELECT key, window_end, COUNT(*) AS c
        FROM TUMBLE(TABLE a, DESCRIPTOR(moment), INTERVAL '10' SECOND)
        GROUP BY key, window_start, window_end"""
    plain = """SELECT k AS key, window_end, COUNT(*) AS c
        FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)
        GROUP BY k, window_start, window_end"""
    found, wanted = (gw.sql(each, **tables()).result() for each in (text, plain))
    assert rows_of(found) == rows_of(wanted)
    assert len(found) > 5


def test_nested_columns_odd_names_and_empty_tables() -> None:
    odd = pa.table({"a.b": [[1], None], "ä `q`": [{"x": 1}, {"x": None}], "class": ["p", "q"]})
    for table in (odd, odd.slice(0, 0)):
        text = "SELECT `A.B` AS l, `ä ``q```, class, class AS `9` FROM odd WHERE class <> 'r'"
        found = gw.sql(text, odd=gw.stream(table)).result()
        assert found.column_names == ["l", "ä `q`", "class", "9"]
        columns = zip(
            *(table[name].to_pylist() for name in ("a.b", "ä `q`", "class", "class")), strict=False
        )
        assert [tuple(row.values()) for row in found.to_pylist()] == [*columns]


def test_rows_without_a_time_are_results() -> None:
    late = pa.table({"ts": pa.array([None, 1], pa.timestamp("us", "UTC")), "v": [1, 2]})
    outputs = gw.sql("SELECT v FROM t", t=stream(late)).outputs()
    assert outputs.result()["v"].to_pylist() == [1, 2]
    assert len(outputs.rejected()) == 0


def test_options_that_have_no_meaning() -> None:
    query = gw.sql("SELECT v FROM t", **tables())
    assert query.options(device="cpu", threads=1).result().num_rows == 40
    with pytest.raises(SqlError, match="no kernel of a device selects rows"):
        query.options(device="cuda").result()


def test_statements_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Batch and streaming give what Spark's SQL gives."""
    parts = batches(3, 100)
    whole = pa.concat_tables(parts)
    frame = spark.createDataFrame(whole)
    frame.createOrReplaceTempView("select_rows")
    text = (
        "SELECT k, UPPER(text) AS shout, v * 2 AS `v`, DATE_FORMAT(ts, 'HH:mm') AS at "
        "FROM {} WHERE k < 15 AND text <> 'y'"
    )
    wanted = rows_of(spark.sql(text.format("select_rows")).toArrow())
    for table in (gw.stream(frame), gw.stream(frame).event_time("ts", WATERMARKS)):
        assert rows_of(gw.sql(text.format("t"), t=table).result().toArrow()) == wanted
    files(tmp_path / "in", parts)
    arriving = gw.stream(streamed(spark, tmp_path / "in")).event_time("ts", WATERMARKS)
    run_to_the_end(gw.sql(text.format("t"), t=arriving).outputs(), tmp_path)
    assert rows_of(gw.read_output(spark, tmp_path / "out").toArrow()) == wanted
