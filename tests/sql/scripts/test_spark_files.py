"""Files of tables on Spark: errors of them, and what scripts wrote as the tables of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_windows as gw
from gpu_windows.errors import SqlError
from gpu_windows.sql.scripts import connectors
from gpu_windows.sql.scripts.spark import tables
from tests.lanes import quick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def table(path: Path, columns: str, kind: str = "parquet", option: str = "") -> str:
    return f"""CREATE TABLE t ({columns}) WITH (
      'connector' = 'filesystem', 'path' = '{path}', 'format' = '{kind}'{option});
      """


def target(path: Path, columns: str) -> str:
    return f"""CREATE TABLE o ({columns}) WITH (
      'connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet');
      """


def read(spark: SparkSession, text: str, *, streaming: bool = False) -> list[Any]:
    script = gw.sql_script(text).on_spark(spark, streaming=streaming)
    [outputs] = script.outputs().values()
    return [] if streaming else [tuple(row) for row in outputs.result().collect()]


@pytest.mark.parametrize("streaming", quick([False, True], False))
@pytest.mark.parametrize("kind", quick(["parquet", "csv", "json"], "csv"))
def test_a_missing_folder_is_refused(
    spark: SparkSession, tmp_path: Path, kind: str, streaming: bool
) -> None:
    text = table(tmp_path / "none", "a INT", kind) + "SELECT * FROM t"
    with pytest.raises(SqlError, match=r"table t: there is no such file or folder.*none \(line 1"):
        read(spark, text, streaming=streaming)


@pytest.mark.parametrize("streaming", quick([False, True], False))
def test_columns_of_parquet_are_checked(
    spark: SparkSession, tmp_path: Path, streaming: bool
) -> None:
    written = {"a": pa.array([1], pa.int32()), "b": ["x"], "ts": pa.array([0], pa.timestamp("us"))}
    pq.write_table(pa.table(written), tmp_path / "1.parquet")
    select = "SELECT * FROM t"
    for columns, rule in (
        ("c INT", "the files have no such column: leave it out, or name one of a, b, ts, got c"),
        ("a STRING", "the files have int32 here, and string is declared: declare that"),
        ("b INT", "the files have string here, and int32 is declared"),
        ("a SMALLINT", "int32 here, and int16"),
        ("ts TIMESTAMP_LTZ(3)", "TIMESTAMP has no zone"),
    ):
        with pytest.raises(SqlError, match=f"table t: .*{rule}"):
            read(spark, table(tmp_path, columns) + select, streaming=streaming)
    found = read(spark, table(tmp_path, "B STRING, a BIGINT") + select, streaming=streaming)
    assert found == ([] if streaming else [("x", 1)])


@pytest.mark.thorough
def test_a_column_that_some_files_have_is_null_in_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"a": [3]}), tmp_path / "1.parquet")
    text = table(tmp_path, "a BIGINT, b BIGINT") + "SELECT * FROM t"
    assert sorted(read(spark, text), key=str) == [(1, 2), (3, None)]


@pytest.mark.thorough
def test_partitions_are_in_the_names_of_folders(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "year=2024").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "year=2024" / "1.parquet")
    assert read(spark, table(tmp_path, "a BIGINT, `year` STRING") + "SELECT * FROM t") == [
        (1, "2024")
    ]
    assert read(spark, table(tmp_path / "year=2024", "a BIGINT") + "SELECT * FROM t") == [(1,)]


RECORDS = {
    "json": ('{"k": "a", "n": 1}\n', '{"k": "b", "n": "x"}\n', '{"k": "b", "n": "x"}'),
    "csv": ("a,1\n", "b,x\n", "b,x"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", RECORDS)
def test_an_error_shows_a_record_that_cannot_be_read(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    right, wrong, shown = RECORDS[kind]
    path = tmp_path / f"a.{kind}"
    path.write_text(right + wrong + right)
    skip = f", '{kind}.ignore-parse-errors' = 'true'"
    own = table(path, "k STRING, n INT", kind)
    into = target(tmp_path / "out", "k STRING, n INT")
    insert = f"{own}{into}INSERT INTO o SELECT k, n FROM t WHERE n > 0"
    rule = f"table t: a record of {kind.upper()} cannot be read as k, n: correct it, or set"
    with pytest.raises(SqlError, match=rule) as raised:  # although WHERE leaves it out
        gw.sql_script(insert).on_spark(spark, streaming=False).write()
    assert str(raised.value.value).startswith(f"{shown} in file:")
    assert (raised.value.line, raised.value.position) == (1, 14)
    with pytest.raises(Exception, match=rule):
        read(spark, f"{own}SELECT k, n FROM t")
    for select in ("k, n", "1 AS x"):
        found = read(spark, table(path, "k STRING, n INT", kind, skip) + f"SELECT {select} FROM t")
        assert len(found) == 3
    other = insert.replace("/out", "/other")
    query = gw.sql_script(other).on_spark(spark, streaming=True)
    started = query.write_stream(tmp_path / "state", trigger={"availableNow": True})
    with pytest.raises(Exception, match=rule):
        started.awaitTermination()


@pytest.mark.thorough
def test_a_null_is_not_written_into_a_column_without_nulls(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"k": ["a", None]}), tmp_path / "1.parquet")
    text = table(tmp_path, "k STRING") + target(tmp_path / "out", "k STRING NOT NULL")
    script = gw.sql_script(f"{text}INSERT INTO o SELECT k FROM t")
    rule = "table o: column k is NOT NULL: leave rows without a value out"
    for is_ansi in ("true", "false"):
        spark.conf.set("spark.sql.ansi.enabled", is_ansi)
        try:
            with pytest.raises(SqlError, match=rule) as raised:
                script.on_spark(spark, streaming=False).write()
        finally:
            spark.conf.set("spark.sql.ansi.enabled", "true")
        assert raised.value.line == 5
    query = gw.sql_script(script.text.replace("/out", "/other")).on_spark(spark, streaming=True)
    with pytest.raises(Exception, match=rule):
        query.write_stream(tmp_path / "state", trigger={"availableNow": True}).awaitTermination()


def rows_of_other_script(spark: SparkSession, folder: Path, *, streaming: bool) -> list[Any]:
    columns = "k BIGINT, total BIGINT, ts TIMESTAMP(3)"
    text = table(folder / "between", columns) + target(folder / "out", columns)
    script = gw.sql_script(f"{text}INSERT INTO o SELECT k, total, ts FROM t")
    script = script.on_spark(spark, streaming=streaming)
    if streaming:
        once = {"availableNow": True}
        script.write_stream(folder / "state of other", trigger=once).awaitTermination()
        return sorted(map(tuple, gw.read_output(spark, folder / "out").collect()))
    [outputs] = script.outputs().values()
    return sorted(map(tuple, outputs.result().collect()))


@pytest.mark.thorough
@pytest.mark.parametrize("written_as_stream", [False, True])
def test_what_one_script_wrote_another_reads(
    spark: SparkSession, tmp_path: Path, written_as_stream: bool
) -> None:
    rows = {"k": [0, 1, 0], "v": [1, 2, 4], "ts": pa.array([0, 1, 2], pa.timestamp("ms"))}
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "in" / "1.parquet")
    columns = "k BIGINT, total BIGINT, ts TIMESTAMP(3)"
    text = table(tmp_path / "in", "k BIGINT, v BIGINT, ts TIMESTAMP(3)")
    text += target(tmp_path / "between", columns)
    script = gw.sql_script(f"{text}INSERT INTO o SELECT k, v, ts FROM t")
    script = script.on_spark(spark, streaming=written_as_stream)
    if written_as_stream:
        once = {"availableNow": True}
        script.write_stream(tmp_path / "state", trigger=once).awaitTermination()
    else:
        script.write()
    [folder] = (tmp_path / "between" / "result").iterdir()
    torn = folder.with_name("00000000-000000000009-0badbeef")  # of a micro-batch without a commit
    torn.mkdir()
    pq.write_table(pa.table({"k": [9], "total": [9], "ts": rows["ts"][:1]}), torn / "1.parquet")
    expected = sorted(zip(rows["k"], rows["v"], rows["ts"].to_pylist(), strict=True))
    for streaming in (False, True):
        assert rows_of_other_script(spark, tmp_path, streaming=streaming) == expected
    own = table(tmp_path / "between", "k STRING") + "SELECT k FROM t"
    with pytest.raises(SqlError, match="the results there have int64 here, and string"):
        read(spark, own)
    on_arrow = table(tmp_path / "between", columns) + "SELECT k, total, ts FROM t"
    found = gw.sql_script(on_arrow).results()["result"].to_pylist()
    assert sorted(tuple(row.values()) for row in found) == expected


@pytest.mark.parametrize("kind", quick(["json", "csv"], "json"))
def test_records_of_kafka_have_metadata(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    record = '{"a": 1}' if kind == "json" else "1"
    rows = spark.createDataFrame(
        [(record.encode(), "x", 7)], "value BINARY, topic STRING, offset LONG"
    )
    monkeypatch.setattr(tables, "_read_records", lambda options: rows)
    options = f"'connector' = 'kafka', 'topic' = 'x', 'format' = '{kind}'"
    text = f"""CREATE TABLE t (a INT, at BIGINT METADATA FROM 'offset', topic STRING METADATA)
      WITH ({options}); SELECT a, at, topic FROM t"""
    monkeypatch.setattr(connectors, "check_brokers", lambda options: None)
    assert read(spark, text) == [(1, 7, "x")]
