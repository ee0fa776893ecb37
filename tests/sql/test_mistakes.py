"""What people get wrong in SQL: the rule, and the place in the text."""

from __future__ import annotations

import pickle
import re

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import ExpressionError, QueryError, SqlError
from tests.docs.setups import times

WAITS = gw.WatermarkStrategy.for_bounded_out_of_orderness("5 seconds")
IN = "FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES)"
BY = "GROUP BY window_start, window_end"
NEAR = "t.k = u.k AND u.at BETWEEN t.ts AND t.ts + INTERVAL '5' MINUTES"
OF = "window function must be TUMBLE(TABLE t, DESCRIPTOR(time), size [, offset])"
NUMBERED = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM t)"

#: What is wrong, a text in which # is before the place that is told, and words of the rule.
MISTAKES = {
    "empty": ("", "SQL must be a string that is not empty"),
    "two statements": (f"SELECT COUNT(*) AS n {IN} {BY}; SELECT 1", "must be one statement"),
    "a quote that does not end": ("SELECT 'k FROM t", "the SQL cannot be parsed"),
    "no FROM": ("SELECT * FROM", "the SQL cannot be parsed"),
    "a statement that writes": ("#INSERT INTO x SELECT * FROM t", "a query must be one SELECT"),
    "two queries": (f"SELECT COUNT(*) AS n {IN} {BY} UNION ALL SELECT #1", "an event time"),
    "unknown table": ("SELECT COUNT(*) FROM #nowhere", "no such table; sql() is given t, u, bare"),
    "unknown function": (
        f"SELECT COUNT(*) FROM #SLIDE(TABLE t, DESCRIPTOR(ts)) {BY}",
        "there are TUMBLE, HOP, CUMULATE, SESSION",
    ),
    "a view of itself": (
        "WITH x AS (SELECT * FROM #x) SELECT COUNT(*) AS n FROM x",
        "no such table",
    ),
    "unknown column": (f"SELECT SUM(#w) AS n {IN} {BY}", "no such column; there are k, ts, v"),
    "column of no group": (f"SELECT #v, COUNT(*) AS n {IN} {BY}", "nor in GROUP BY"),
    "all columns of groups": (f"SELECT #*, COUNT(*) AS n {IN} {BY}", "name keys and aggregates"),
    "no window_end": (f"SELECT COUNT(*) AS n {IN} GROUP BY #window_start", "GROUP BY needs both"),
    "an aggregate of rows in windows": (
        "SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR) WHERE #COUNT(*) > 1",
        "in the list of SELECT",
    ),
    "all columns of another table": (
        "SELECT z.#* FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR) AS h",
        "there is no such table here; there is h, got z",
    ),
    "a name that windows have": (
        "SELECT k, window_end, #v AS WINDOW_END FROM TUMBLE(TABLE t, DESCRIPTOR(ts), "
        "INTERVAL '1' HOUR)",
        "differ in case alone: rename one with AS, got WINDOW_END",
    ),
    "sessions of no column": (
        "SELECT k FROM SESSION(TABLE t PARTITION BY #1, DESCRIPTOR(ts), INTERVAL '1' SECOND)",
        "PARTITION BY of SESSION takes columns",
    ),
    "a frequency": (f"SELECT #PERCENTILE(v, 0.5, v) AS n {IN} {BY}", "is not covered"),
    "nothing chosen": (f"SELECT {IN} {BY}", "SELECT needs a list of columns"),
    "no windows": ("SELECT k, COUNT(*) AS n FROM t GROUP BY #k", "never ends on a stream"),
    "no GROUP BY": (f"SELECT #COUNT(*) AS n {IN}", "GROUP BY window_start, window_end"),
    "an aggregate of rows": ("SELECT v FROM t WHERE #MAX(v) > 1", "an aggregate is allowed in"),
    "HAVING of rows": ("SELECT k FROM t HAVING #k = 'a'", "filter rows with WHERE"),
    "no such column of rows": ("SELECT k, #nosuch FROM t", "there is no such column"),
    "an expression of rows": ("SELECT k, v AS a, #k + 1 AS b FROM t", "this takes numbers"),
    "a name twice": ("SELECT k, #v AS K FROM t", "differ in case alone"),
    "ORDER BY": (f"SELECT COUNT(*) AS n {IN} {BY} ORDER BY #nosuch", "neither an aggregate"),
    "LIMIT": (f"SELECT COUNT(*) AS n {IN} {BY} LIMIT #'3'", "LIMIT takes a whole number"),
    "another time": (
        f"SELECT COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(#other), INTERVAL '1' HOUR) {BY}",
        "the event time of t is ts",
    ),
    "time of processing": (
        f"SELECT COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(#PROCTIME()), INTERVAL '1' HOUR) {BY}",
        "the time at which rows arrive",
    ),
    "no DESCRIPTOR": (f"SELECT 1 FROM #TUMBLE(TABLE t, ts, INTERVAL '1' HOUR) {BY}", OF),
    "no TABLE": (f"SELECT 1 FROM #TUMBLE(t, DESCRIPTOR(ts), INTERVAL '1' HOUR) {BY}", OF),
    "no time": (
        f"SELECT 1 FROM TUMBLE(TABLE bare, DESCRIPTOR(#ts), INTERVAL '1' HOUR) {BY}",
        "bare needs an event time",
    ),
    "no multiple": (
        "SELECT 1 FROM #CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '4' MINUTES, "
        f"INTERVAL '10' MINUTES) {BY}",
        "must be a multiple of step",
    ),
    "months": (
        f"SELECT 1 FROM SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL #'1' MONTH) {BY}",
        "no fixed length",
    ),
    "no months": (
        f"SELECT 1 FROM #TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '0' MONTH) {BY}",
        "size must be positive",
    ),
    "months and hours": (
        f"SELECT 1 FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL #'1' HOUR, INTERVAL '1' MONTH) {BY}",
        "of days or months",
    ),
    "months and weeks": (
        f"SELECT 1 FROM #HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '7' DAY, INTERVAL '1' MONTH) {BY}",
        "slide must be in days and weeks, or in months and years",
    ),
    "a duration that is none": (
        f"SELECT 1 FROM TUMBLE(TABLE t, DESCRIPTOR(ts), #10) {BY}",
        "INTERVAL '10' MINUTES",
    ),
    "no size": (
        f"SELECT 1 FROM #TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '0' HOUR) {BY}",
        "size must be positive",
    ),
    "sessions of other keys": (
        "SELECT s, COUNT(*) FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), "
        f"INTERVAL '4' MINUTES) {BY}, s",
        "must have the same keys",
    ),
    "two windows": (
        "SELECT COUNT(*) AS n FROM t GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), "
        "#HOP(ts, INTERVAL '1' HOUR, INTERVAL '2' HOUR)",
        "rows can be assigned to windows once",
    ),
    "another window's start": (
        "SELECT HOP_START(ts, INTERVAL '1' HOUR) AS w, COUNT(*) AS n FROM t "
        "GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
        "this must repeat the window of GROUP BY",
    ),
    "nested aggregate": (f"SELECT SUM(#COUNT(*)) AS n {IN} {BY}", "in the list of SELECT"),
    "aggregate in WHERE": (f"SELECT SUM(v) {IN} WHERE #SUM(v) > 1 {BY}", "and in HAVING"),
    "window in WHERE": (
        f"SELECT SUM(v) {IN} WHERE #window_start > ts {BY}",
        "allowed in results",
    ),
    "one name twice": (
        f"SELECT SUM(v) AS x, #COUNT(*) AS X {IN} {BY}",
        "rename one with AS, got X",
    ),
    "aggregate of text": (f"SELECT #SUM(s) AS x {IN} {BY}", "sum takes integers, floats"),
    "unknown aggregate": (f"SELECT #MY_AGG(s) AS x {IN} {BY}", "gw.user_aggregate"),
    "a list in an order": (
        f"SELECT #LISTAGG(DISTINCT s ORDER BY s) AS x {IN} {BY}",
        "without ORDER BY",
    ),
    "a list with nulls": (f"SELECT #ARRAY_AGG(v) AS x {IN} {BY}", "ARRAY_AGG keeps nulls"),
    "a list by a column": (f"SELECT #LISTAGG(s, k) AS x {IN} {BY}", "a literal between"),
    "unknown scalar": (f"SELECT #PROCTIME() AS p, COUNT(*) {IN} {BY}", "would depend on when"),
    "query in WHERE": (f"SELECT SUM(v) {IN} WHERE k IN (SELECT #k FROM u) {BY}", "windows on both"),
    "join without time": (
        "SELECT t.k FROM t JOIN #u ON t.k = u.k",
        "a lower and an upper bound of time",
    ),
    "join with one bound": (
        "SELECT t.k FROM t JOIN #u ON t.k = u.k AND u.at > t.ts",
        "a lower and an upper bound",
    ),
    "whose column": (f"SELECT #v FROM t JOIN u ON {NEAR}", "write the table before it"),
    "nobody's column": (
        f"SELECT x.#k FROM t JOIN u ON {NEAR}",
        "neither t nor u has a column of this name",
    ),
    "aggregate of a join": (f"SELECT #COUNT(*) AS n FROM t JOIN u ON {NEAR}", "needs GROUP BY"),
    "USING": ("SELECT t.k FROM t JOIN #u USING (k)", "use ON a.key = b.key"),
    "join with itself": (
        "SELECT t.k FROM t JOIN #t ON t.k = t.k",
        "have the same name: rename one with AS",
    ),
    "a slide longer than its windows": (
        "SELECT COUNT(*) AS n FROM #HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR, "
        "INTERVAL '1' MINUTE) GROUP BY window_start, window_end",
        "HOP takes the slide before the size",
    ),
    "a third table without bounds": (
        f"SELECT t.k FROM t JOIN u ON {NEAR} JOIN #u AS w ON w.k = t.k",
        "needs a lower and an upper bound of time",
    ),
    "whose column of three tables": (
        f"SELECT #v FROM t JOIN u ON {NEAR} JOIN u AS w ON w.k = t.k AND w.at = t.ts",
        "write the table before it",
    ),
    "a lookup of windows": (
        f"SELECT t.v {IN} JOIN #u FOR SYSTEM_TIME AS OF PROCTIME() ON t.k = u.k",
        "a lookup takes a table, and rows without windows",
    ),
    "versions by the right time": (
        "SELECT t.v FROM t JOIN u FOR SYSTEM_TIME AS OF u.#at ON t.k = u.k",
        "as of the left side's event time: t.ts, got u.at",
    ),
    "versions by another time": (
        "SELECT t.v FROM t JOIN u FOR SYSTEM_TIME AS OF t.#other ON t.k = u.k",
        "as of the left side's event time: t.ts, got t.other",
    ),
    "versions of one time": (
        "SELECT t.v FROM t JOIN u FOR SYSTEM_TIME AS OF TIMESTAMP #'2020-01-01 00:00:00' "
        "ON t.k = u.k",
        "as of the left side's event time: t.ts",
    ),
    "versions by number": (
        "SELECT t.v FROM t JOIN u VERSION AS OF #3 ON t.k = u.k",
        "needs FOR SYSTEM_TIME AS OF t.ts, got VERSION AS OF 3",
    ),
    "versions without a key": (
        "SELECT t.v FROM t JOIN #u FOR SYSTEM_TIME AS OF t.ts ON t.v < u.v",
        "needs a key: ON left.key = right.key, got u",
    ),
    "versions with a key in WHERE": (
        "SELECT t.v FROM t JOIN #u FOR SYSTEM_TIME AS OF t.ts WHERE t.k = u.k",
        "needs a key",
    ),
    "versions that are kept": (
        "SELECT u.v FROM t FULL JOIN #u FOR SYSTEM_TIME AS OF t.ts ON t.k = u.k",
        "must be INNER or LEFT, got FULL",
    ),
    "versions of windows": (
        f"SELECT a.v {IN} AS a JOIN u FOR SYSTEM_TIME AS OF a.ts AS b ON a.k = b.k",
        "a join needs windows on both sides, or on neither",
    ),
    "versions of the left side": (
        "SELECT t.v FROM #t FOR SYSTEM_TIME AS OF ts JOIN u ON t.k = u.k",
        "VERSION of a table is not covered",
    ),
    "windows of a join, half": (
        f"SELECT a.k {IN} AS a JOIN #TUMBLE(TABLE u, DESCRIPTOR(at), INTERVAL '10' MINUTES) AS b "
        "ON a.k = b.k AND a.window_start = b.window_start",
        "window_start and window_end of both sides in ON",
    ),
    "OVER by another column": (
        "SELECT SUM(v) OVER (PARTITION BY k ORDER BY #v) AS x FROM t",
        "the event time of t is ts",
    ),
    "OVER from the last": ("SELECT #SUM(v) OVER (ORDER BY ts DESC) AS x FROM t", "ascending"),
    "OVER without order": (
        "SELECT #SUM(v) OVER (PARTITION BY k) AS x FROM t",
        "ORDER BY the event time",
    ),
    "OVER by two keys": (
        "SELECT SUM(v) OVER (PARTITION BY k ORDER BY ts) AS x, "
        "#SUM(v) OVER (PARTITION BY s ORDER BY ts) AS y FROM t",
        "the same PARTITION BY",
    ),
    "OVER of groups": (
        "SELECT #SUM(v) OVER (ORDER BY ts GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "a frame must be ROWS, or a RANGE",
    ),
    "OVER that ends before": (
        "SELECT #SUM(v) OVER (ORDER BY ts ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM t",
        "must not end before it begins",
    ),
    "OVER without a name": ("SELECT #SUM(v) OVER w AS x FROM t", "no WINDOW of this name"),
    "OVER and an aggregate": (
        "SELECT SUM(v) OVER (ORDER BY ts) AS x, #COUNT(*) AS y FROM t",
        "not both",
    ),
    "a number alone": (
        "SELECT k, #ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM t",
        "in an outer query WHERE number <= 3",
    ),
    "numbers of no order": (
        "SELECT * FROM (SELECT *, #ROW_NUMBER() OVER (PARTITION BY k) AS r FROM t) WHERE r <= 3",
        "ROW_NUMBER needs ORDER BY",
    ),
    "no rows": (f"SELECT * FROM {NUMBERED} WHERE r <= 0", "an integer of at least 1"),
    "order of numbers": (
        f"SELECT * FROM {NUMBERED} WHERE r <= 3 ORDER BY #nosuch",
        "there is no such result",
    ),
    "numbers across windows": (
        f"SELECT * FROM (SELECT *, #ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r {IN}) "
        "WHERE r <= 3",
        "PARTITION BY needs window_start and window_end",
    ),
    "QUALIFY": (
        "SELECT k FROM t QUALIFY #ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) = 1",
        "number rows in a subquery",
    ),
}


