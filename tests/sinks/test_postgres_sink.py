"""Tables of PostgreSQL: each micro-batch once, whatever dies; results that replace each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.sinks.postgres import statements
from gpu_windows.sinks.postgres.columns import check_columns, check_table
from gpu_windows.sinks.postgres.statements import TableName
from tests.sinks.dying import NOW, Dies, fails, run
from tests.sinks.postgres_server import ask, running_server
from tests.spark_glue.stream_runs import ASSIGNERS, batches, files, streamed, windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

URL = "postgresql://gw@db/shop"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server."""
    with running_server() as url:
        yield url


@pytest.mark.parametrize(
    ("sink", "rule"),
    [
        (lambda: gw.PostgresSink("t", "jdbc:postgresql://db/x?password=secret"), "got jdbc:"),
        (lambda: gw.PostgresSink("t", "host=db password=secret"), "postgresql://user@host"),
        (lambda: gw.PostgresSink("t", 3), "got int"),  # type: ignore[arg-type]
        (lambda: gw.PostgresSink("", URL), "named by text"),
        (lambda: gw.PostgresSink("a.b.c", URL), "named by text"),
        (lambda: gw.PostgresSink("t" * 64, URL), "63 bytes"),
        (lambda: gw.PostgresSink("t", URL, mode="merge"), '"append"'),  # type: ignore[arg-type]
        (lambda: gw.PostgresSink("t", URL, late="t"), "a place of its own"),
        (lambda: gw.PostgresSink("x.gpu_windows_commits", URL), "the sink's own"),
        (lambda: gw.PostgresSink("t", URL, key=("k",)), 'with mode="upsert"'),
        (lambda: gw.PostgresSink("t", URL, mode="upsert", key=5), "is a tuple of names"),  # type: ignore[arg-type]
        (lambda: gw.PostgresSink("t", URL, "upsert", "k"), "tuple of names"),  # type: ignore[arg-type]
        (lambda: gw.PostgresSink("t", URL, takes_over=1), "True or"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_sink(sink: Any, rule: str) -> None:
    with pytest.raises(errors.QueryError, match=rule) as error:
        sink()
    assert "secret" not in str(error.value)


def test_columns_that_postgres_does_not_have() -> None:
    nested = pa.struct({"a": pa.int64()})
    for kind in (nested, pa.list_(nested), pa.map_(pa.string(), pa.int64()), pa.null()):
        with pytest.raises(errors.ColumnTypeError, match=r"to_json\(\.\.\.\) of it, got .*\(c"):
            check_columns(pa.schema({"c": kind}))
    with pytest.raises(errors.QueryError, match="at most 63 bytes"):
        check_columns(pa.schema({"ö" * 32: pa.int64()}))


@pytest.mark.parametrize(
    ("kind", "dtype", "there", "holds"),
    [
        ("bigint", pa.int64(), "integer", True),  # PostgreSQL raises for others
        ("bigint", pa.int64(), "numeric", True),
        ("smallint", pa.int16(), "numeric(12,0)", True),
        ("bigint", pa.int64(), "numeric(12,-2)", False),  # would be rounded
        ("bigint", pa.int64(), "double precision", False),
        ("double precision", pa.float64(), "numeric", False),
        ("double precision", pa.float64(), "real", False),
        ("text", pa.string(), "character varying(9)", False),  # spaces would be cut off
        ("numeric", pa.decimal128(9, 2), "numeric(20,2)", True),
        ("numeric", pa.decimal128(9, 2), "numeric(20,1)", False),
        (
            "timestamp with time zone",
            pa.timestamp("us", "UTC"),
            "timestamp(3) with time zone",
            False,
        ),
    ],
)
def test_a_table_holds_values_as_they_are(
    kind: str, dtype: Any, there: str, *, holds: bool
) -> None:
    schema, table = pa.schema({"c": dtype}), TableName("", "t")
    if holds:
        check_table(table, schema, {"c": kind}, {"c": there, "more": "text"})
        return
    with pytest.raises(errors.OutputError, match='must have the columns "c"'):
        check_table(table, schema, {"c": kind}, {"c": there})


def test_names_are_quoted() -> None:
    assert TableName.parse('a.b"c').sql == '"a"."b""c"'
    (insert,) = statements.append('"t"', "rows", ["a b", 'c"'])
    assert insert == 'INSERT INTO "t" ("a b", "c""") SELECT "a b", "c""" FROM rows'


def tumbling(spark: SparkSession, folder: Path) -> gw.typing.Outputs:
    made = windowed(streamed(spark, folder), ASSIGNERS["tumbling"])
    return made.with_outputs().aggregate(n=gw.count(), total=gw.sum("v"), first=gw.min("ts"))


def plain(row: Iterable[Any]) -> tuple[Any, ...]:
    """Return a row with times without a zone, as Spark collects them, and decimals as numbers."""
    return tuple(map(_plain, row))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, bytearray):
        return bytes(value)
    return float(value) if isinstance(value, Decimal) else value


def made_columns(rows: DataFrame) -> DataFrame:
    """Return rows with columns of further types, and null as a key."""
    return rows.selectExpr(
        "if(k = 1, null, k) AS k", "ts", "v", "text", "seq", "CAST(v AS DECIMAL(20, 3)) AS d",
        "CAST(text AS BINARY) AS b", "CAST(ts AS TIMESTAMP_NTZ) AS at", "to_date(ts) AS day",
        "array(seq, null) AS l", "seq % 2 = 0 AS even", "CAST(seq % 100 AS TINYINT) AS small",
    )  # fmt: skip


def firsts(rows: DataFrame) -> gw.typing.Outputs:
    """Return the outputs of the first rows of keys."""
    columns = ["ts", "seq", "d", "b", "at", "day", "l", "even", "small"]
    keyed = gw.stream(rows).key_by("k").with_outputs()
    return keyed.top(3, ["text", "v"], columns=columns, arrival_order=["seq"], shards=2)


@pytest.mark.thorough
def test_rows_are_there_once(spark: SparkSession, server: str, tmp_path: Path) -> None:
    """Results and late rows, though the sink dies after the first and the last micro-batch."""
    files(tmp_path / "in", batches(3, 100))
    outputs = tumbling(spark, tmp_path / "in")
    sink = gw.PostgresSink("once", server, late="once_late")
    for number in (0, 2):
        fails(partial(run, outputs, Dies(sink, number), tmp_path / "state"), "dies here")
    run(outputs, sink, tmp_path / "state")
    run(outputs, gw.ParquetSink(tmp_path / "out"), tmp_path / "plain")
    for table, kind in (("once", "result"), ("once_late", "late")):
        frame = gw.read_output(spark, tmp_path / "out", kind)
        wanted = sorted(map(tuple, frame.collect()), key=repr)
        names = ", ".join(f'"{name}"' for name in frame.columns)
        found = [plain(row) for row in ask(server, f"SELECT {names} FROM {table}")]
        assert sorted(found, key=repr) == wanted
        assert wanted
    fails(partial(run, outputs, sink, tmp_path / "other"), "results of another query")
    run(outputs, gw.PostgresSink("once", server, takes_over=True), tmp_path / "other")
    assert ask(server, "SELECT count(*) FROM once")[0][0] == 2 * len(
        gw.read_output(spark, tmp_path / "out").collect()
    )
    files(tmp_path / "in", batches(4, 100))
    fails(partial(run, outputs, sink, tmp_path / "state"), "results of another query")


@pytest.mark.thorough
def test_an_older_copy_of_a_checkpoint(spark: SparkSession, server: str, tmp_path: Path) -> None:
    files(tmp_path / "in", batches(2, 50))
    outputs, sink = tumbling(spark, tmp_path / "in"), gw.PostgresSink("copies", server)
    run(outputs, sink, tmp_path / "state")
    copytree(tmp_path / "state", tmp_path / "copy")
    files(tmp_path / "in", batches(4, 50))
    run(outputs, sink, tmp_path / "state")
    fails(partial(run, outputs, sink, tmp_path / "copy"), "older copy")


@pytest.mark.thorough
def test_the_latest_firings_are_in_the_table(
    spark: SparkSession, server: str, tmp_path: Path
) -> None:
    """In a table of one's own with a primary key and more columns; and in one that is made."""
    files(tmp_path / "in", batches(3, 100))
    made = windowed(streamed(spark, tmp_path / "in"), ASSIGNERS["continuous"])
    early = made.trigger(gw.ContinuousEventTimeTrigger.of("15 seconds")).with_firing_columns()
    outputs = early.with_outputs().aggregate(n=gw.count(), total=gw.sum("v"))
    run(outputs, gw.ParquetSink(tmp_path / "out"), tmp_path / "plain")
    wanted: dict[Any, Any] = {}
    for row in gw.read_output(spark, tmp_path / "out").orderBy("firing").collect():
        wanted[row[:3]] = tuple(row)
    bounds = "window_start timestamptz, window_end timestamptz"
    ask(
        server,
        f"CREATE TABLE own (k bigint, {bounds}, firing bigint, timing text, n integer, "
        "total double precision, at timestamptz DEFAULT now(), "
        "PRIMARY KEY (window_start, window_end, k))",
    )
    for table in ("own", "made"):
        sink = gw.PostgresSink(table, server, mode="upsert")
        state = tmp_path / table
        for number in (0, 1):
            fails(partial(run, outputs, Dies(sink, number), state), "dies here")
        run(outputs, sink, state)
        names = ", ".join(gw.read_output(spark, tmp_path / "out").columns)
        found = ask(server, f"SELECT {names} FROM {table}")
        assert sorted(map(plain, found), key=repr) == sorted(wanted.values(), key=repr)
    ask(server, "CREATE TABLE loose AS TABLE made")
    loose = gw.PostgresSink("loose", server, mode="upsert")
    fails(partial(run, outputs, loose, tmp_path / "loose"), "NULLS NOT DISTINCT")
    ask(server, "CREATE TABLE narrow (k bigint, n bigint)")
    narrow = gw.PostgresSink("narrow", server)
    fails(partial(run, outputs, narrow, tmp_path / "narrow"), "no such column")
    nowhere = gw.PostgresSink("nowhere.t", server)
    fails(partial(run, outputs, nowhere, tmp_path / "nowhere"), 'schema "nowhere" does not exist')
    away = gw.PostgresSink("t", "postgresql://gw:secret@127.0.0.1:1/x")
    with pytest.raises(errors.OutputError, match="PostgreSQL refused") as error:
        run(outputs, away, tmp_path / "away")
    assert "secret" not in str(error.value)
    assert ask(server, "SELECT to_regclass('loose_late') IS NULL") == [(True,)]


@pytest.mark.thorough
def test_rows_that_are_deleted(
    spark: SparkSession, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first rows of keys as they change, one of them null; every type of column.

    In one table few rows are written, as a table of Arrow; in the other many, as a DataFrame.
    """
    files(tmp_path / "in", batches(4, 60))
    source = made_columns(streamed(spark, tmp_path / "in"))
    run(firsts(source), gw.PostgresSink("firsts", server, mode="upsert"), tmp_path / "all")
    monkeypatch.setattr("gpu_windows.spark_glue.streams.staged_results._MAX_TABLE_BYTES", 0)
    sink = gw.PostgresSink("again", server, mode="upsert")
    for number in (1, 2):
        fails(partial(run, firsts(source), Dies(sink, number), tmp_path / "state"), "dies here")
    run(firsts(source), sink, tmp_path / "state")
    wanted = firsts(made_columns(spark.read.parquet(str(tmp_path / "in")))).result()
    names = [name for name in wanted.columns if name != "change"]
    rows = sorted((plain(row) for row in wanted.select(names).collect()), key=repr)
    assert len(rows) > 6
    assert any(row[0] is None for row in rows)
    for table in ("firsts", "again"):
        selected = ", ".join("d::float8" if name == "d" else name for name in names)
        found = ask(server, f"SELECT {selected} FROM {table}")
        assert sorted(map(plain, found), key=repr) == rows


SCRIPT = """
CREATE TABLE src (ts TIMESTAMP_LTZ(3), k BIGINT, v DOUBLE, text STRING, seq BIGINT,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
CREATE TABLE totals (k BIGINT, begins TIMESTAMP_LTZ(3), n BIGINT, total DOUBLE{key})
  WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = 'totals', 'username' = 'gw'{more});
INSERT INTO totals SELECT k, window_start, COUNT(*), SUM(v) FROM TABLE(TUMBLE(TABLE src,
  DESCRIPTOR(ts), INTERVAL '30' SECOND)) GROUP BY k, window_start, window_end
"""
KEY = ", PRIMARY KEY (begins, k) NOT ENFORCED"


@pytest.mark.thorough
def test_a_table_of_a_script(spark: SparkSession, server: str, tmp_path: Path) -> None:
    """A primary key has rows replaced, those of an earlier query too."""
    files(tmp_path / "in", batches(3, 80))
    url = f"jdbc:{server.replace('gw@', '')}"
    source = gw.stream(streamed(spark, tmp_path / "in"))
    ask(
        server,
        "CREATE TABLE totals (k bigint, begins timestamptz, n bigint, total double precision, "
        "PRIMARY KEY (k, begins))",
    )

    def write(checkpoint: str, **parts: str) -> None:
        text = SCRIPT.format(url=url, **{"key": KEY, "more": "", **parts})
        script = gw.sql_script(text, src=source).options(device="cpu")
        script.write_stream(tmp_path / checkpoint, trigger=NOW).awaitTermination()

    write("state")
    found = sorted(ask(server, "SELECT * FROM totals"))
    assert len(found) == len({row[:2] for row in found}) > 3
    older = "UPDATE gpu_windows_commits SET query = 'older' WHERE target = 'totals'"
    ask(server, "UPDATE totals SET n = -1", older)
    fails(partial(write, "other"), "results of another query")
    ask(server, "DELETE FROM gpu_windows_commits WHERE target = 'totals'")
    write("again")
    assert sorted(ask(server, "SELECT * FROM totals")) == found
    fails(partial(write, "more", more=", 'sink.x' = '1'"), "not covered, got sink.x")
    url = "jdbc:mysql://db/x"
    fails(partial(write, "mysql"), r"jdbc:postgresql://...', got mysql")
