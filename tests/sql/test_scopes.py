"""Which names a query sees, which clauses it reads, and names that the API has, too."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import QueryError, SqlError
from tests.sql.texts import MONOTONOUS, stream

HOURS = "FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)"
BY = "GROUP BY window_start, window_end"
NUMBER = "ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS r"
TOP = f"(SELECT *, {NUMBER} FROM t)"


def table() -> pa.Table:
    times = pa.array([0, 5, 60, 61, 62], pa.timestamp("s", "UTC"))
    return pa.table({"k": list("abaca"), "ts": times, "v": [1, 2, 3, 4, 5], "s": list("vwxyz")})


def found(text: str) -> dict[str, list[Any]]:
    """Return the results of a text; what it says in Python gives the same."""
    tables = {"t": stream(table())}
    query = gw.sql(text, **tables)
    said = query.explain().partition("\n\n")[0]
    again = eval(f"({said})", {"gw": gw, **tables}).result()  # noqa: S307
    assert again.equals(query.result())
    columns: dict[str, list[Any]] = query.result().to_pydict()
    return columns


def test_names_of_results_may_be_those_of_parameters() -> None:
    text = f"SELECT k AS method, COUNT(*) > 1 AS `where`, COUNT(*) AS self {HOURS} {BY}, k"
    assert found(text) == {
        "method": ["a", "b", "c"],
        "where": [True, False, False],
        "self": [3, 1, 1],
    }
    inner = "(SELECT v + 1 AS self, s AS method, v * 2 AS v, ts FROM t)"
    text = f"SELECT self, v, COUNT(*) OVER (ORDER BY ts) AS `where` FROM {inner}"
    assert found(text) == {"self": [2, 3, 4, 5, 6], "v": [2, 4, 6, 8, 10], "where": [1, 2, 3, 4, 5]}
    assert stream(table()).with_columns(self="v + 1").source.schema.names[-1] == "self"


def test_computed_results_stand_in_their_place_and_others_stay_as_they_are() -> None:
    query = gw.sql(f"SELECT k, COUNT(*) + 1 AS m, window_end {HOURS} {BY}, k", t=stream(table()))
    assert query.outputs().unchanged_columns == frozenset({"k", "window_end"})
    assert query.result().column_names == ["k", "m", "window_end"]
    windowed = stream(table()).key_by("k").window(gw.TumblingEventTimeWindows.of("1 hour"))
    outputs = windowed.with_outputs().aggregate(n=gw.count())
    chosen = outputs.select({"where": "n > 1"}, "k", self="n", where="n < 3")
    assert chosen.result().to_pydict() == {"where": [False, False], "k": ["b", "c"], "self": [1, 1]}
    with pytest.raises(QueryError, match="takes names one by one, and expressions by name"):
        outputs.select(3)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="results have different names"):
        outputs.select("k", {"K": "n"})


def test_a_query_of_with_sees_those_before_it() -> None:
    text = (
        "WITH a AS (SELECT * FROM t), t AS (SELECT * FROM t WHERE v > 3) "
        f"SELECT COUNT(*) AS c {HOURS.replace('TABLE t', 'TABLE {}')} {BY}"
    )
    assert found(text.format("a")) == {"c": [5]}
    assert found(text.format("t")) == {"c": [2]}
    numbered = f"WITH a AS (SELECT *, {NUMBER} FROM t), t AS (SELECT * FROM t WHERE v < 3) "
    assert sorted(found(f"{numbered} SELECT k, v FROM a WHERE r = 1")["v"]) == [2, 4, 5]
    within = f"(WITH t AS (SELECT * FROM t WHERE v < 4) SELECT *, {NUMBER} FROM t)"
    assert sorted(found(f"SELECT k, v FROM {within} WHERE r = 1")["v"]) == [2, 3]


def test_a_query_shows_the_columns_that_it_chooses() -> None:
    over = "SELECT *, COUNT(*) OVER (ORDER BY ts) AS c FROM (SELECT k AS key, ts FROM t)"
    assert [*found(over)] == ["key", "ts", "c"]
    top = f"SELECT * FROM (SELECT *, {NUMBER} FROM (SELECT v, k, ts FROM t)) WHERE r = 1"
    assert [*found(top)] == ["v", "k", "ts", "r", "change"]
    near = "x.k = y.k AND x.ts BETWEEN y.at AND y.at + INTERVAL '2' MINUTES"
    inner = "(SELECT k, ts AS at, v AS w FROM t)"
    join = f"SELECT y.*, x.v FROM t AS x JOIN {inner} AS y ON {near}"
    pairs = found(join)
    assert [*pairs] == ["k", "at", "w", "v"]
    older = [(1, 1), (1, 3), (1, 5), (2, 2), (3, 3), (3, 5), (4, 4), (5, 5)]
    assert sorted(zip(pairs["w"], pairs["v"], strict=True)) == older


#: What is wrong, a text in which # is before the place that is told, and words of the rule.
MISTAKES = {
    "a column that is not chosen": (
        "SELECT #v, COUNT(*) OVER (ORDER BY ts) AS c FROM (SELECT k, ts FROM t)",
        "there is no such column; there are k, ts, got v",
    ),
    "a time that is not chosen": (
        f"SELECT COUNT(*) AS c {HOURS.replace('TABLE t', 'TABLE (SELECT v FROM t)')} {BY}".replace(
            "DESCRIPTOR(", "DESCRIPTOR(#"
        ),
        "no such column; there are v",
    ),
    "HAVING of rows": (
        f"SELECT COUNT(*) AS c {HOURS.replace('t,', '(SELECT * FROM t HAVING #v > 3),')} {BY}",
        "HAVING needs GROUP BY",
    ),
    "HAVING of numbers": (
        f"SELECT * FROM (SELECT *, {NUMBER} FROM t HAVING #v > 3) WHERE r = 1",
        "WHERE as the only other clause",
    ),
    "numbers of a join": (
        f"SELECT v FROM (SELECT #v, {NUMBER} FROM t JOIN t AS u ON t.k = u.k) WHERE r = 1",
        "write the table before it",
    ),
    "OVER beside a number": (
        f"SELECT q FROM (SELECT #RANK() OVER (ORDER BY ts) AS q, {NUMBER} FROM t) WHERE r = 1",
        "OVER is allowed in the list of SELECT alone",
    ),
    "some of all columns": (f"SELECT #* EXCEPT (v) {HOURS}", "name the columns"),
    "names after AS": (
        "SELECT a FROM t AS f (#a, b) ORDER BY a",
        "name columns with AS in the list of SELECT",
    ),
    "one name twice in WITH": (
        f"WITH a AS (SELECT 1 FROM t), #A AS (SELECT * FROM t) SELECT COUNT(*) AS c {HOURS} {BY}",
        "two queries of WITH have the same name, got a",
    ),
    "several of the least": (
        f"SELECT #MIN_BY(s, v, 2) AS m {HOURS} {BY}",
        "leave out the number of values",
    ),
    "all columns of another top": (
        f"SELECT z.#* FROM {TOP} AS q WHERE r = 1",
        "there is no such table here; there is q, got z",
    ),
    "a condition on a row that changes": (
        f"SELECT * FROM {TOP} WHERE r = 1 AND #v > 3",
        "filtered by keys and number alone",
    ),
    "such a condition around": (
        f"SELECT k FROM (SELECT * FROM {TOP} WHERE r = 1) WHERE #v > 3",
        "an update does not carry the row it replaces",
    ),
    "a name for changes": (
        f"SELECT k, #v AS change FROM {TOP} WHERE r = 1",
        "a column of this name for the kind of change",
    ),
}


@pytest.mark.parametrize("wrong", MISTAKES)
def test_mistakes_are_told_with_their_place(wrong: str) -> None:
    marked, rule = MISTAKES[wrong]
    place, text = marked.index("#") + 1, marked.replace("#", "")
    with pytest.raises(SqlError, match=re.escape(rule)) as caught:
        gw.sql(text, t=stream(table()))
    assert (caught.value.line, caught.value.position) == (1, place)


def test_changes_stay_changes_whatever_is_chosen_of_them() -> None:
    assert found(f"SELECT k FROM (SELECT v, k FROM {TOP} WHERE r <= 1) WHERE k <> 'a'") == {
        "k": ["b", "c"],
        "change": ["insert", "insert"],
    }
    assert found(f"SELECT q.* FROM {TOP} AS q WHERE r <= 2 AND r > 1")["v"] == [3]
    whole = f"SELECT k, v FROM {TOP} WHERE r <= 2 AND v > 1"  # rows without a number leave whole
    assert sorted(found(whole)["v"]) == [2, 3, 4, 5]


def test_conditions_on_changes_are_refused_in_python_too() -> None:
    tops = stream(table()).key_by("k").with_outputs().top(2, "v")
    assert tops.select(key="`k`").select(where="key = 'b'").result()["key"].to_pylist() == ["b"]
    assert len(tops.select("k", "v", where="row_number > 1 AND k = 'a'").result()) == 1
    for outputs, where in ((tops, "v > 3"), (tops.select("v"), "v > 3"), (tops, "change = 'x'")):
        with pytest.raises(QueryError, match="filtered by keys and number alone"):
            outputs.select(where=where)
    with pytest.raises(QueryError, match=r"the change column.s: .*, got change"):
        tops.select("k", change="v")
    with pytest.raises(SqlError, match="there is no such column"):
        tops.select(where="nowhere > 3")


def test_a_reader_is_read_once() -> None:
    def read() -> gw.typing.TimedStream:
        reader = pa.RecordBatchReader.from_batches(table().schema, table().to_batches(2))
        return gw.stream(reader).event_time("ts", MONOTONOUS)

    query = gw.sql(f"SELECT COUNT(*) AS c {HOURS} {BY}", t=read())
    assert query.result().equals(query.result())
    assert query.result()["c"].to_pylist() == [5]
    near = "f.k = g.k AND f.ts BETWEEN g.ts AND g.ts + INTERVAL '1' HOUR"
    with pytest.raises(SqlError, match="is read once") as caught:
        gw.sql(f"SELECT f.k FROM t AS f JOIN t AS g ON {near}", t=read())
    assert caught.value.position == len("SELECT f.k FROM t AS f JOIN ") + 1


def test_keys_of_joins_are_integers_of_any_size() -> None:
    narrow = table().set_column(2, "v", pa.array([1, 2, 3, 4, 5], pa.int32()))
    near = "f.ts BETWEEN g.ts AND g.ts + INTERVAL '2' MINUTES"
    tables = {"f": stream(narrow), "g": stream(table()), "h": stream(narrow)}
    for other in "gh":
        text = f"SELECT f.v, {other}.s FROM f JOIN {other} ON {near} AND f.v + 0 = {other}.v"
        pairs = gw.sql(text.replace("g.ts", f"{other}.ts"), **tables).result().to_pydict()
        assert sorted(zip(pairs["v"], pairs["s"], strict=True)) == [*enumerate("vwxyz", 1)]
    with pytest.raises(SqlError, match="a key has the same type in both inputs"):
        gw.sql(f"SELECT f.v FROM f JOIN g ON {near} AND f.s = g.v", **tables)


def test_columns_that_carry_time_are_not_written_over() -> None:
    rows = table().append_column("at", table()["ts"])
    carried = gw.WatermarkStrategy.for_punctuated("at")
    of = gw.stream(rows).event_time("ts", carried)
    for name, what in (("TS", "event time"), ("At", "column of watermarks")):
        with pytest.raises(QueryError, match=f"the {what} is chosen by event_time"):
            of.with_columns(**{name: "v"})
    with pytest.raises(QueryError, match="columns have different names, got 'V', 'v'"):
        of.with_columns(V="v + 1")
