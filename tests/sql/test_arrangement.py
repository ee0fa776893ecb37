"""DISTINCT, ORDER BY, LIMIT, OFFSET and FETCH: over batches; refused over streams."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from tests.spark_glue.stream_runs import batches
from tests.sql.texts import rows, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = rows(random.Random(6), 30).drop_columns(["x"])
WINDOWS = "FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '20' SECOND)"
BY = "GROUP BY k, window_start, window_end"


def result(text: str, **more: Any) -> list[dict[str, Any]]:
    """Return the result of a statement, which the code that `explain` shows gives too."""
    tables = {"t": stream(ROWS), "u": gw.stream(ROWS), **more}
    query = gw.sql(text, **tables)
    found: list[dict[str, Any]] = query.result().to_pylist()
    code = query.explain().partition("\n\n")[0]
    assert eval(f"({code})", {"gw": gw, **tables}).result().to_pylist() == found  # noqa: S307
    return found


def ascending(*names: str) -> Callable[[dict[str, Any]], Any]:
    """Return a key that sorts by columns, nulls first."""
    return lambda row: [(row[name] is not None, row[name]) for name in names]


def test_rows_are_sorted_by_columns_names_positions_and_expressions() -> None:
    every = ROWS.select(["k", "v"]).to_pylist()
    by_v = sorted(every, key=ascending("v", "k"))
    assert result("SELECT k, v FROM u ORDER BY v, k") == by_v
    assert result("SELECT k, v FROM u ORDER BY 2 ASC NULLS FIRST, u.k") == by_v
    assert result("SELECT * FROM (SELECT k, v FROM u) AS q ORDER BY q.v, K") == by_v
    assert result("SELECT k, v FROM t ORDER BY v * 2, k") == by_v
    down = result("SELECT v AS w FROM t ORDER BY w DESC NULLS FIRST LIMIT 4")
    values = [row["v"] for row in every]
    some = sorted((v for v in values if v is not None), reverse=True)
    wanted = [None] * values.count(None) + some
    assert [row["w"] for row in down] == wanted[:4]
    renamed = result("SELECT v AS k, k AS v FROM t ORDER BY k, v")
    assert renamed == [{"k": row["v"], "v": row["k"]} for row in by_v]
    assert result("SELECT v AS w FROM t ORDER BY -w LIMIT 1 OFFSET 5") == [
        {"w": some[5 - values.count(None)]}
    ]


def test_rows_in_order_of_their_event_time_have_one() -> None:
    """Rows without a time are rejected, as on a stream; with another clause they are sorted."""
    times = pa.array([5, None, 3], pa.timestamp("us", "UTC"))
    some = stream(pa.table({"ts": times, "v": [1, 2, 3]}))
    assert result("SELECT v FROM s ORDER BY ts", s=some) == [{"v": 3}, {"v": 1}]
    assert gw.sql("SELECT v FROM s ORDER BY ts", s=some).outputs().rejected().num_rows == 1
    for more in ("ts NULLS FIRST LIMIT 3", "ts, v", "ts LIMIT ALL"):
        text = f"SELECT v FROM s ORDER BY {more}"
        assert result(text, s=some) == [{"v": 2}, {"v": 3}, {"v": 1}]


def test_some_rows() -> None:
    every = ROWS.select(["v"]).to_pylist()
    assert result("SELECT v FROM u LIMIT 3") == every[:3]
    assert result("SELECT v FROM u LIMIT 3 OFFSET 2") == every[2:5]
    assert result("SELECT v FROM u OFFSET 28 ROWS FETCH NEXT 9 ROWS ONLY") == every[28:]
    assert result("SELECT v FROM u FETCH FIRST ROW ONLY") == every[:1]
    assert result("(SELECT v FROM u LIMIT ALL) OFFSET 1 ROW") == every[1:]
    assert result("SELECT v FROM u LIMIT 0") == []


def test_distinct_rows() -> None:
    pairs = {(row["k"], row["ok"]): None for row in ROWS.to_pylist()}
    assert result("SELECT DISTINCT k, ok FROM u") == [{"k": k, "ok": ok} for k, ok in pairs]
    assert result("SELECT DISTINCT v > 0 AS p FROM t WHERE v IS NOT NULL ORDER BY v > 0") == [
        {"p": False}, {"p": True}
    ]  # fmt: skip
    assert len(result("SELECT DISTINCT * FROM u ORDER BY ts DESC, v LIMIT 7")) == 7


def test_results_of_other_queries() -> None:
    counts = result(f"SELECT k, COUNT(*) AS n {WINDOWS} {BY}")
    text = f"SELECT k, COUNT(*) AS n {WINDOWS} {BY} ORDER BY COUNT(*) DESC, k LIMIT 3"
    assert result(text) == sorted(counts, key=lambda r: (-r["n"], *ascending("k")(r)))[:3]
    hidden = result(f"SELECT n FROM (SELECT k, COUNT(*) AS n {WINDOWS} {BY}) ORDER BY k, n")
    assert hidden == [{"n": row["n"]} for row in sorted(counts, key=ascending("k", "n"))]
    largest = result(f"SELECT k {WINDOWS} {BY} ORDER BY SUM(v) DESC NULLS LAST FETCH NEXT ROW ONLY")
    sums = result(f"SELECT k, SUM(v) AS s {WINDOWS} {BY}")
    assert largest == [
        {"k": max((r for r in sums if r["s"] is not None), key=lambda r: r["s"])["k"]}
    ]
    over = (
        "SELECT v, COUNT(*) OVER (PARTITION BY k ORDER BY ts) AS c FROM t ORDER BY c DESC LIMIT 1"
    )
    assert result(over)[0]["c"] == max(
        row["c"] for row in result(over.replace(" ORDER BY c DESC LIMIT 1", ""))
    )
    union = "SELECT v FROM u UNION ALL SELECT n FROM u ORDER BY v, 1 LIMIT 2 OFFSET 1"
    both = [row[name] for name in "vn" for row in ROWS.to_pylist()]
    assert [row["v"] for row in result(union)] == sorted(
        both, key=lambda v: (v is not None, v)
    )[1:3]  # fmt: skip


def test_a_subquery_may_take_some() -> None:
    top = "SELECT v, ts FROM t ORDER BY v DESC LIMIT 5"
    values = sorted((v for v in ROWS["v"].to_pylist() if v is not None), reverse=True)[:5]
    found = result(f"SELECT v + 1 AS w FROM ({top}) AS q WHERE v > {values[2]} ORDER BY w")
    assert [row["w"] for row in found] == sorted(v + 1 for v in values if v > values[2])
    windows = f"""WITH q AS ({top}) SELECT COUNT(*) AS n, SUM(v) AS s
        FROM TUMBLE(TABLE q, DESCRIPTOR(ts), INTERVAL '1' DAY) GROUP BY window_start, window_end"""
    assert sum(row["s"] for row in result(windows)) == sum(values)


#: Statements that are refused, with # before the place, and what the message says.
REFUSED = {
    "a position": ("SELECT k, v FROM t ORDER BY k, #3", "positions in ORDER BY are from 1 to 2"),
    "a name": ("SELECT k FROM t ORDER BY #nosuch", "there is no such column"),
    "a name of a union": (
        "SELECT k FROM t UNION ALL SELECT k FROM t ORDER BY #v", "no such result; there are k"
    ),
    "an expression of a union": (
        "SELECT v FROM t UNION ALL SELECT v FROM t ORDER BY #v + 1", "takes names and positions"
    ),
    "DISTINCT by another": ("SELECT DISTINCT k FROM t ORDER BY #v", "takes what is in the list"),
    "LIMIT": ("SELECT k FROM t LIMIT -#1", "LIMIT takes a whole number"),
    "OFFSET": ("SELECT k FROM t OFFSET #v", "OFFSET takes a whole number"),
    "ties": ("SELECT k FROM t ORDER BY k FETCH FIRST #1 ROW WITH TIES", "FETCH takes a number"),
    "distinct rows in windows": (
        "WITH q AS (SELECT DISTINCT k FROM t) SELECT COUNT(*) FROM TUMBLE(TABLE #q, "
        "DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY window_start, window_end",
        "only if ts is one of them",
    ),
    "aggregates": ("SELECT k FROM t ORDER BY #SUM(v)", "GROUP BY window_start, window_end"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    text, rule = REFUSED[case]
    with pytest.raises(SqlError, match=rule) as caught:
        result(text.replace("#", ""))
    if case != "aggregates":  # found when the statement is read as one without windows
        assert (caught.value.line, caught.value.position) == (1, text.index("#") + 1)


def test_streams_are_refused_with_what_to_write(spark: SparkSession) -> None:
    arriving = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    timed = gw.stream(arriving).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    windows = "FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)"
    for text, rule in (
        ("SELECT DISTINCT #`value` FROM t", "GROUP BY the columns, in windows"),
        ("SELECT `value` FROM t LIMIT #3", "LIMIT is covered over batches"),
        ("SELECT `value` FROM t OFFSET #3 ROWS", "OFFSET is covered over batches"),
        ("SELECT `value` FROM t FETCH NEXT #3 ROWS ONLY", "FETCH is covered over batches"),
        ("SELECT `value` FROM t ORDER BY #`value`", "ascending event time alone|the event time"),
        ("SELECT `value` FROM t ORDER BY #ts DESC", "ascending event time alone"),
        (f"SELECT COUNT(*) AS n {windows} GROUP BY window_start, window_end ORDER BY #n",
         "cannot be sorted"),
        ("SELECT `value` FROM t UNION SELECT #1 FROM t", "SELECT DISTINCT of a stream"),
    ):  # fmt: skip
        with pytest.raises(SqlError, match=rule) as caught:
            gw.sql(text.replace("#", ""), t=timed)
        assert caught.value.position == text.index("#") + 1, text
    assert ".over()" in gw.sql("SELECT `value` FROM t ORDER BY ts", t=timed).explain()


@pytest.mark.thorough
def test_random_statements_give_what_spark_gives(spark: SparkSession) -> None:
    """Sorted by all columns, so that equal rows do not matter."""
    whole = batches(1, 60)[0]
    frame = spark.createDataFrame(whole)
    frame.createOrReplaceTempView("arranged")
    rng = random.Random(8)
    for _ in range(12):
        items = rng.sample(["k", "v", "text", "k % 3 AS m", "v > 12 AS big"], rng.randint(1, 4))
        names = [each.split(" AS ")[-1] for each in items]
        order = ", ".join(
            f"{name}{rng.choice(['', ' ASC', ' DESC'])}"
            f"{rng.choice(['', ' NULLS FIRST', ' NULLS LAST'])}"
            for name in rng.sample(names, len(names))
        )
        text = (
            f"SELECT {rng.choice(['', 'DISTINCT '])}{', '.join(items)} FROM {{}} "
            f"WHERE k > {rng.randrange(5)} ORDER BY {order} "
            f"LIMIT {rng.randint(1, 20)} OFFSET {rng.randint(0, 5)}"
        )
        wanted = spark.sql(text.format("arranged")).toArrow().to_pylist()
        for table in (gw.stream(frame), gw.stream(whole)):
            found = gw.sql(text.format("t"), t=table).result()
            found = found if isinstance(found, pa.Table) else found.toArrow()
            assert found.to_pylist() == wanted, text
