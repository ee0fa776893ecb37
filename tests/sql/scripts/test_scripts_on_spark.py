"""Scripts on Spark: their connectors, several targets of one stream, and a restart."""

from __future__ import annotations

import json
import socket
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from gpu_windows.sql.scripts.connectors import check_brokers
from gpu_windows.sql.scripts.definitions import CreateTable
from gpu_windows.sql.scripts.statements import read_statements
from gpu_windows.sql.scripts.table_options import TableOptions
from tests.spark_glue.stream_runs import batches, files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TWO = """
SET 'pipeline.name' = 'two';
CREATE TABLE src (
  ts TIMESTAMP_LTZ(3), k BIGINT, v DOUBLE, text STRING, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{folder}/in', 'format' = 'parquet');
CREATE TABLE minutes (k BIGINT, at_ TIMESTAMP_LTZ(3), n BIGINT, total DOUBLE)
  WITH ('connector' = 'filesystem', 'path' = '{folder}/minutes', 'format' = 'parquet');
CREATE TABLE large (ts TIMESTAMP_LTZ(3), text STRING, v DOUBLE)
  WITH ('connector' = 'filesystem', 'path' = '{folder}/large', 'format' = 'parquet');
CREATE VIEW some AS SELECT * FROM src WHERE text <> 'z';
EXECUTE STATEMENT SET BEGIN
INSERT INTO minutes SELECT k, window_start, COUNT(*), SUM(v)
  FROM TABLE(TUMBLE(TABLE some, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
  GROUP BY k, window_start, window_end;
INSERT INTO large SELECT ts, UPPER(text), v FROM some WHERE v > 20;
END;
"""


def write(spark: SparkSession, text: str, checkpoint: Path) -> Any:
    script = gw.sql_script(text).on_spark(spark, streaming=True)
    query = script.write_stream(checkpoint, trigger={"availableNow": True})
    query.awaitTermination()
    return query


def rows_of(spark: SparkSession, path: Path) -> Counter[Any]:
    return Counter(map(tuple, gw.read_output(spark, path).collect()))


