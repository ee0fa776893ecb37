"""Connectors of CREATE TABLE: rows that are read, and where results go."""

from __future__ import annotations

from collections.abc import Callable
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
from gpu_windows.sql.scripts.brokers import check_brokers
from gpu_windows.sql.scripts.definitions import TableDefinition
from gpu_windows.sql.scripts.table_options import TableOptions

#: Connectors whose tables are streams.
STREAMS = ("kafka", "datagen")
_SOURCES = ("filesystem", *STREAMS)
_SINKS = ("filesystem", "kafka", "jdbc", "print", "blackhole")
#: Of a URL of JDBC, after ``jdbc:``.
_POSTGRES = "postgresql://"


@dataclass(frozen=True)
class Connectors:
    """Opens the tables of a script.

    Parameters
    ----------
    script : str
        The whole text, for positions.
    session : SparkSession, optional
        None: files are read by Arrow.
    is_streaming : bool
        Whether tables are streams.
    """

    script: str
    session: Any
    is_streaming: bool

    @property
    def zone(self) -> str:
        """The zone of TIMESTAMP_LTZ."""
        return (
            "UTC" if self.session is None else self.session.conf.get("spark.sql.session.timeZone")
        )

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
            check_brokers(self._options(table))

    def sink(self, table: TableDefinition | None) -> Sink:
        """Return the sink of a table for a streaming query.

        Raises
        ------
        SqlError
            If the connector is not one that can be written to.
        """
        assert table is not None, "a target is of INSERT"
        kind = table.connector
        if kind in _SINKS:
            self._options(table).check()
        if kind == "print":
            return PrintSink(table.options.get("print-identifier", ""))
        if kind == "blackhole":
            return DiscardSink()
        if kind == "filesystem":
            return ParquetSink(self._parquet_path(table))
        if kind == "kafka":
            return self._kafka_sink(table)
        if kind == "jdbc":
            return self._postgres_sink(table)
        raise self._unknown(table, _SINKS, f"write_stream(..., sinks={{{table.name!r}: sink}})")

    def writer(
        self, table: TableDefinition | None, path: str | PathLike[str] | None, mode: Mode
    ) -> Callable[[Outputs], Any]:
        """Return what writes bounded results to a table; ``mode``: how to treat earlier files.

        Raises
        ------
        SqlError
            If the connector is not one that bounded results can be written to.
        """
        assert table is not None, "a target is of INSERT"
        if path is not None:
            return lambda outputs: outputs.write_parquet(fspath(path), mode=mode)
        kind, prefix = table.connector, table.options.get("print-identifier", "")
        if kind in _SINKS:
            self._options(table).check()
        if kind == "print":
            return lambda outputs: _print(outputs, prefix)
        if kind == "blackhole":
            return lambda outputs: None
        if kind == "filesystem":
            target = self._parquet_path(table)
            return lambda outputs: outputs.write_parquet(target, mode=mode)
        advice = f"write(sinks={{{table.name!r}: path}})"
        if kind in _SINKS:
            rule = f"bounded results are not written to {kind}: {advice}, or on Spark "
            raise self._options(table).error(f"{rule}write_stream(checkpoint)", kind, "connector")
        raise self._unknown(table, ("filesystem", "print", "blackhole"), advice)

    def _read(self, table: TableDefinition) -> Stream:
        kind, options = table.connector, self._options(table)
        if kind not in _SOURCES:
            raise self._unknown(table, _SOURCES, f"sql_script(text, {table.name}=gw.stream(rows))")
        options.check()
        if kind == "filesystem" and self.session is None:
            path, files = options.path, options.format
            try:
                return stream(read_files(path, files, table.physical_schema))
            except (OutputError, QueryError) as error:
                raise options.error(error.rule, str(error.value)) from error
            except (OSError, pa.ArrowException) as error:
                rule = f"its files cannot be read: {str(error).partition(chr(10))[0]}"
                raise options.error(rule, path) from error
        if self.session is None:
            rule = f"rows of {kind} need Spark, .on_spark(session), or are given by name"
            raise options.error(rule, str(kind))
        from gpu_windows.sql.scripts.spark.tables import SparkTable

        read = SparkTable(options, self.session, is_streaming=self.is_streaming)
        return stream(read.rows())

    def _parquet_path(self, table: TableDefinition) -> str:
        options = self._options(table)
        if options.format.name != "parquet":
            rule = "results are written as Parquet: 'format' = 'parquet'"
            raise options.error(rule, options.format.name)
        if table.partitions:
            raise options.error("partitions are not written", ", ".join(table.partitions))
        return options.path

    def _kafka_sink(self, table: TableDefinition) -> Sink:
        options = self._options(table)
        if options.format.name != "json":
            rule = "records are written as JSON: 'format' = 'json'"
            raise options.error(rule, options.format.name)
        return KafkaSink(options.require("topic"), options.kafka)

    def _postgres_sink(self, table: TableDefinition) -> Sink:
        """Return the sink of a table of PostgreSQL: with a primary key rows are replaced."""
        options = self._options(table)
        url = options.require("url").removeprefix("jdbc:")
        if not url.startswith(_POSTGRES):
            rule = f"tables are those of PostgreSQL, 'url' = 'jdbc:{_POSTGRES}...'"
            raise options.error(rule, url.partition("://")[0])
        if options.get("password") and not options.get("username"):
            raise options.error("'password' needs 'username', too", "no 'username'")
        user = ":".join(quote(options.get(each), safe="") for each in ("username", "password"))
        user = f"{user.rstrip(':')}@" if options.get("username") else ""
        url = f"{_POSTGRES}{user}{url.removeprefix(_POSTGRES)}"
        key = table.primary_key
        try:
            mode: SinkMode = "upsert" if key else "append"
            return PostgresSink(options.require("table-name"), url, mode, key)
        except QueryError as error:
            raise options.error(error.rule, str(error.value)) from error

    def _options(self, table: TableDefinition) -> TableOptions:
        return TableOptions(self.script, table)

    def _unknown(self, table: TableDefinition, kinds: tuple[str, ...], advice: str) -> SqlError:
        if table.connector is None:
            rule = f"it has no connector: WITH ('connector' = '{kinds[0]}', ...), or {advice}"
            return self._options(table).error(rule, table.name)
        connectors = (*_SOURCES, *_SINKS)
        near = "" if table.connector in connectors else did_you_mean(table.connector, connectors)
        rule = (
            f"its connector is none of {', '.join(kinds)}{near}{'; or' if near else ':'} {advice}"
        )
        return self._options(table).error(rule, table.connector, "connector")


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
