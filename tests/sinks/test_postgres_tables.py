"""Whose a table of PostgreSQL is, and which one a name means: search paths, races, dropped tables.

Without Spark: a writer is given micro-batches as Arrow tables.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import errors
from gpu_windows.sinks.postgres.statements import TableName
from gpu_windows.sinks.postgres.writer import PostgresWriter
from tests.sinks.postgres_server import ask, running_server

pytestmark = pytest.mark.thorough
SCHEMA = pa.schema({"k": pa.int64()})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server."""
    with running_server() as url:
        yield url


@pytest.fixture
def url(server: str) -> str:
    """The URL of a database with nothing in it."""
    name = f"db{uuid4().hex}"
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres", f"/{name}")


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": [*keys]}, SCHEMA)


def opened(
    url: str, tables: str | Mapping[str, str], query: str = "A", *, takes_over: bool = False
) -> PostgresWriter:
    """Return a writer that has begun."""
    named = {"result": tables} if isinstance(tables, str) else tables
    places = {output: TableName.parse(table) for output, table in named.items()}
    schemas = dict.fromkeys(places, SCHEMA)
    writer = PostgresWriter(url, places, schemas, query, None, takes_over=takes_over)
    writer.prepare(commits=True)
    return writer


def write(
    writer: PostgresWriter,
    number: int,
    read: Callable[[str], pa.Table] | pa.Table,
    planned: int = 1,
) -> None:
    """Write a micro-batch that has the same rows in each output, or those of a function."""
    batch: Any = gw.typing.SinkBatch(
        session=None,  # type: ignore[arg-type]
        number=number,
        rows=2,
        planned_ms=planned,
        sizes=dict.fromkeys(writer.places, 8),
        read=None,  # type: ignore[arg-type]
        read_table=read if callable(read) else lambda output: read,
    )
    writer.write(batch)


def keys_of(url: str, table: str) -> list[int]:
    found = ask(url, f"SELECT k FROM {table}")
    return sorted(int(row[0]) for row in found)  # ADBC returns a numeric as text


def test_two_names_of_one_table_are_refused(url: str) -> None:
    """The table may be there or not; other tables of that name are other tables."""
    for _ in range(2):
        with pytest.raises(errors.QueryError, match=r'place of its own, got .*"public"\."s"'):
            opened(url, {"result": "x", "sides/a": "s", "sides/b": "public.s"})
        ask(url, "CREATE TABLE IF NOT EXISTS public.s (k bigint)")
    ask(url, "CREATE SCHEMA other")
    writer = opened(url, {"result": "x", "sides/a": "s", "sides/b": "other.s"})
    keys = {"result": 1, "sides/a": 2, "sides/b": 3}
    for _ in range(2):
        write(writer, 0, lambda output: rows(keys[output]))
    assert [keys_of(url, table) for table in ("x", "public.s", "other.s")] == [[1], [2], [3]]


@pytest.mark.parametrize("kind", ["numeric", "numeric(19,0)", "numeric(3,0)"])
def test_integers_in_a_numeric_column(url: str, kind: str) -> None:
    ask(url, f"CREATE TABLE t (k {kind})")
    writer = opened(url, "t")
    write(writer, 0, rows(-7, 999))
    if kind == "numeric(3,0)":
        with pytest.raises(errors.OutputError, match="numeric field overflow"):
            write(writer, 1, rows(2**63 - 1))
        assert keys_of(url, "t") == [-7, 999]
        return
    write(writer, 1, rows(2**63 - 1))
    assert keys_of(url, "t") == [-7, 999, 2**63 - 1]


def test_an_output_that_is_written_later(url: str) -> None:
    """A table that a sink did not have is written from the repeated micro-batch on."""
    write(opened(url, "r"), 0, rows(1))
    both = opened(url, {"result": "r", "late": "l"})
    write(both, 0, rows(1))
    write(both, 1, rows(2))
    assert keys_of(url, "r") == keys_of(url, "l") == [1, 2]


def test_a_table_with_the_name_of_the_temporary_one(url: str) -> None:
    writer = opened(url, "gpu_windows_rows")
    for number in (0, 0, 1):
        write(writer, number, rows(number))
    assert keys_of(url, "public.gpu_windows_rows") == [0, 1]


