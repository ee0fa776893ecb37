"""Connectors of CREATE TABLE: rows that are read, and where results go."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from gpu_windows.commits.write_target import Mode
from gpu_windows.datastream.stream import Stream, stream
from gpu_windows.errors import OutputError, QueryError, SqlError, did_you_mean
from gpu_windows.runners.outputs import Outputs
from gpu_windows.runners.sink import Sink
from gpu_windows.sinks.kafka import KafkaSink
from gpu_windows.sinks.modes import Mode as SinkMode
from gpu_windows.sinks.parquet import ParquetSink
from gpu_windows.sinks.postgres.sink import PostgresSink
from gpu_windows.sinks.printing import DiscardSink, PrintSink, print_row
from gpu_windows.sql.api_call import ApiCall
from gpu_windows.sql.scripts.arrow_files import read_files
from gpu_windows.sql.scripts.definitions import TableDefinition
from gpu_windows.sql.scripts.table_options import SparkOptions, TableOptions

#: Connectors whose tables are streams.
STREAMS = ("kafka", "datagen")
_SOURCES = ("filesystem", *STREAMS)
#: Of a URL of JDBC, after ``jdbc:``.
_POSTGRES = "postgresql://"
_SERVERS, _TIMEOUT_S = "properties.bootstrap.servers", 5.0


@dataclass(frozen=True)
class Connectors:
    """Opens the tables of a script.

    Parameters
    ----------
    session : SparkSession, optional
        None: files are read by Arrow.
    is_streaming : bool
        Whether tables are streams.
    """

    session: Any
    is_streaming: bool

    @property
    def zone(self) -> str:
        """The zone of TIMESTAMP_LTZ."""
        if self.session is None:
            return "UTC"
        return str(self.session.conf.get("spark.sql.session.timeZone"))

    def rows(self, table: TableDefinition, given: Any, *, is_shared: bool) -> ApiCall:
        """Return the rows of a table: of a stream that is given, or of its connector.

        Raises
        ------
        SqlError
            If the connector is not one that can be read here.
        """
        name = table.name
        found = self._read(table) if given is None else given
        source = found.source.with_input_name(name)
        if is_shared:
            source = source.with_shared_rows()
        return ApiCall(replace(found, source=source), name)

    def check_reached(self, table: TableDefinition) -> None:
        """Raise `SqlError` for a table of Kafka whose brokers do not answer Spark's driver.

        On Spark Connect that is another process, which is not asked.
        """
        is_here = not type(self.session).__module__.startswith("pyspark.sql.connect")
        if table.connector == "kafka" and self.session is not None and is_here:
            check_brokers(TableOptions(table))

    def _read(self, table: TableDefinition) -> Stream:
        kind = table.connector
        if kind not in _SOURCES:
            raise _unknown(table, _SOURCES, f"sql_script(text, {table.name}=gw.stream(rows))")
        options = SparkOptions(table, self.session, self.is_streaming)
        options.check()
        if self.session is not None:
            from gpu_windows.sql.scripts.spark.tables import read_rows

            return stream(read_rows(options))
        if kind != "filesystem":
            rule = f"rows of {kind} need Spark, .on_spark(session), or are given by name"
            raise options.error(rule, kind)
        path, files = options.path, options.format
        try:
            return stream(read_files(path, files, table.physical_schema))
        except (OutputError, QueryError) as error:
            raise options.error(error.rule, str(error.value)) from error
        except (OSError, pa.ArrowException) as error:
            rule = f"its files cannot be read: {str(error).partition(chr(10))[0]}"
            raise options.error(rule, path) from error


def sink_of(table: TableDefinition) -> Sink:
    """Return the sink of a table for a streaming query.

    Raises
    ------
    SqlError
        If the connector is not one that can be written to.
    """
    make = _SINKS.get(str(table.connector))
    if make is None:
        advice = f"write_stream(..., sinks={{{table.name!r}: sink}})"
        raise _unknown(table, tuple(_SINKS), advice)
    options = TableOptions(table)
    options.check()
    return make(options)


def writer_of(
    table: TableDefinition, path: str | PathLike[str] | None, mode: Mode
) -> Callable[[Outputs], Any]:
    """Return what writes bounded results to a table; ``mode``: how to treat earlier files.

    Raises
    ------
    SqlError
        If the connector is not one that bounded results can be written to.
    """
    kind, options = str(table.connector), TableOptions(table)
    if path is None and kind in _SINKS:
        options.check()
    if path is not None or kind == "filesystem":
        target = _parquet_path(options) if path is None else fspath(path)
        return lambda outputs: outputs.write_parquet(target, mode=mode)
    if kind == "print":
        return lambda outputs: _print(outputs, options.get("print-identifier"))
    if kind == "blackhole":
        return lambda outputs: None
    advice = f"write(sinks={{{table.name!r}: path}})"
    if kind in _SINKS:
        rule = f"bounded results are not written to {kind}: {advice}, or on Spark "
        raise options.error(f"{rule}write_stream(checkpoint)", kind, "connector")
    raise _unknown(table, ("filesystem", "print", "blackhole"), advice)


def _parquet_path(options: TableOptions) -> str:
    if options.format.name != "parquet":
        rule = "results are written as Parquet: 'format' = 'parquet'"
        raise options.error(rule, options.format.name)
    if options.table.partitions:
        raise options.error("partitions are not written", ", ".join(options.table.partitions))
    return options.path


def _kafka_sink(options: TableOptions) -> Sink:
    if options.format.name != "json":
        rule = "records are written as JSON: 'format' = 'json'"
        raise options.error(rule, options.format.name)
    return KafkaSink(options.require("topic"), options.kafka)


def _postgres_sink(options: TableOptions) -> Sink:
    """Return the sink of a table of PostgreSQL: with a primary key rows are replaced."""
    url = options.require("url").removeprefix("jdbc:")
    if not url.startswith(_POSTGRES):
        rule = f"tables are those of PostgreSQL, 'url' = 'jdbc:{_POSTGRES}...'"
        raise options.error(rule, url.partition("://")[0])
    if options.get("password") and not options.get("username"):
        raise options.error("'password' needs 'username', too", "no 'username'")
    user = ":".join(quote(options.get(each), safe="") for each in ("username", "password"))
    user = f"{user.rstrip(':')}@" if options.get("username") else ""
    url = f"{_POSTGRES}{user}{url.removeprefix(_POSTGRES)}"
    key = options.table.primary_key
    try:
        mode: SinkMode = "upsert" if key else "append"
        return PostgresSink(options.require("table-name"), url, mode, key)
    except QueryError as error:
        raise options.error(error.rule, str(error.value)) from error


_SINKS: Mapping[str, Callable[[TableOptions], Sink]] = {
    "filesystem": lambda options: ParquetSink(_parquet_path(options)),
    "kafka": _kafka_sink,
    "jdbc": _postgres_sink,
    "print": lambda options: PrintSink(options.get("print-identifier")),
    "blackhole": lambda options: DiscardSink(),
}


def _unknown(table: TableDefinition, kinds: tuple[str, ...], advice: str) -> SqlError:
    options = TableOptions(table)
    if table.connector is None:
        rule = f"it has no connector: WITH ('connector' = '{kinds[0]}', ...), or {advice}"
        return options.error(rule, table.name)
    connectors = (*_SOURCES, *_SINKS)
    near = "" if table.connector in connectors else did_you_mean(table.connector, connectors)
    rule = f"its connector is none of {', '.join(kinds)}{near}{'; or' if near else ':'} {advice}"
    return options.error(rule, table.connector, "connector")


def check_brokers(options: TableOptions) -> None:
    """Raise `SqlError` if none of the servers of a table takes a connection of this process.

    Spark asks them for offsets from here, the driver, and would try for minutes.
    """
    failures = []
    for server in options.require(_SERVERS).split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit():
            raise options.error(f"'{_SERVERS}' has host:port, with commas between them", server)
        try:
            address = (host.rpartition("/")[2].strip("[]"), int(port))
            with socket.create_connection(address, timeout=_TIMEOUT_S):
                return
        except (OSError, OverflowError) as error:
            failures.append(f"{server.strip()} ({error})")
    rule = f"no broker of Kafka answers this process: start it, or correct '{_SERVERS}'"
    raise options.error(rule, ", ".join(failures))


def _print(outputs: Outputs, prefix: str) -> None:
    result: Any = outputs.result()
    change = outputs.plan.query.change_column
    if isinstance(result, pa.Table):
        for batch in result.to_batches():
            for row in batch.to_pylist():
                print_row(row, prefix, change)
        return
    for row in result.toLocalIterator():
        print_row(row.asDict(recursive=False), prefix, change)
