"""IN and EXISTS with a subquery, and what is grouped or numbered over a join."""

from __future__ import annotations

import random
from typing import Any

import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from tests.planning.queries import rows_of
from tests.sql.texts import rows, stream

FIVE = "TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '5' SECOND)"
T, U = FIVE.format("t"), FIVE.format("u")
SAME = "a.window_start = b.window_start AND a.window_end = b.window_end"
SEMI = f"SELECT a.n, a.ts FROM (SELECT * FROM {T}) a LEFT {{}} JOIN (SELECT * FROM {U}) b ON {{}}"


@pytest.fixture(scope="module")
def tables() -> dict[str, gw.typing.TimedStream]:
    rng = random.Random(17)
    return {name: stream(rows(rng, 120)) for name in "tu"}


@pytest.mark.parametrize(
    ("where", "kind", "on"),
    [
        (f"k IN (SELECT k FROM {U} b WHERE {SAME})", "SEMI", f"a.k = b.k AND {SAME}"),
        (f"(A.K) in (select B.K from {U} as B where {SAME})", "SEMI", f"a.k = b.k AND {SAME}"),
        (f"NOT (k NOT IN (SELECT `k` FROM {U} `b` WHERE ({SAME})))", "SEMI",
         f"(a.k = b.k OR a.k IS NULL OR b.k IS NULL) AND {SAME}"),
        (f"k NOT IN (SELECT b.k AS x FROM (SELECT * FROM {U} WHERE v > 0) b WHERE {SAME})", "ANTI",
         f"(a.k = b.k OR a.k IS NULL OR b.k IS NULL) AND b.v > 0 AND {SAME}"),
        (f"(k, n) IN (SELECT k, n FROM {U} b WHERE {SAME})", "SEMI",
         f"a.k = b.k AND a.n = b.n AND {SAME}"),
        (f"k || 'x' IN (SELECT DISTINCT k || 'x' FROM {U} b WHERE {SAME} AND b.n = a.n)", "SEMI",
         f"a.k = b.k AND a.n = b.n AND {SAME}"),
        (f"EXISTS (SELECT 1 FROM {U} b WHERE k = a.k AND {SAME})", "SEMI", f"a.k = b.k AND {SAME}"),
        (f"NOT EXISTS (SELECT * FROM {U} b WHERE {SAME} AND b.k = a.k AND b.v > a.v)", "ANTI",
         f"a.k = b.k AND b.v > a.v AND {SAME}"),
        (f"(NOT (EXISTS (SELECT k, v FROM (SELECT * FROM {U}) b WHERE {SAME} AND v > 15)))", "ANTI",
         f"b.v > 15 AND {SAME}"),
    ],
)  # fmt: skip
def test_it_is_a_join(tables: Any, where: str, kind: str, on: str) -> None:
    found = gw.sql(f"SELECT n, ts FROM {T} a WHERE {where}", **tables)
    wanted = gw.sql(SEMI.format(kind, on), **tables).result()
    if "NOT (k NOT IN" in where:  # not true for nulls, where a join is
        found, wanted = (
            gw.sql(each, **tables)
            for each in (
                f"SELECT n, ts FROM {T} a WHERE k IS NOT NULL AND k NOT IN "
                f"(SELECT k FROM {U} b WHERE {SAME} AND k IS NOT NULL)",
                SEMI.format("ANTI", f"a.k = b.k AND {SAME}") + " WHERE a.k IS NOT NULL",
            )
        )
        wanted = wanted.result()
    assert found.result().column_names == wanted.column_names
    assert rows_of(found.result()) == rows_of(wanted)
    assert 0 < len(wanted) < 120


def test_a_subquery_of_the_same_table_under_the_same_name(tables: Any) -> None:
    whole = tables["t"]
    same = "t.window_start = o.window_start AND t.window_end = o.window_end"
    inner = f"SELECT 1 FROM (SELECT * FROM {T} WHERE v > 5) t WHERE t.k = o.k AND {same}"
    found = gw.sql(f"SELECT n FROM {T} o WHERE EXISTS ({inner})", t=whole).result()
    hidden = f"SELECT n FROM {T} t WHERE k IN (SELECT t.k FROM {T} t WHERE t.v > 5)"
    with pytest.raises(SqlError, match="window_start and window_end of both sides"):
        gw.sql(hidden, t=whole)
    assert 0 < len(found) < 120


def test_exists_in_an_interval(tables: Any) -> None:
    near = "b.k = a.k AND b.ts BETWEEN a.ts - INTERVAL '1' SECOND AND a.ts"
    exists = f"SELECT n, v FROM t a WHERE v > 0 AND EXISTS (SELECT 1 FROM u b WHERE {near})"
    joined = f"SELECT a.n, a.v FROM t a LEFT SEMI JOIN u b ON {near} WHERE a.v > 0"
    found = gw.sql(exists, **tables).result()
    assert rows_of(found) == rows_of(gw.sql(joined, **tables).result())
    assert len(found)


