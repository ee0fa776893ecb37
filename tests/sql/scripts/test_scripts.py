"""Scripts over Arrow tables: statements, tables, views, targets, and what is refused where."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from gpu_windows.errors import ExpressionError, OutputError, QueryError, SqlError

BEGIN = dt.datetime(2024, 3, 31, 2)
BIDS = pa.table(
    {
        "Auction": [1, 2, 1, 1],
        "price": [20, 5, 30, 40],
        "channel": ["x", "x", "y", None],
        "ts": pa.array([BEGIN + dt.timedelta(seconds=s) for s in (1, 2, 3, 15)]),
        "unused": [0, 0, 0, 0],
    }
)
TABLE = """
CREATE TABLE bid (
  auction BIGINT, -- ; not the end
  price BIGINT COMMENT 'in cents; whole', `channel` VARCHAR(10),
  ts TIMESTAMP(3),
  half AS price / 2,
  PRIMARY KEY (auction) NOT ENFORCED,
  WATERMARK FOR ts AS ts - INTERVAL '4' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'a;b');
"""


def results(text: str, **tables: pa.Table) -> dict[str, list[dict[str, Any]]]:
    streams = {name: gw.stream(rows) for name, rows in ({"bid": BIDS} | tables).items()}
    found = gw.sql_script(text, **streams).results()
    return {name: rows.to_pylist() for name, rows in found.items()}


def test_statements_in_any_case_with_comments_between_them() -> None:
    text = f"""
    SET 'execution.runtime-mode' = 'streaming'; set parallelism.default = 2; RESET;
    {TABLE}
    /* a view; of the dear ones */ create temporary view dear (a, p, at_) as
      select auction, price, ts from bid where price > 10;
    create table top_prices (auction bigint, `begin` timestamp(3), n bigint, most bigint)
      with ('connector' = 'print');
    create table halves with ('connector' = 'blackhole') as select half from bid;
    begin statement set;
    insert into top_prices
      select a, window_start, count(*), max(p) from table(
        tumble(table dear, descriptor(at_), interval '10' second))
      group by a, window_start, window_end;
    end;
    select * from bid where channel = 'y';;
    """
    found = results(text)
    assert [*found] == ["halves", "top_prices", "result"]
    assert [row["half"] for row in found["halves"]] == [10, 2, 15, 20]
    later = BEGIN + dt.timedelta(seconds=10)
    assert found["top_prices"] == [
        {"auction": 1, "begin": BEGIN, "n": 2, "most": 30},
        {"auction": 1, "begin": later, "n": 1, "most": 40},
    ]
    at = BEGIN + dt.timedelta(seconds=3)
    row = {"auction": 1, "price": 30, "channel": "y", "ts": at, "half": 15}
    assert found["result"] == [row]


def test_several_inserts_into_one_table_are_a_union() -> None:
    text = f"""{TABLE} CREATE TABLE t (p BIGINT, c STRING);
    INSERT INTO t (c, p) SELECT channel, price FROM bid WHERE price < 10;
    INSERT INTO t (c, p) SELECT 'dear', price FROM bid WHERE price > 30;"""
    found = results(text)["t"]
    assert found == [{"p": 5, "c": "x"}, {"p": 40, "c": "dear"}]


def test_inserts_into_one_table_see_the_views_before_them() -> None:
    text = f"""{TABLE} CREATE TABLE t (p BIGINT);
    INSERT INTO t SELECT price FROM bid WHERE price < 10;
    CREATE VIEW dear AS SELECT price FROM bid WHERE price > 30;
    INSERT INTO t SELECT price FROM dear;"""
    assert results(text)["t"] == [{"p": 5}, {"p": 40}]
    again = f"""{text} DROP VIEW dear; CREATE VIEW dear AS SELECT price FROM bid;
    INSERT INTO t SELECT price FROM dear;"""
    with pytest.raises(SqlError, match="no table or view is defined again"):
        results(again)
    other = f"{text} DROP TABLE t; CREATE TABLE t (q BIGINT); INSERT INTO t SELECT price FROM bid"
    with pytest.raises(SqlError, match="no table or view is defined again"):
        results(other)


def test_values_of_a_partition_get_its_type() -> None:
    text = f"""{TABLE} CREATE TABLE t (p BIGINT, c BIGINT, d STRING);
    INSERT INTO t PARTITION (C = 1, d = 'x') (p) SELECT price FROM bid WHERE price < 10;
    CREATE TABLE u (n INT); INSERT INTO u (VALUES (1))"""
    schema = gw.sql_script(text, bid=gw.stream(BIDS)).outputs()["t"].schema
    assert schema.types == [pa.int64(), pa.int64(), pa.string()]
    found = results(text)
    assert found == {"t": [{"p": 5, "c": 1, "d": "x"}], "u": [{"n": 1}]}


def test_a_target_may_be_called_result() -> None:
    text = f"""{TABLE} SELECT price FROM bid WHERE price > 30;
    CREATE TABLE result (p BIGINT); INSERT INTO result SELECT price FROM bid WHERE price < 10;
    SELECT price FROM bid WHERE price = 30"""
    found = results(text)
    assert found["result"] == [{"p": 5}]
    assert [found[f"result_{i}"] for i in (2, 3)] == [[{"price": 40}], [{"price": 30}]]


def test_insert_overwrite_replaces_what_is_at_a_path(tmp_path: Path) -> None:
    text = f"""{TABLE} CREATE TABLE t (p BIGINT) WITH
      ('connector' = 'filesystem', 'path' = '{tmp_path}/t', 'format' = 'parquet');
    INSERT INTO t SELECT price FROM bid WHERE price > 30"""
    script = gw.sql_script(text, bid=gw.stream(BIDS))
    assert script.write()["t"].rows == 1
    with pytest.raises(OutputError, match="the path holds results"):
        script.write()
    overwrite = text.replace("INSERT INTO", "INSERT OVERWRITE").replace("> 30", "> 20")
    assert gw.sql_script(overwrite, bid=gw.stream(BIDS)).write()["t"].rows == 2
    with pytest.raises(SqlError, match="is for bounded results"):
        gw.sql_script(overwrite, bid=gw.stream(BIDS)).write_stream(tmp_path / "state")
    with pytest.raises(SqlError, match="is the only statement into its table"):
        gw.sql_script(f"{overwrite}; INSERT INTO t SELECT price FROM bid",
                      bid=gw.stream(BIDS)).write()  # fmt: skip


def test_values_get_the_columns_of_their_target() -> None:
    text = f"""{TABLE} CREATE TABLE t (day_ STRING, p DECIMAL(22, 2), a DOUBLE, gone INT);
    INSERT INTO t PARTITION (day_ = 'today') (a, p)
    SELECT auction, price FROM bid WHERE price = 20"""
    table = gw.sql_script(text, bid=gw.stream(BIDS)).results()["t"]
    assert table.to_pylist() == [{"day_": "today", "p": 20, "a": 1.0, "gone": None}]
    assert table.schema.types == [pa.string(), pa.decimal128(22, 2), pa.float64(), pa.int32()]


def test_numbers_and_times_get_the_types_of_their_target() -> None:
    text = """
    CREATE TABLE t (n BIGINT, d DECIMAL(10, 2), ts TIMESTAMP(3));
    CREATE TABLE u (n INT, d DECIMAL(10, 1), ts TIMESTAMP_LTZ(3));
    INSERT INTO u SELECT * FROM t;
    """
    values = ["1.25", "-1.25", "1.24"]
    rows = pa.table(
        {
            "n": [1, -2, None],
            "d": pa.array(map(Decimal, values), pa.decimal128(10, 2)),
            "ts": pa.array([BEGIN, BEGIN, None], pa.timestamp("us")),
        }
    )
    found = gw.sql_script(text, t=gw.stream(rows)).results()["u"]
    assert found["n"].type == pa.int32()
    assert found["n"].to_pylist() == [1, -2, None]
    assert list(map(str, found["d"].to_pylist())) == ["1.3", "-1.3", "1.2"]
    instant = BEGIN.replace(tzinfo=dt.UTC)
    assert found["ts"].to_pylist() == [instant, instant, None]
    large = rows.set_column(0, "n", pa.array([1 << 31, 0, 0]))
    with pytest.raises(ExpressionError, match="2147483648"):
        gw.sql_script(text, t=gw.stream(large)).results()


@pytest.mark.parametrize("column", ["k STRING NOT NULL", "k STRING, PRIMARY KEY (K) NOT ENFORCED"])
def test_nulls_are_not_written_where_there_are_none(column: str) -> None:
    text = f"""
    CREATE TABLE t (k STRING, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts);
    CREATE TABLE u (n INT, {column});
    INSERT INTO u SELECT n, k FROM t WHERE n > 0;
    """
    rows = pa.table(
        {
            "k": ["a", None],
            "n": pa.array([None, 0], pa.int32()),
            "ts": pa.array([BEGIN] * 2, pa.timestamp("us")),
        }
    )
    stream = gw.stream(rows)
    assert gw.sql_script(text, t=stream).results()["u"].num_rows == 0
    kept = text.replace("n > 0", "k IS NOT NULL")
    assert gw.sql_script(kept, t=stream).results()["u"].to_pylist() == [{"n": None, "k": "a"}]
    latest = text.replace(
        "t WHERE n > 0",
        "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) r FROM t) WHERE r = 1",
    )
    for each in (text.replace("n > 0", "n >= 0"), latest):
        with pytest.raises(SqlError, match=r"table u: column [kK] is "):
            gw.sql_script(each, t=stream).results()
    with pytest.raises(SqlError, match="column k of u is NOT NULL, and gets no value"):
        gw.sql_script(text.replace("u SELECT n, k", "u (n) SELECT n"), t=stream).results()


def test_times_and_bytes_of_json_are_read_as_flink_reads_them(tmp_path: Path) -> None:
    def read(column: str, record: str, option: str = "") -> list[Any]:
        (tmp_path / "rows.json").write_text(f"{record}\n")
        text = f"""CREATE TABLE t ({column}) WITH ('connector' = 'filesystem', 'format' = 'json',
          'path' = '{tmp_path}/rows.json'{option}); SELECT * FROM t"""
        return list(gw.sql_script(text).results()["result"].to_pylist()[0].values())

    assert read("d DATE", '{"d": "2024-02-29"}') == [dt.date(2024, 2, 29)]
    assert read("t TIMESTAMP_LTZ(3)", '{"t": "2024-02-29 00:00:00.5Z"}')[0].microsecond == 500_000
    with pytest.raises(SqlError, match="expected no zone"):
        read("t TIMESTAMP(3)", '{"t": "2024-02-29T00:00:00Z"}')
    with pytest.raises(SqlError, match="expected a zone"):
        read("t TIMESTAMP_LTZ(3)", '{"t": "2024-02-29 00:00:00"}')
    with pytest.raises(SqlError, match="base64"):
        read("r ROW<b BYTES>", '{"r": {"b": "aGk="}}')
    with pytest.raises(SqlError, match=r"^table t: a field that a record lacks .*option out, got"):
        read("a INT, b INT", '{"a": 1}', ", 'json.fail-on-missing-field' = 'true'")


def test_names_may_have_a_catalog_and_a_database() -> None:
    text = f"""
    {TABLE.replace("TABLE bid", "TABLE IF NOT EXISTS default_catalog.`default_database`.bid")}
    CREATE OR REPLACE VIEW db.v AS SELECT * FROM default_database.bid b WHERE b.price > 5;
    SELECT COUNT(*) n FROM TABLE(TUMBLE(TABLE db.v, DESCRIPTOR(ts), INTERVAL '1' DAY))
    GROUP BY window_start, window_end;
    """
    found = gw.sql_script(text, bid=gw.stream(BIDS)).results()["result"]
    assert found.to_pylist() == [{"n": 3}]


def test_like_takes_columns_and_options_of_another_table() -> None:
    text = f"""{TABLE}
    CREATE TABLE more (extra INT) WITH ('topic' = 'c') LIKE bid (INCLUDING ALL);
    CREATE TEMPORARY VIEW v AS SELECT extra, half FROM more;
    DROP TABLE IF EXISTS nothing; DROP TABLE bid;
    SELECT * FROM v"""
    more = BIDS.append_column("extra", pa.array([1, 2, 3, 4], pa.int32()))
    assert results(text, more=more)["result"][1] == {"extra": 2, "half": 2}


def test_a_stream_without_a_table_is_one_of_its_own() -> None:
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    timed = gw.stream(BIDS).event_time("ts", watermarks)
    text = "SELECT channel, COUNT(*) n FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR) "
    script = gw.sql_script(f"{text} GROUP BY channel, window_start, window_end;", T=timed)
    assert script.results()["result"].num_rows == 3
    assert script.options(device="cpu").results()["result"].num_rows == 3


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_files_are_read_and_written(tmp_path: Path, kind: str) -> None:
    rows = pa.table(
        {
            "k": ["a", "b", "a"],
            "v": pa.array([1, None, 3], pa.int32()),
            "ts": pa.array([BEGIN, BEGIN, None], pa.timestamp("us")),
        }
    )
    path = tmp_path / "in" / f"rows.{kind}"
    path.parent.mkdir()
    if kind == "parquet":
        pq.write_table(rows, path)
    elif kind == "csv":
        path.write_text("a,1,2024-03-31 02:00:00\nb,NULL,2024-03-31 02:00:00\na,3,NULL\n")
    else:
        path.write_text(
            '{"k":"a","v":1,"ts":"2024-03-31 02:00:00"}\n{"k":"b","ts":"2024-03-31 02:00:00"}\n'
            '{"k":"a","v":3,"ts":null}\n'
        )
    null = ", 'csv.null-literal' = 'NULL'" if kind == "csv" else ""
    text = f"""
    CREATE TABLE src (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
      WITH ('connector' = 'filesystem', 'path' = 'file://{path.parent}', 'format' = '{kind}'{null});
    CREATE TABLE dst (k STRING, n BIGINT, s INT) WITH
      ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'parquet');
    INSERT INTO dst SELECT k, COUNT(*), SUM(v) FROM TUMBLE(TABLE src, DESCRIPTOR(ts),
      INTERVAL '1' DAY) GROUP BY k, window_start, window_end;
    """
    written = gw.sql_script(text).write()
    assert written["dst"].rows == 2
    read = pa.concat_tables(map(pq.read_table, written["dst"].files))
    assert sorted(read.to_pylist(), key=str) == [
        {"k": "a", "n": 1, "s": 1},
        {"k": "b", "n": 1, "s": None},
    ]


def test_results_are_printed_as_by_flink(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"""{TABLE} CREATE TABLE t (p BIGINT, c STRING) WITH
      ('connector' = 'print', 'print-identifier' = 'sink');
    INSERT INTO t SELECT price, channel FROM bid WHERE price > 20"""
    assert gw.sql_script(text, bid=gw.stream(BIDS)).write() == {}
    assert capsys.readouterr().out == "sink> +I[30, y]\nsink> +I[40, null]\n"
    text = f"""{TABLE} CREATE TABLE t (b BOOLEAN) WITH ('connector' = 'print');
    INSERT INTO t SELECT price > 30 FROM bid WHERE price > 20"""
    gw.sql_script(text, bid=gw.stream(BIDS)).write()
    assert capsys.readouterr().out == "+I[false]\n+I[true]\n"


@pytest.mark.parametrize(
    "options",
    [
        "'connector' = 'print', 'standard-error' = 'true'",
        "'connector' = 'filesystem', 'path' = '/x', 'format' = 'parquet', 'partition.x' = 'a'",
        "'connector' = 'kafka', 'topic' = 'a', 'format' = 'json', 'key.fields' = 'p'",
    ],
)
def test_options_of_targets_are_followed_or_refused(options: str) -> None:
    text = (
        f"{TABLE} CREATE TABLE t (p BIGINT) WITH ({options}); INSERT INTO t SELECT price FROM bid"
    )
    with pytest.raises(SqlError, match=r"this option is not covered|its connector is none of"):
        gw.sql_script(text, bid=gw.stream(BIDS)).write()


def test_explain_shows_queries_and_what_options_do() -> None:
    text = f"""SET 'table.exec.mini-batch.enabled' = 'true'; {TABLE}
    EXPLAIN PLAN FOR SELECT price FROM bid; SELECT channel FROM bid;"""
    explained = gw.sql_script(text, bid=gw.stream(BIDS)).explain()
    assert ".event_time('ts', gw.WatermarkStrategy.for_bounded" in explained
    assert ".select('channel')" in explained
    assert ".select('price')" in explained
    assert "SET table.exec.mini-batch.enabled: changes no result" in explained


NOT_READ = {
    "SELECT 'abc": ("does not end", 1, 8),
    "CREATE TABLE t (a INT\n  b INT)": (", is missing here", 2, 3),
    "CREATE TABLE t (a BLOB)": ("no such type", 1, 19),
    "CREATE TABLE t (a INT, a INT)": ("same name", 1, 24),
    "CREATE TABLE t (a TIMESTAMP(9))": ("at most 6", 1, 19),
    "CREATE TABLE t (a INT) WITH ('x' = 'y', 'x' = 'z')": ("given twice", 1, 41),
    "CREATE TABLE t (a INT); CREATE VIEW t AS SELECT 1": ("of this name exists", 1, 37),
    "CREATE TABLE t (a INT, WATERMARK FOR b AS b)": ("no such column", 1, 38),
    "INSERT INTO t SELECT 1": ("no such table; there are none", 1, 13),
    "INSERT INTO t": ("a query is missing", 1, 14),
    "DROP VIEW v": ("no such table or view", 1, 11),
    "ALTER TABLE t ADD x INT": ("creates tables and views", 1, 1),
    "EXECUTE STATEMENT SET BEGIN SELECT 1; END": ("has INSERT statements", 1, 29),
    "EXECUTE STATEMENT SET BEGIN;": ("has no END", 1, 1),
    "CREATE FUNCTION f AS 'a.B' LANGUAGE JAVA": ("one of Python's", 1, 37),
    "TABLE t": ("begins no statement", 1, 1),
}


@pytest.mark.parametrize("text", NOT_READ)
def test_what_cannot_be_read_says_where(text: str) -> None:
    rule, line, position = NOT_READ[text]
    with pytest.raises(SqlError, match=rule) as error:
        gw.sql_script(text)
    assert (error.value.line, error.value.position) == (line, position)


T = "CREATE TABLE t (a BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts);"
NOT_RUN = {
    f"{T}\nSELECT b FROM t": ("no such column", 2),
    f"{T}\nSELECT a FROM s": ("no such table; sql.. is given t", 2),
    "CREATE TABLE t (a BIGINT, c INT); SELECT a FROM t": ("no such column; they have", 1),
    "CREATE TABLE t (a STRING); SELECT a FROM t": ("have BIGINT here, and STRING is declared", 1),
    "CREATE TABLE t (ts TIMESTAMP_LTZ(3)); SELECT * FROM t": ("TIMESTAMP has no zone", 1),
    "CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts % 2); SELECT * FROM t": (
        "a watermark is",
        1,
    ),
    "CREATE TABLE t (a BIGINT, b AS c + 1); SELECT * FROM t": ("no such column", 1),
    "CREATE TABLE s (a INT) WITH ('connector' = 'jdbc'); SELECT * FROM s": ("s=gw.stream", 1),
    "CREATE TABLE s (a INT) WITH ('connector' = 'kafka'); SELECT * FROM s": ("need Spark", 1),
    f"{T} CREATE TABLE u (x STRING);\nINSERT INTO u SELECT a FROM t": ("CAST it", 2),
    f"{T} CREATE TABLE u (x BIGINT);\nINSERT INTO u SELECT a, a AS b FROM t": (
        "gives 2 columns",
        2,
    ),
    f"{T} CREATE TABLE u (x BIGINT);\nINSERT INTO u (y) SELECT a FROM t": ("no such column to", 2),
    f"{T} CREATE TABLE u (x BIGINT, y BIGINT);\nINSERT INTO u (x, X) SELECT a, a FROM t": (
        "given once",
        2,
    ),
    f"{T} CREATE TABLE u (x BIGINT);\nINSERT INTO u PARTITION (z = 1) SELECT a FROM t": (
        "no such column to",
        2,
    ),
    f"{T} CREATE TABLE u (x BIGINT, y STRING);\nINSERT INTO u PARTITION (y = 1) SELECT a FROM t": (
        "y is STRING, and the query gives INT",
        2,
    ),
    f"SET 'table.exec.emit.early-fire.enabled' = 'true';{T} SELECT a FROM t": ("a trigger", 1),
    f"SET 'table.local-time-zone' = 'Asia/Tokyo';{T} SELECT a FROM t": ("UTC over Arrow", 1),
    f"SET 'table.no-such' = 'x';{T} SELECT a FROM t": ("no such option that is followed", 1),
    f"{T} CREATE VIEW v (x, y) AS SELECT a FROM t;\nSELECT * FROM v": ("a column for each", 1),
}


@pytest.mark.parametrize("text", NOT_RUN)
def test_what_cannot_run_says_where(text: str) -> None:
    rows = pa.table({"a": [1], "ts": pa.array([BEGIN], pa.timestamp("us"))})
    rule, line = NOT_RUN[text]
    with pytest.raises(SqlError, match=rule) as error:
        gw.sql_script(text, t=gw.stream(rows)).results()
    assert error.value.line == line


CHAIN = f"""{TABLE}
CREATE VIEW counts AS SELECT channel, window_time AS at_, COUNT(*) AS n
  FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND)
  GROUP BY channel, window_start, window_end, window_time;