@pytest.mark.thorough
def test_targets_of_one_stream_are_what_a_batch_gives(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches(4, 200)
    files(tmp_path / "in", tables[:2])
    text = TWO.format(folder=tmp_path)
    query = write(spark, text, tmp_path / "state")
    assert query.name == "two"
    files(tmp_path / "in", tables)
    write(spark, text, tmp_path / "state")
    batch = gw.sql_script(text).on_spark(spark).results()
    assert [*batch] == ["minutes", "large"]
    large = Counter(map(tuple, batch["large"].collect()))
    assert rows_of(spark, tmp_path / "large") == large
    assert large
    late = gw.read_output(spark, tmp_path / "minutes", "late").count()
    found = rows_of(spark, tmp_path / "minutes")
    assert found
    assert late
    on_arrow = gw.sql_script(text).results()
    ticks = [table["large"]["ts"].cast(pa.int64()).to_pylist() for table in (on_arrow,)]
    assert sum(map(len, ticks)) == sum(large.values())


def test_a_changed_script_does_not_continue_a_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    files(tmp_path / "in", batches(1, 50))
    text = TWO.format(folder=tmp_path)
    write(spark, text, tmp_path / "state")
    changed = text.replace("INTERVAL '1' MINUTE", "INTERVAL '2' MINUTE")
    with pytest.raises(gw.errors.StateMismatchError, match="1 min"):
        write(spark, changed, tmp_path / "state")


@pytest.mark.thorough
def test_a_restart_takes_the_statements_in_another_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = batches(4, 100)
    files(tmp_path / "in", tables[:2])
    text = TWO.format(folder=tmp_path).replace("total DOUBLE", "total DOUBLE NOT NULL")
    _, first, second = text.partition("BEGIN")[2].rpartition("END")[0].split("INSERT")
    write(spark, text, tmp_path / "state")
    files(tmp_path / "in", tables)
    swapped = text.replace(f"INSERT{first}INSERT{second}", f"-- and\nINSERT{second}INSERT{first}")
    assert swapped != text
    write(spark, swapped, tmp_path / "state")
    batch = gw.sql_script(swapped).on_spark(spark).results()
    assert [*batch] == ["large", "minutes"]
    assert rows_of(spark, tmp_path / "large") == Counter(map(tuple, batch["large"].collect()))
    (tmp_path / "again").mkdir()
    files(tmp_path / "again" / "in", tables[:2])
    alone = text.replace(str(tmp_path), str(tmp_path / "again"))
    write(spark, alone, tmp_path / "again" / "state")
    files(tmp_path / "again" / "in", tables)
    write(spark, alone, tmp_path / "again" / "state")
    expected = rows_of(spark, tmp_path / "again" / "minutes")
    assert rows_of(spark, tmp_path / "minutes") == expected


def test_json_and_csv_are_read_as_flink_writes_them(spark: SparkSession, tmp_path: Path) -> None:
    at = ["2024-03-31 02:30:00.123", "1969-12-31 23:59:59.5", None]
    records = [{"k": "ä,b", "ts": at[0], "n": 1}, {"k": "", "ts": at[1], "n": None}, {"k": None}]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, records)))
    (tmp_path / "a.csv").write_text(f'"ä,b",{at[0]},1\n"",{at[1]},NULL\n')
    for kind in ("json", "csv"):
        null = ", 'csv.null-literal' = 'NULL'" if kind == "csv" else ""
        text = f"""CREATE TABLE t (k STRING, ts TIMESTAMP(3), n INT) WITH ('connector' =
          'filesystem', 'path' = '{tmp_path}/a.{kind}', 'format' = '{kind}'{null});
          SELECT * FROM t"""
        found = gw.sql_script(text).on_spark(spark).results()["result"].collect()
        expected = gw.sql_script(text).results()["result"].to_pylist()
        assert [row.asDict() for row in found] == expected
        assert str(expected[0]["ts"]) == "2024-03-31 02:30:00.123000"
        assert [row["k"] for row in expected[:2]] == ["ä,b", ""]


def test_broken_records_and_quotes_are_read_as_by_flink(
    spark: SparkSession, tmp_path: Path
) -> None:
    def read(
        kind: str,
        body: str,
        option: str = "",
        columns: str = "*",
        declared: str = "k STRING, n INT",
    ) -> list[Any]:
        path = tmp_path / f"{len([*tmp_path.iterdir()])}.{kind}"
        path.write_text(body)
        text = f"""CREATE TABLE t ({declared}) WITH ('connector' = 'filesystem', 'path' =
          '{path}', 'format' = '{kind}'{option}); SELECT {columns} FROM t"""
        rows = gw.sql_script(text).on_spark(spark).results()["result"].collect()
        return [tuple(row) for row in rows]

    skip = ", 'json.ignore-parse-errors' = 'true'"
    body = '{"k": "a", "n": 1}\nbroken\n{"n": "x"}\n{"k": "b", "n": 1.5}\n'
    assert read("json", body, skip) == [("a", 1), (None, None), ("b", None)]
    quotes = '"a ""q""",1\n,2\n"",3\nc\\d,4\n"c\\",5\n'
    texts = ['a "q"', "", "", "c\\d", "c\\"]
    assert read("csv", quotes) == list(zip(texts, range(1, 6), strict=True))
    with pytest.raises(Exception, match=r"table t: a record of CSV .* got b,x in file"):
        read("csv", "a,1\nb,x\n")
    with pytest.raises(Exception, match=r"table t: a record of CSV .* got b,2,3 in file"):
        read("csv", "a,1\nb,2,3\n", columns="k")
    skip = ", 'csv.ignore-parse-errors' = 'true', 'csv.field-delimiter' = '§'"
    body = ' 1 § 2.5§ x \n1§2\n1§2§"x§§y"\n1§2§x§4\n§§\n1\n"7"§y§"q" \n'
    fields = read("csv", body, skip, declared="a INT, b DOUBLE, c STRING")
    assert fields == [
        (1, 2.5, " x "), (1, 2.0, None), (1, 2.0, "x§§y"), (None, None, ""), (1, None, None),
        (7, None, "q"),
    ]  # fmt: skip
    only = read("csv", body, skip, "c", "a INT, b DOUBLE, c STRING")
    assert only == [row[2:] for row in fields]
    text = (
        "CREATE TABLE t (b BYTES) WITH ('connector' = 'filesystem', 'path' = '/', 'format' = 'csv')"
    )
    with pytest.raises(SqlError, match="table t: a text has bytes in base64: STRING"):
        gw.sql_script(f"{text}; SELECT * FROM t").on_spark(spark).results()


