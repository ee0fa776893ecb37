"""Statements that people bring: which are taken, which are refused, and with what to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from tests.sql.texts import stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
NUMBERED = "SELECT v, rn FROM (SELECT *, {} OVER ({} ORDER BY v DESC) AS rn FROM t) WHERE rn {}"

#: A statement that is refused, with # before its place, and words of what to write.
REFUSED = {
    "a table": (
        "-- the source\n#create table t (a INT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)",
        "sql_script.* runs scripts",
    ),
    "a view": (
        "/* a */ #CREATE TEMPORARY VIEW x AS SELECT * FROM t",
        "sql_script.* runs scripts",
    ),
    "what is written": ("#INSERT INTO sink SELECT v FROM t", "sql_script.* runs scripts"),
    "statements together": ("#EXECUTE STATEMENT SET BEGIN", "sql_script"),
    "a setting": ("  #SET 'parallelism.default' = '1'", "sql_script"),
    "an explanation": ("#EXPLAIN SELECT v FROM t", r"use \.explain\(\)"),
    "LIMIT": ("SELECT v FROM t LIMIT #v", "a whole number, such as 10"),
    "ranks": (
        NUMBERED.format("#RANK()", "PARTITION BY ts", "<= 2"),
        "for top-N use ROW_NUMBER",
    ),
    "windows of processing time": (
        "SELECT #TUMBLE_PROCTIME(ts, INTERVAL '1' MINUTE) AS w, COUNT(*) AS n FROM t "
        "GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
        r"use the \.\.\._END",
    ),
    "an aggregate of one's own": (
        f"SELECT #weightedAvg(v, v) AS w {HOUR} GROUP BY window_start, window_end",
        "gw.user_aggregate.*got weightedAvg",
    ),
    "a misspelled aggregate": (
        f"SELECT #SUMM(v) AS w {HOUR} GROUP BY window_start, window_end",
        "did you mean SUM",
    ),
    "a join of one bound": (
        "SELECT a.v FROM t AS a JOIN #t AS b ON a.v = b.v WHERE a.ts > b.ts",
        "a lower and an upper bound of time",
    ),
}


def table() -> pa.Table:
    times = pa.array([0, 60, 120], pa.timestamp("s", "UTC"))
    return pa.table({"v": [1, 2, 3], "ts": times})


@pytest.mark.parametrize("case", REFUSED)
def test_a_statement_is_refused_with_what_to_write(case: str) -> None:
    text, words = REFUSED[case]
    with pytest.raises(SqlError, match=words) as caught:
        gw.sql(text.replace("#", ""), t=stream(table()))
    before = text[: text.index("#")]
    line, position = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert (caught.value.line, caught.value.position) == (line, position)


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        ("#STATE_TTL('t' = '1d')", "STATE_TTL is not covered: it drops state"),
        ("BROADCAST(t), #LOOKUP('table'='t', 'retry-predicate'='lookup_miss')", "not tried again"),
        ("#SKEW('t')", "no hint of this name"),
        ("BROADCAST(t),# (", "a hint is a name"),
    ],
)
def test_a_hint_that_changes_results_is_refused_at_its_place(hint: str, words: str) -> None:
    text = f"SELECT /*+ {hint} */ v {HOUR}"
    with pytest.raises(SqlError, match=words) as caught:
        gw.sql(text.replace("#", ""), t=stream(table()))
    assert (caught.value.line, caught.value.position) == (1, text.index("#") + 1)


def test_a_hint_that_changes_no_result_has_no_effect() -> None:
    text = "SELECT /*+ BROADCAST(t) */ v, '/*+ NO(x) */' AS s FROM t /*+ OPTIONS('a.b' = 'c') */"
    found = gw.sql(text, t=stream(table())).result().to_pydict()
    assert found == {"v": [1, 2, 3], "s": ["/*+ NO(x) */"] * 3}


def test_the_first_rows_of_all_need_no_partition() -> None:
    found = gw.sql(NUMBERED.format("ROW_NUMBER()", "", "<= 2"), t=stream(table())).result()
    assert found.column_names == ["v", "rn", "change"]
    assert sorted((row["v"], row["rn"]) for row in found.to_pylist()) == [(2, 2), (3, 1)]


@pytest.mark.parametrize("bounds", ["ON {} WHERE {}", "ON {} AND {}", "ON {} WHERE {} AND a.v > 1"])
def test_an_inner_join_may_have_its_bounds_in_where(bounds: str) -> None:
    near = "a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' MINUTE"
    text = f"SELECT a.v AS x, b.v AS y FROM t AS a JOIN t AS b {bounds.format('a.v >= b.v', near)}"
    found = gw.sql(text, t=stream(table())).result().to_pylist()
    wanted = [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)]
    chosen = [pair for pair in wanted if "a.v > 1" not in bounds or pair[0] > 1]
    assert sorted((row["x"], row["y"]) for row in found) == chosen


@pytest.mark.parametrize("how", ["LEFT", "RIGHT", "FULL OUTER"])
def test_bounds_in_where_of_an_outer_join_make_it_inner(how: str) -> None:
    near = "a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' MINUTE"
    text = f"SELECT a.v AS x, b.v AS y FROM t AS a {{}} JOIN t AS b ON a.v = b.v WHERE {near}"
    inner, outer = (gw.sql(text.format(each), t=stream(table())) for each in ("", how))
    assert outer.explain() == inner.explain()
    assert len(inner.result())


def test_one_bound_in_where_is_refused() -> None:
    text = "SELECT a.v AS x FROM t AS a LEFT JOIN t AS b ON a.v = b.v WHERE a.ts > b.ts"
    with pytest.raises(SqlError, match="a lower and an upper bound of time"):
        gw.sql(text, t=stream(table()))


def test_a_stream_tells_that_where_leaves_the_watermark_behind(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    batch = spark.createDataFrame(table().rename_columns(["value", "ts"]))
    text = f"SELECT COUNT(*) AS n {HOUR}{{}} GROUP BY window_start, window_end"
    told = "rows that it filters out do not advance the watermark"
    for frame, where, tells in (
        (rate, " WHERE `value` > 1", True),
        (rate, "", False),
        (batch, " WHERE `value` > 1", False),
    ):
        shown = gw.sql(text.format(where), t=stream(frame)).explain()
        assert (told in shown) is tells
