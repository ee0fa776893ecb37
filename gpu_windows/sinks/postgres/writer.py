"""Writes the micro-batches of a query to tables of PostgreSQL, each in one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.commits.records import RESULT
from gpu_windows.errors import OutputError, require_extra
from gpu_windows.runners.sink import SinkBatch, SinkQuery, SinkWriter
from gpu_windows.sinks.modes import Replacement
from gpu_windows.sinks.placed import check_places
from gpu_windows.sinks.postgres import statements
from gpu_windows.sinks.postgres.columns import check_table
from gpu_windows.sinks.postgres.commits import TableCommits, begin
from gpu_windows.sinks.postgres.statements import TableName
from gpu_windows.sinks.postgres.url import redact, with_timeout
from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame

#: A temporary table, of one transaction: rows before they are added or merged.
_ROWS = "gpu_windows_rows"
#: As SQL has it, whatever tables of this name there are.
_ROWS_SQL = f"pg_temp.{_ROWS}"


@dataclass(frozen=True)
class PostgresWriter(SinkWriter):
    """Writes the outputs of a query to tables that it owns.

    Parameters
    ----------
    url : str
    places : mapping of str to TableName
        Names of written outputs to their tables.
    schemas : mapping of str to pyarrow.Schema
        Of the outputs.
    query : str
        The identity of the checkpoint.
    upsert : Replacement, optional
        None: results are appended.
    takes_over : bool
    """

    url: str = field(repr=False)
    places: Mapping[str, TableName]
    schemas: Mapping[str, pa.Schema]
    query: str
    upsert: Replacement | None
    takes_over: bool

    def begin(self, query: SinkQuery) -> None:
        """Create missing tables, and make the query the owner of all of them.

        Raises
        ------
        OutputError
            If another query has claimed one.
        """
        del query
        self.prepare(commits=True)

    def prepare(self, *, commits: bool) -> Mapping[str, TableName]:
        """Claim all tables, create missing ones, and write no rows to each, as a trial.

        Parameters
        ----------
        commits : bool
            Whether anything of that stays.

        Returns
        -------
        mapping of str to TableName
            Names of outputs to their tables, with the schemas of these.

        Raises
        ------
        OutputError
        QueryError
            If two outputs go to one table.
        """
        with self._transaction("tables of the sink", commits=commits) as cursor:
            places = self._locate(cursor)
            check_places({output: table.sql for output, table in places.items()})
            for output, table in places.items():
                is_there = bool(statements.columns_of(cursor, table.sql))
                commit = TableCommits(table, self.query)
                commit.claim(cursor, takes_over=self.takes_over, is_there=is_there)
                with _rows(cursor, self.schemas[output].empty_table()):
                    self._create_or_check(cursor, output, table)
                    self._move_rows(cursor, output, table)
        return places

    def write(self, batch: SinkBatch) -> None:
        """Write a micro-batch unless it was written before, or has no rows.

        Raises
        ------
        OutputError
            If a table is another query's now, or the checkpoint an older copy.
        """
        if not any(batch.sizes[output] for output in self.places):
            return  # it may run again with other rows
        with self._transaction(f"micro-batch {batch.number}", commits=True) as cursor:
            places = self._locate(cursor)
            commits = {output: TableCommits(table, self.query) for output, table in places.items()}
            # Before anything is recorded. A table that the sink did not have before may lack it.
            lacking = [name for name, each in commits.items() if not each.is_written(cursor, batch)]
            for output in lacking:
                if batch.sizes[output]:
                    with _rows(cursor, self._read(batch, output)):
                        self._move_rows(cursor, output, places[output])
                commits[output].record(cursor, batch)

    def _locate(self, cursor: Any) -> Mapping[str, TableName]:
        """Return the tables of outputs with their schemas, in the order in which all lock them."""
        found = {name: statements.locate(cursor, table) for name, table in self.places.items()}
        return dict(sorted(found.items(), key=lambda each: each[1].sql))

    def _create_or_check(self, cursor: Any, output: str, table: TableName) -> None:
        upsert = self._upsert_of(output)
        change = None if upsert is None else upsert.change
        wanted = statements.columns_of(cursor, _ROWS_SQL)
        wanted.pop(change or "", None)
        found = statements.columns_of(cursor, table.sql)
        if not found:
            made = statements.create_like(table.sql, _ROWS_SQL, change)
            if upsert is not None:
                made.append(statements.unique_index(table.sql, upsert.on))
            for statement in made:
                cursor.execute(statement)
            return
        check_table(table, self.schemas[output], wanted, found)
        if upsert is not None:
            _check_unique(cursor, table, upsert.on)

    def _move_rows(self, cursor: Any, output: str, table: TableName) -> None:
        """Add the rows of the temporary table to the one of an output, or merge them."""
        upsert = self._upsert_of(output)
        names = self.schemas[output].names
        if upsert is None:
            made = statements.append(table.sql, _ROWS_SQL, names)
        else:
            names = [name for name in names if name != upsert.change]
            options: dict[str, Any] = {"change": upsert.change, "fires": upsert.fires}
            made = statements.merge(table.sql, _ROWS_SQL, names, upsert.on, **options)
        for statement in made:
            cursor.execute(statement)

    def _upsert_of(self, output: str) -> Replacement | None:
        return self.upsert if output == RESULT else None

    def _read(self, batch: SinkBatch, output: str) -> pa.Table | pa.RecordBatchReader:
        """Return the rows of an output; many are read a record batch at a time."""
        schema, few = self.schemas[output], batch.read_table(output)
        if few is not None:
            return few.select(schema.names).cast(schema)
        rows = batch.read(output, None).select(*map(quote_name, schema.names))
        return pa.RecordBatchReader.from_batches(schema, _read_batches(rows, schema))

    @contextmanager
    def _transaction(self, doing: str, *, commits: bool) -> Iterator[Any]:
        """Yield a cursor in a transaction that ends with the block.

        Raises
        ------
        OutputError
            For an error of PostgreSQL.
        """
        dbapi = _import_driver()
        try:
            with (
                closing(dbapi.connect(with_timeout(self.url))) as connection,
                closing(connection.cursor()) as cursor,
            ):
                begin(cursor)
                yield cursor
                connection.commit() if commits else connection.rollback()
        except dbapi.Error as error:
            text = str(error)
            redacted = redact(text, self.url)
            rule = f"PostgreSQL refused {doing}: {' '.join(redacted.split())}"
            tables = ", ".join(table.sql for table in self.places.values())
            raise OutputError(rule, value=tables) from (error if redacted == text else None)


@contextmanager
def _rows(cursor: Any, rows: pa.Table | pa.RecordBatchReader) -> Iterator[None]:
    """Fill a temporary table for the time of a block."""
    cursor.adbc_ingest(_ROWS, rows, mode="create", temporary=True)
    yield
    cursor.execute(f"DROP TABLE {_ROWS_SQL}")


def _check_unique(cursor: Any, table: TableName, on: tuple[str, ...]) -> None:
    found = statements.unique_columns(cursor, table.sql)
    if sorted(on) not in map(json.loads, found):
        rule = (
            'mode="upsert" needs a unique index of these columns in which nulls are equal, or '
            f"cannot be: {statements.unique_index(table.sql, on)} (PostgreSQL 15), or a primary key"
        )
        raise OutputError(rule, value=table.sql)


def _import_driver() -> Any:
    require_extra("adbc_driver_postgresql", "postgres", "a PostgresSink, on the driver,")
    from adbc_driver_postgresql import dbapi

    return dbapi


def _read_batches(rows: DataFrame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a DataFrame; the driver holds one partition of them."""
    from pyspark.sql.types import BinaryType, StructType

    from gpu_windows.spark_glue.tasks.worker_step import map_in_workers

    packed = map_in_workers(rows, _pack, StructType().add("packed", BinaryType()))
    for row in packed.toLocalIterator():
        yield from pa.ipc.open_stream(row[0]).read_all().cast(schema).to_batches()


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run in a Spark task: rows to record batches as bytes."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch({"packed": pa.array([sink.getvalue().to_pybytes()], pa.binary())})