#: A text in which # is before the place of the error, and words of the rule.
MISTAKES = {
    "two": (
        f"SELECT n FROM {T} a WHERE k IN (SELECT k FROM {U} b WHERE {SAME}) AND "
        f"#EXISTS (SELECT k FROM {U} b WHERE {SAME})",
        "takes one IN or EXISTS",
    ),
    "windows of one side": (
        f"SELECT n FROM {T} a WHERE k IN (SELECT #k FROM u)", "windows on both sides"
    ),
    "no equal windows": (
        f"SELECT n FROM {T} a WHERE k IN (SELECT #k FROM {U} b)", "window_start and window_end"
    ),
    "no time": ("SELECT n FROM t a WHERE k IN (SELECT #k FROM u)", "lower and an upper bound"),
    "GROUP BY": (
        f"SELECT n FROM {T} a WHERE k IN (SELECT k FROM {U} b WHERE {SAME} GROUP BY #k)",
        "put more into its FROM",
    ),
    "an aggregate, which always has a row": (
        f"SELECT n FROM {T} a WHERE EXISTS (SELECT #COUNT(k) FROM {U} b WHERE {SAME})",
        "has no aggregates",
    ),
    "two columns": (
        f"SELECT n FROM {T} a WHERE #k IN (SELECT k, n FROM {U} b WHERE {SAME})", "selects one"
    ),
    "NOT IN of two": (
        f"SELECT n FROM {T} a WHERE (#k, n) NOT IN (SELECT k, n FROM {U} b WHERE {SAME})",
        "use NOT EXISTS",
    ),
    "in OR": (
        f"SELECT n FROM {T} a WHERE v > 1 OR k IN (SELECT #k FROM {U} b WHERE {SAME})",
        "a query in an expression",
    ),
    "three tables": (
        "SELECT COUNT(*) FROM t JOIN #u ON t.k = u.k JOIN t AS w ON w.k = t.k GROUP BY t.k",
        "needs a lower and an upper bound",
    ),
    "a comma and a third": ("SELECT t.k FROM t, #u, t AS w WHERE w.k = t.k", "needs a lower and"),
    "the other time": (
        "SELECT COUNT(*) AS n FROM t JOIN u ON t.k = u.k AND u.ts BETWEEN t.ts AND t.ts + "
        "INTERVAL '1' SECOND GROUP BY TUMBLE(t.#ts, INTERVAL '1' SECOND)",
        "does not select its time",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", MISTAKES)
def test_mistakes_are_told_with_their_place(tables: Any, wrong: str) -> None:
    marked, rule = MISTAKES[wrong]
    place, text = marked.index("#") + 1, marked.replace("#", "")
    with pytest.raises(SqlError, match=rule) as caught:
        gw.sql(text, **tables)
    assert (caught.value.line, caught.value.position) == (1, place)


TOP = "SELECT k, v FROM (SELECT *, {} OVER ({} ORDER BY v DESC) AS r FROM {}) WHERE {}"


@pytest.mark.parametrize("condition", ["r = 2", "2 = r", "r IN (2)", "r BETWEEN 2 AND 2"])
def test_one_number_of_a_top(tables: Any, condition: str) -> None:
    by = "PARTITION BY window_start, window_end"
    found = gw.sql(TOP.format("ROW_NUMBER()", by, T, condition), **tables).result()
    wanted = TOP.format("ROW_NUMBER()", by, T, "r <= 2 AND r > 1")
    assert rows_of(found) == rows_of(gw.sql(wanted, **tables).result())
    assert len(found)


def test_no_number_of_a_top(tables: Any) -> None:
    by = "PARTITION BY window_start, window_end"
    text = TOP.format("ROW_NUMBER()", by, T, "r BETWEEN 2 AND 1")
    assert len(gw.sql(text, **tables).result()) == 0


@pytest.mark.parametrize(
    ("function", "by", "table", "condition", "rule"),
    [
        ("RANK()", "PARTITION BY k", "t", "r <= 2", "for top-N use ROW_NUMBER"),
        ("DENSE_RANK()", "PARTITION BY k", "t", "r = 1", "for top-N use ROW_NUMBER"),
        ("ROW_NUMBER()", "PARTITION BY k", "t", "r > 2", "WHERE number <= 3"),
        ("ROW_NUMBER()", "PARTITION BY k", "t", "r = 0", "WHERE number <= 3"),
        ("RANK()", "PARTITION BY window_start, window_end", T, "r <= 2", "WHERE number <= 3"),
        ("ROW_NUMBER()", "", T, "r <= 2", "PARTITION BY needs window_start and window_end"),
    ],
)  # fmt: skip
def test_other_numbers_are_refused_with_advice(
    tables: Any, function: str, by: str, table: str, condition: str, rule: str
) -> None:
    with pytest.raises(SqlError, match=rule):
        gw.sql(TOP.format(function, by, table, condition), **tables)


def test_a_top_of_all_rows_needs_no_keys(tables: Any) -> None:
    found = gw.sql(TOP.format("ROW_NUMBER()", "", "t", "r <= 3"), **tables).result()
    assert found["change"].to_pylist() == ["insert"] * 3