SELECT SUM(n) AS n FROM TUMBLE(TABLE counts, DESCRIPTOR(at_), INTERVAL '1' HOUR)
  GROUP BY window_start, window_end;
"""


def test_nothing_is_read_to_explain_or_if_a_later_statement_is_refused() -> None:
    reader = BIDS.to_reader()
    script = gw.sql_script(CHAIN, bid=gw.stream(reader))
    assert "gw.stream_results(" in script.explain()
    with pytest.raises(SqlError, match="no such column"):
        gw.sql_script(f"{CHAIN} SELECT nosuch FROM bid", bid=gw.stream(reader)).results()
    assert script.results()["result"].to_pylist() == [{"n": 4}]


def test_streams_and_sinks_are_checked() -> None:
    watermarks = gw.WatermarkStrategy.for_monotonous_timestamps()
    timed = gw.stream(BIDS).event_time("ts", watermarks)
    with pytest.raises(SqlError, match="has an event time"):
        gw.sql_script(f"{TABLE} SELECT * FROM bid", bid=timed).results()
    with pytest.raises(QueryError, match="must be a stream"):
        gw.sql_script("SELECT 1", bid=BIDS)
    with pytest.raises(QueryError, match="has no INSERT"):
        gw.sql_script(f"{TABLE} SELECT * FROM bid", bid=gw.stream(BIDS)).write()
    text = f"{TABLE} CREATE TABLE t (p BIGINT); INSERT INTO t SELECT price FROM bid"
    script = gw.sql_script(text, bid=gw.stream(BIDS))
    with pytest.raises(QueryError, match="a sink is for a target"):
        script.write({"u": "/nowhere"})
    with pytest.raises(SqlError, match="it has no connector"):
        script.write()
    with pytest.raises(QueryError, match=r"read it with spark\.readStream"):
        script.write_stream("/nowhere", sinks={"t": "/nowhere/out"})


def test_set_counts_for_the_statements_after_it() -> None:
    tables = """
    CREATE TABLE t (n INT) WITH ('connector' = 'x');
    CREATE TABLE a (n INT) WITH ('connector' = 'print');
    CREATE TABLE b (n INT) WITH ('connector' = 'print');
    """
    one, two = "INSERT INTO a SELECT n FROM t;", "INSERT INTO b SELECT n FROM t;"
    name, idle = "SET 'pipeline.name' = 'x';", "SET 'table.exec.source.idle-timeout' = '1 s';"
    rows = gw.stream(pa.table({"n": pa.array([1], pa.int32())}))
    for text, rule in (
        (one + name, r"there is none: write it before them, got pipeline.name = x \(line 5"),
        (one + idle, "there is none"),
        (one + name + two, "run as one query: write SET before the first"),
        (name + one + "RESET 'pipeline.name';" + two, "run as one query"),
    ):
        with pytest.raises(SqlError, match=rule):
            gw.sql_script(tables + text, t=rows).results()
    for text in (name + one + two, name + "RESET;" + one, one + idle + two, name):
        gw.sql_script(tables + text, t=rows).results()


def test_the_watermark_is_that_of_flink_sql() -> None:
    text = """CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '{}' SECOND)
    WITH ('connector' = 'x'); SELECT * FROM t ORDER BY ts"""
    times = ["00:00:05", "00:00:00.001", "00:00:00", "00:00:09.999"]
    ts = pa.array([f"2024-01-01 {time}" for time in times]).cast(pa.timestamp("us"))
    rows = gw.stream(pa.table({"ts": ts}))
    script = gw.sql_script(text.format(5), t=rows)
    assert "for_bounded_out_of_orderness('4 s 999 ms')" in script.explain()
    with pytest.raises(SqlError, match="must not be negative"):
        gw.sql_script(text.format(-5), t=rows).outputs()


def test_a_table_that_a_script_wrote_is_read_once_it_is_complete(tmp_path: Path) -> None:
    columns = "(n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' ="
    text = f"""CREATE TABLE t (n BIGINT) WITH ('connector' = 'x');
    CREATE TABLE o {columns} '{tmp_path}/o'); INSERT OVERWRITE o SELECT n FROM t;"""
    other = f"CREATE TABLE o {columns} '{tmp_path}/o'); SELECT n FROM o"
    for numbers in ([1, 2], [3]):
        gw.sql_script(text, t=gw.stream(pa.table({"n": numbers}))).write()
        found = gw.sql_script(other).results()["result"]
        assert found["n"].to_pylist() == numbers
    shutil.rmtree(tmp_path / "o" / "commits")
    with pytest.raises(SqlError, match="table o: no write to the path is complete"):
        gw.sql_script(other).results()


def test_a_time_is_cut_to_the_digits_of_its_type() -> None:
    times = pa.array([BEGIN + dt.timedelta(microseconds=m) for m in (123_456, 123_999)])
    text = """
    CREATE TABLE t (ts TIMESTAMP(6));
    SELECT DISTINCT CAST(ts AS TIMESTAMP(3)) AS m, CAST(CAST(ts AS TIMESTAMP(3)) AS STRING) AS s
    FROM t;
    """
    cut = BEGIN + dt.timedelta(milliseconds=123)
    assert results(text, t=pa.table({"ts": times}))["result"] == [
        {"m": cut, "s": "2024-03-31 02:00:00.123"}
    ]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v.id, r.rate FROM v JOIN r FOR SYSTEM_TIME AS OF v.proctime ON v.id = r.id",
        "SELECT o.id, r.rate FROM o JOIN r FOR SYSTEM_TIME AS OF proctime ON o.id = r.id",
    ],
)
def test_a_column_and_a_view_have_processing_time(query: str) -> None:
    text = f"""
    CREATE TABLE o (id INT, proctime AS PROCTIME());
    CREATE TABLE p (id INT);
    CREATE TABLE r (id INT, rate INT);
    CREATE VIEW v AS SELECT *, PROCTIME() AS proctime FROM p;
    {query};
    """
    one = pa.array([1], pa.int32())
    ids, rates = pa.table({"id": one}), pa.table({"id": one, "rate": pa.array([5], pa.int32())})
    assert results(text, o=ids, p=ids, r=rates)["result"] == [{"id": 1, "rate": 5}]


def test_words_that_are_functions_with_parentheses_may_be_columns() -> None:
    rows = pa.table({"proctime": [1, 2], "uuid": ["a", "b"], "now": [3, 4]})
    found = gw.sql("SELECT uuid, now FROM t WHERE proctime > 1", t=gw.stream(rows)).result()
    assert found.to_pylist() == [{"uuid": "b", "now": 4}]


def test_casts_between_the_two_types_of_times() -> None:
    rows = pa.table({"ts": pa.array([BEGIN], pa.timestamp("us"))})
    text = """
    SELECT CAST(ts AS TIMESTAMP_LTZ(3)) AS a,
      CAST(CAST(ts AS TIMESTAMP_LTZ(3)) AS TIMESTAMP(0)) AS b,
      CAST(COALESCE(CAST(ts AS TIMESTAMP_LTZ(3)), TIMESTAMP '2024-01-01 00:00:00') AS STRING) AS c
    FROM t
    """
    found = gw.sql(text, t=gw.stream(rows)).result()
    assert [*found.schema.types] == [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.string()]
    assert found["c"].to_pylist() == ["2024-03-31 02:00:00.000"]
