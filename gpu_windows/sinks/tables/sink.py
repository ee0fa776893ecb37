"""Sinks for tables of Delta Lake and Apache Iceberg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from gpu_windows.errors import QueryError
from gpu_windows.runners.sink import SinkQuery, SinkWriter
from gpu_windows.sinks.modes import Mode
from gpu_windows.sinks.placed import PlacedSink, check_places, output_places
from gpu_windows.sinks.tables.formats import DeltaTables, IcebergTables, TableFormat

if TYPE_CHECKING:
    from gpu_windows.annotations import StructType

Table = str | PathLike[str]


@dataclass(frozen=True)
class TableSink(PlacedSink):
    """Writes the outputs of a query to tables of a format: see `DeltaSink`, `IcebergSink`.

    Parameters
    ----------
    table : str or os.PathLike
    mode : {"append", "upsert"}
    late : str or os.PathLike, optional
    sides : mapping of str to str or os.PathLike
    takes_over : bool
    """

    table: Table
    mode: Mode = "append"
    late: Table | None = None
    sides: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))
    takes_over: bool = False
    #: The format of the tables.
    format: ClassVar[TableFormat]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_places(self.places)

    @property
    def places(self) -> Mapping[str, str]:
        """Names of written outputs to the names of their tables in SQL."""
        tables = output_places(self.table, self.late, self.sides)
        return {output: self._identifier(table) for output, table in tables.items()}

    def _identifier(self, table: Any) -> str:
        text = fspath(table) if isinstance(table, str | PathLike) else None
        if not isinstance(text, str) or not text.strip():
            rule = f"{self.format.title} tables are named by text, or os.PathLike"
            raise QueryError(rule, value=repr(table))
        is_path = not isinstance(table, str) and "/" not in text
        return self.format.identifier(f"./{text}" if is_path else text.rstrip("/") or text)

    def open(self, query: SinkQuery) -> SinkWriter:
        """Return a writer to the tables, which are the query's from `SinkWriter.begin` on.

        Raises
        ------
        OutputError
            If a table belongs to another query, or has other columns.
        """
        from gpu_windows.sinks.tables.writer import Merge, TableWriter

        merge = Merge.of(query) if self.mode == "upsert" else None
        change = None if merge is None else merge.change
        schemas = {name: self._table_schema(query.schemas[name], change) for name in self.places}
        writer = TableWriter(self.format, self.places, schemas, merge, takes_over=self.takes_over)
        writer.check_tables(query)
        return writer

    def _table_schema(self, schema: StructType, change: str | None) -> StructType:
        """Return the schema of a table: in types of its format, without the change column."""
        from pyspark.sql.types import StructType

        found = StructType()
        for each in schema:
            if each.name != change:
                found = found.add(each.name, self.format.column_type(each.dataType))
        return found


@dataclass(frozen=True)
class DeltaSink(TableSink):
    """A sink that writes to tables of Delta Lake, each micro-batch once.

    A micro-batch is one transaction of each table, stamped with query and micro-batch: Delta skips
    one that it has seen, so that a repeated micro-batch changes nothing. Readers need no special
    handling. The tables of one query are written one after another.

    Needs a session with Delta's extension and catalog: see docs/tables.md.

    Parameters
    ----------
    table : str or os.PathLike
        Of the results: a path, which is absolute or has a scheme (``s3://``), or a name in a
        catalog. It is made if it is not
        there; a table of your own must have the columns of the results, and may have more, such
        as generated ones that it is partitioned by.
    mode : {"append", "upsert"}
        Whether results are added, or replace the ones with the same keys, window and number (as
        `gpu_windows.upsert` does): of the firings of a window the latest stays, of the first rows
        of keys (`KeyedStream.top`) the table has those that are it now.
    late : str or os.PathLike, optional
        The table of late and rejected rows, with their ``rejection_reason``. Default: they are
        counted, not written.
    sides : mapping of str to str or os.PathLike
        Tags of side outputs to tables; each needs one.
    takes_over : bool
        Whether a query may take over tables of another checkpoint: existing rows stay, and the
        other query is refused from then on.

    Raises
    ------
    QueryError
        If a parameter is invalid, or two outputs would go to one table.

    Examples
    --------
    >>> sink = gw.DeltaSink("/lake/minutes", mode="upsert", late="/lake/late")
    >>> sink.table, sink.mode
    ('/lake/minutes', 'upsert')
    """

    format = DeltaTables()


@dataclass(frozen=True)
class IcebergSink(TableSink):
    """A sink that writes to tables of Apache Iceberg, each micro-batch once.

    A micro-batch is one snapshot of each table, stamped with query and micro-batch. A query that is
    started again searches the snapshots, and skips the micro-batch if it is there. So its last
    snapshot must not expire while the query is down: without any snapshot of it, the query is
    refused (see docs/tables.md).

    Needs a session with Iceberg's extension and a catalog: see docs/tables.md.

    Parameters
    ----------
    table : str
        Name of the table of the results, with its catalog: ``lake.db.minutes``. It is made if it
        is not there; a table of your own must have the columns of the results, and may have more.
    mode, late, sides, takes_over
        As in `DeltaSink`.

    Raises
    ------
    QueryError
        If a parameter is invalid, or two outputs would go to one table.

    Examples
    --------
    >>> sink = gw.IcebergSink("lake.db.minutes", mode="upsert")
    >>> sink.table, sink.mode
    ('lake.db.minutes', 'upsert')
    """

    format = IcebergTables()