def test_made_rows_depend_on_their_numbers_alone(spark: SparkSession) -> None:
    text = """CREATE TABLE t (id BIGINT, n INT, s STRING, x DOUBLE, b BOOLEAN) WITH (
      'connector' = 'datagen', 'number-of-rows' = '100', 'fields.id.kind' = 'sequence',
      'fields.id.start' = '5', 'fields.n.min' = '-3', 'fields.n.max' = '3',
      'fields.s.length' = '7'); SELECT * FROM t"""
    script = gw.sql_script(text).on_spark(spark, streaming=False)
    found = script.results()["result"].toArrow()
    assert found.equals(script.results()["result"].toArrow())
    assert found["id"].to_pylist() == [*range(5, 105)]
    assert {*found["n"].to_pylist()} == {*range(-3, 4)}
    assert {len(s) for s in found["s"].to_pylist()} == {7}
    assert all(0 <= x < 1 for x in found["x"].to_pylist())
    assert len({*found["s"].to_pylist()}) == 100


def test_made_rows_end_with_the_first_sequence(spark: SparkSession) -> None:
    text = """CREATE TABLE t (id BIGINT, n BIGINT) WITH ('connector' = 'datagen',
      'fields.id.kind' = 'sequence', 'fields.id.start' = '5', 'fields.id.end' = '7',
      'fields.n.kind' = 'sequence', 'fields.n.end' = '9'); SELECT id FROM t"""
    found = gw.sql_script(text).on_spark(spark, streaming=False).results()["result"]
    assert [row["id"] for row in found.collect()] == [5, 6, 7]


def test_records_that_are_none_have_no_row(spark: SparkSession, tmp_path: Path) -> None:
    lines = ['{"k": "a", "n": 1}', "{bad", "[1]", "7", '{"k": "b", "n": "x"}', "{}"]
    (tmp_path / "a.json").write_text("\n".join(lines))
    text = f"""CREATE TABLE t (k STRING, n INT, p STRING METADATA FROM 'file.name') WITH (
      'connector' = 'filesystem', 'path' = '{tmp_path}/a.json', 'format' = 'json',
      'json.ignore-parse-errors' = 'true'); SELECT * FROM t"""
    found = gw.sql_script(text).on_spark(spark, streaming=False).results()["result"].collect()
    assert [tuple(row) for row in found] == [
        ("a", 1, "a.json"), ("b", None, "a.json"), (None, None, "a.json"),
    ]  # fmt: skip


EARLIEST = "'scan.startup.mode' = 'earliest-offset', 'format' = 'json'"


