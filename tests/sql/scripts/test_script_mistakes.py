"""What people get wrong in scripts: the advice, and the place in the text."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import OutputError, SqlError

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
    "an unknown option of SET": (
        f"SET #'execution.runtime-mod' = 'batch'; {ORDERS} SELECT id FROM orders",
        "did you mean execution.runtime-mode; those that are followed: execution.runtime-mode, ",
    ),
    "another one": (
        f"SET #'table.exec.source.idle-timeot' = '1 s'; {ORDERS} SELECT id FROM orders",
        "did you mean table.exec.source.idle-timeout",
    ),
    "a name of an option without quotes": (
        f"SET #pipeline.nam = 'x'; {ORDERS} SELECT id FROM orders",
        "did you mean pipeline.name",
    ),
    "an unknown option of files": (
        "CREATE TABLE o (id INT) WITH ('connector' = 'filesystem', #'pth' = 'it''s', "
        "'format' = 'csv'); SELECT id FROM o",
        "table o: this option is not covered: did you mean path, got pth",
    ),
    "an unknown option of Kafka": (
        "CREATE TABLE o (id INT) WITH ('connector' = 'kafka', #'topics' = 'x'); SELECT id FROM o",
        "did you mean topic",
    ),
    "an unknown option of datagen": (
        "CREATE TABLE o (id INT) WITH ('connector' = 'datagen', #'row-per-second' = '5'); "
        "SELECT id FROM o",
        "did you mean rows-per-second",
    ),
    "an unknown option of a format": (
        "CREATE TABLE #o (id INT) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = "
        "'csv', 'csv.field-delimeter' = ';'); SELECT id FROM o",
        "did you mean field-delimiter",
    ),
    "an unknown connector": (
        "CREATE TABLE o (id INT) WITH (#'connector' = 'kafak'); SELECT id FROM o",
        "did you mean kafka; or sql_script(text, o=gw.stream(rows))",
    ),
    "no connector": (
        "CREATE TABLE #o (id INT); SELECT id FROM o",
        "it has no connector: WITH ('connector' = 'filesystem', ...), or sql_script(text, o=",
    ),
    "an unknown table function": (
        f"{ORDERS} SELECT * FROM TABLE(#TUMBEL(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
        "there are TUMBLE, HOP, CUMULATE, SESSION: did you mean TUMBLE, got TUMBEL",
    ),
    "no comma": (f"{ORDERS} SELECT id name #ts FROM orders", "maybe a , is missing before it"),
    "no semicolon": (
        f"{ORDERS} SELECT id FROM orders #SELECT name FROM orders",
        "maybe a ; is missing before it, got SELECT",
    ),
    "no watermark": (
        "CREATE TABLE orders (id BIGINT, ts TIMESTAMP(3)); SELECT COUNT(*) FROM TABLE(TUMBLE("
        "TABLE orders, DESCRIPTOR(#ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end",
        "orders needs an event time: in CREATE TABLE, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND",
    ),
    "no such time of a lookup": (
        f"{ORDERS} CREATE TABLE c (id BIGINT); SELECT o.id FROM orders AS o JOIN c FOR "
        "SYSTEM_TIME AS OF o.#proctime AS c ON o.id = c.id",
        "there is no such column; there are id, name, ts",
    ),
    "versions by a view": (
        f"{ORDERS} CREATE VIEW v AS SELECT id, name, ts FROM (SELECT *, ROW_NUMBER() OVER ("
        "PARTITION BY id ORDER BY ts DESC) AS n FROM orders) WHERE n = 1; SELECT a.id FROM orders "
        "AS a JOIN #v FOR SYSTEM_TIME AS OF a.ts AS b ON a.id = b.id",
        "JOIN orders FOR SYSTEM_TIME AS OF a.ts, got v",
    ),
    "a time of day": (
        f"{ORDERS} SELECT #CAST(ts AS TIME) FROM orders",
        "got CAST(ts AS TIME)",
    ),
    "digits of a type": (
        f"CREATE TABLE t (a #TIMESTAMP(9)) {WITH}",
        "a precision of at most 6, got TIMESTAMP(9)",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_advice_and_a_place(name: str) -> None:
    text, rule = MISTAKES[name]
    plain = text.replace("#", "", 1)
    streams = {"orders": gw.stream(ROWS), "c": gw.stream(ROWS.select(["id"]))}
    with pytest.raises(SqlError) as caught:
        gw.sql_script(plain, **streams).results()
    assert rule in str(caught.value)
    assert (caught.value.line, caught.value.position) == (1, text.index("#") + 1)


def test_what_write_cannot_write_is_for_spark() -> None:
    text = f"{ORDERS} INSERT INTO orders SELECT * FROM orders"
    rule = r"not written to kafka: write\(sinks={'orders': path}\), or on Spark write_stream\("
    with pytest.raises(SqlError, match=rule):
        gw.sql_script(text, orders=gw.stream(ROWS)).write()


def test_results_at_a_path_are_replaced_by_insert_overwrite(tmp_path: Path) -> None:
    text = f"""
    CREATE TABLE o (a INT)
      WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/o', 'format' = 'parquet');
    INSERT INTO o SELECT 1
    """
    gw.sql_script(text).write()
    with pytest.raises(OutputError, match="in SQL by INSERT OVERWRITE"):
        gw.sql_script(text).write()
    gw.sql_script(text.replace("INTO", "OVERWRITE")).write()


@pytest.mark.parametrize("name", ["execution.checkpointing.min-pause", "pipeline.object-reuse"])
def test_options_of_flink_that_change_no_result_are_accepted(name: str) -> None:
    explained = gw.sql_script(f"SET '{name}' = '1'; SELECT 1 AS one").explain()
    assert f"SET {name}: changes no result" in explained


def test_explain_refuses_unknown_options() -> None:
    with pytest.raises(SqlError, match=r"did you mean pipeline\.name"):
        gw.sql_script("SET 'pipeline.nme' = '1'; SELECT 1 AS one").explain()