def streams() -> dict[str, gw.typing.Stream | gw.typing.TimedStream]:
    columns = {"k": ["a", "b"], "ts": times(0, 5), "v": [1.0, 2.0], "s": ["x", "y"]}
    rows = pa.table({**columns, "other": times(1, 2)})
    others = pa.table({"k": ["a", "b"], "at": times(0, 5), "v": [1.0, 2.0]})
    return {
        "t": gw.stream(rows).event_time("ts", WAITS),
        "u": gw.stream(others).event_time("at", WAITS),
        "bare": gw.stream(rows),
    }


@pytest.mark.parametrize("wrong", MISTAKES)
def test_mistakes_are_told_with_their_place(wrong: str) -> None:
    marked, rule = MISTAKES[wrong]
    place, text = marked.find("#") + 1, marked.replace("#", "")
    with pytest.raises(SqlError, match=re.escape(rule)) as caught:
        gw.sql(text, **streams())
    error = caught.value
    assert isinstance(error, QueryError)
    if place:
        assert (error.line, error.position) == (1, place)
        assert f"(line 1, position {place} of the SQL)" in str(error)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own
    assert (str(again), again.position) == (str(error), error.position)


def test_messages_show_the_text_as_it_is_written() -> None:
    text = "SELECT 1 FROM TUMBLE(TABLE t, DESCRIPTOR(ts), SIZE => INTERVAL '1' DAY, SIZE => 1)"
    with pytest.raises(SqlError) as caught:
        gw.sql(text, **streams())
    assert caught.value.value == "TUMBLE(TABLE t, DESCRIPTOR(ts), SIZE => INTERVAL '1' DAY,..."


def test_lines_are_counted() -> None:
    with pytest.raises(SqlError, match="no such column") as caught:
        gw.sql(f"SELECT\n  k,\n  SUM(w) AS n\n{IN}\n{BY}, k", **streams())
    assert (caught.value.line, caught.value.position) == (3, 7)


def test_a_condition_without_a_value_for_a_pair_is_told() -> None:
    text = f"SELECT t.k FROM t JOIN u ON {NEAR} AND 1 / (t.v - t.v) > 0"
    with pytest.raises(ExpressionError, match="has a value for each pair, got divide by zero"):
        gw.sql(text, **streams()).result()


def test_a_version_without_a_time_is_told() -> None:
    with pytest.raises(SqlError, match="needs FOR SYSTEM_TIME"):
        gw.sql("SELECT t.k FROM t JOIN u FOR SYSTEM_TIME AS OF ON t.k = u.k", **streams())


def test_a_table_that_is_no_stream_is_refused() -> None:
    with pytest.raises(QueryError, match="must be a stream with an event time"):
        gw.sql("SELECT 1 FROM t", t=pa.table({"k": [1]}))