def test_options_of_connectors_are_checked(spark: SparkSession) -> None:
    kafka = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'localhost:1'"
    for options, rule in (
        (kafka, "lacks an option, got topic"),
        (f"{kafka}, 'topic' = 'a', {EARLIEST}", "has no connector of Kafka.*spark-sql-kafka-0-10"),
        ("'connector' = 'kafka', 'topic' = 'a'", "lacks an option, got properties.bootstrap"),
        (f"{kafka}, 'topic' = 'a', 'scan.startup.mode' = 'x'", "scan.startup.mode is one of"),
        (f"{kafka}, 'topic' = 'a', 'key.fields' = 'a'", "is not covered, got key.fields"),
        (f"{kafka}, 'topic' = 'a', 'scan.bounded.mode' = 'x'", "is not covered, got scan.bounded"),
        ("'connector' = 'datagen'", "number-of-rows"),
        ("'connector' = 'datagen', 'number-of-rows' = 'x'", "is a number, got number-of-rows = x"),
        ("'connector' = 'datagen', 'fields.b.min' = '1'", "is not covered.*, got fields.b.min"),
        ("'connector' = 'datagen', 'fields.a.null-rate' = '1'", "is not covered.*, got fields.a"),
        ("'connector' = 'filesystem', 'path' = '/x', 'format' = 'orc'", "a format is one of"),
    ):
        text = f"CREATE TABLE t (a INT) WITH ({options}); SELECT * FROM t"
        with pytest.raises(SqlError, match=rule):
            gw.sql_script(text).on_spark(spark, streaming=False).results()


def test_brokers_that_do_not_answer_are_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_brokers(options_of(f"localhost:1, PLAINTEXT://127.0.0.1:{port}"))
    for servers, rule in (
        (f"127.0.0.1:{port}", rf"table t: no broker .* got 127.0.0.1:{port} \(.*refused"),
        ("localhost", "has host:port, with commas between them, got localhost"),
    ):
        with pytest.raises(SqlError, match=rule):
            check_brokers(options_of(servers))


def options_of(servers: str) -> TableOptions:
    text = f"CREATE TABLE t (a INT) WITH ('properties.bootstrap.servers' = '{servers}')"
    [statement] = read_statements(text)
    assert isinstance(statement, CreateTable)
    return TableOptions(statement.table)


@pytest.mark.parametrize(
    ("time", "zone"),
    [
        ("TO_TIMESTAMP(txt)", "Asia/Kolkata"),
        ("CAST(txt AS TIMESTAMP(3))", "Asia/Kolkata"),
        ("TIMESTAMPADD(MINUTE, id, TIMESTAMP '2024-03-31 02:10:00')", "Asia/Kolkata"),
        ("CAST(CAST(txt AS TIMESTAMP_LTZ(3)) AS TIMESTAMP(3))", "Asia/Kolkata"),
        ("TO_TIMESTAMP(txt)", "Europe/Berlin"),  # clocks there skip this hour
    ],
)
def test_a_timestamp_is_what_clocks_show_in_every_zone(
    spark: SparkSession, time: str, zone: str
) -> None:
    rows = pa.table({"id": [1, 2], "txt": ["2024-03-31 02:10:00", "2024-03-31 02:50:00"]})
    text = f"""
    CREATE TABLE t (id BIGINT, txt STRING, ts AS {time}, WATERMARK FOR ts AS ts);
    SELECT window_start AS w, COUNT(*) AS n
    FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))
    GROUP BY window_start, window_end;
    """
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        script = gw.sql_script(text, t=gw.stream(spark.createDataFrame(rows)))
        (found,) = script.on_spark(spark).results()["result"].collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert (found["w"], found["n"]) == (datetime(2024, 3, 31, 2), 2)


def test_convert_tz_reads_times_with_fractions(spark: SparkSession) -> None:
    times = gw.stream(spark.sql("SELECT TIMESTAMP_NTZ '2024-01-01 10:00:00' AS ts"))
    text = "SELECT CONVERT_TZ(CAST(ts AS STRING), 'America/Los_Angeles', 'UTC') AS utc FROM t"
    assert gw.sql(text, t=times).result().collect()[0]["utc"] == "2024-01-01 18:00:00"