def test_commits_are_beside_the_table_whatever_the_search_path(url: str) -> None:
    """A schema that is named like the user comes before ``public``."""
    ask(url, "CREATE TABLE public.m (k bigint)", "CREATE SCHEMA gw")
    first = opened(url, "m")
    write(first, 0, rows(1))
    with pytest.raises(errors.OutputError, match="results of another query"):
        opened(url, "public.m", "B")
    found = ask(url, "SELECT schemaname FROM pg_tables WHERE tablename = 'gpu_windows_commits'")
    assert found == [("public",)]
    away = f"{url}?options=-csearch_path%3Dnowhere"
    with pytest.raises(errors.OutputError, match=r"no schema: name the table as schema\.table"):
        opened(away, "m")
    write(opened(away, "public.m"), 1, rows(2))
    assert keys_of(url, "public.m") == [1, 2]
    opened(url, "n")  # which is made
    assert ask(url, "SELECT to_regclass('gw.n')::text, to_regclass('public.n')::text") == [
        ("n", None)
    ]


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_a_table_is_taken_over_between_micro_batches(url: str, isolation: str) -> None:
    """What takes it over waits for the micro-batch that its owner writes, which then is refused."""
    option = f"-c%20default_transaction_isolation%3D{isolation.replace(' ', '%5C%20')}"
    url = f"{url}?options={option}"
    assert ask(url, "SELECT current_setting('default_transaction_isolation')") == [(isolation,)]
    first = opened(url, "t", "A")
    write(first, 0, rows(1))
    begun: list[str] = []

    def take_over() -> None:
        write(opened(url, "t", "B", takes_over=True), 0, rows(9))
        begun.append("B")

    thread = threading.Thread(target=take_over)

    def read(output: str) -> pa.Table:
        assert output == "result"
        thread.start()
        thread.join(1)
        assert thread.is_alive(), "it did not wait"
        assert not begun
        return rows(2)

    write(first, 1, read)
    thread.join(30)
    assert begun == ["B"]
    assert keys_of(url, "t") == [1, 2, 9]
    with pytest.raises(errors.OutputError, match="has taken over"):
        write(first, 2, rows(3))


def test_an_owner_that_waits_while_its_table_is_taken_over(url: str) -> None:
    """Its micro-batch begins before the other query has committed, and writes nothing."""
    from adbc_driver_postgresql import dbapi

    first = opened(url, "t", "A")
    failed: list[str] = []

    def go() -> None:
        try:
            write(first, 0, rows(1))
        except errors.OutputError as error:
            failed.append(error.rule)

    thread = threading.Thread(target=go)
    with dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT FROM gpu_windows_commits WHERE target = 't' FOR UPDATE")
        cursor.execute("INSERT INTO gpu_windows_commits VALUES ('t', 'B', 2)")
        thread.start()
        thread.join(1)
        assert thread.is_alive(), "it did not wait"
        connection.commit()
    thread.join(30)
    assert failed == ["another query has taken over the table (takes_over=True)"]
    assert keys_of(url, "t") == []


def test_a_table_that_was_dropped(url: str) -> None:
    writer = opened(url, "t")
    ask(url, "DROP TABLE t")
    opened(url, "t")  # nothing was in it
    write(writer, 3, rows(1))
    ask(url, "DROP TABLE t")
    with pytest.raises(errors.OutputError, match="dropped after micro-batch 3, and its rows"):
        opened(url, "t")
    assert ask(url, "SELECT to_regclass('t') IS NULL") == [(True,)]
    write(opened(url, "t", "B"), 0, rows(7))  # a new checkpoint has a new table
    assert keys_of(url, "t") == [7]
    assert ask(url, "SELECT query FROM gpu_windows_commits") == [("B",)]
    with pytest.raises(errors.OutputError, match="has taken over"):
        write(writer, 4, rows(2))
    ask(url, "DROP TABLE t", "DELETE FROM gpu_windows_commits WHERE target = 't'")
    write(opened(url, "t", "B"), 0, rows(8))
    assert keys_of(url, "t") == [8]


def test_errors_of_the_server_have_no_password(server: str) -> None:
    away = server.replace("gw@", "gw:s3cr%33t@").replace("/postgres", "/s3cr3t")
    with pytest.raises(errors.OutputError, match=r'database "\.\.\." does not exist') as error:
        opened(away, "t")
    chain: BaseException | None = error.value
    assert chain is not None
    assert chain.__suppress_context__
    assert chain.__cause__ is None
    assert "s3cr" not in str(chain)
