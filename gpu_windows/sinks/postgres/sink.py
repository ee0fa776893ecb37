"""A sink that writes to tables of PostgreSQL, each micro-batch once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gpu_windows.commits.records import RESULT
from gpu_windows.errors import QueryError
from gpu_windows.planning.own_columns import FIRING
from gpu_windows.planning.plan import Plan
from gpu_windows.runners.sink import SinkQuery, SinkWriter
from gpu_windows.sinks.modes import Mode, Replacement
from gpu_windows.sinks.placed import PlacedSink, check_places, output_places
from gpu_windows.sinks.postgres.commits import COMMITS
from gpu_windows.sinks.postgres.statements import TableName
from gpu_windows.sinks.postgres.url import check_url

if TYPE_CHECKING:
    from gpu_windows.annotations import StructType


@dataclass(frozen=True)
class PostgresSink(PlacedSink):
    """A sink that writes to tables of PostgreSQL, each micro-batch once.

    The rows of a micro-batch, of all outputs, and its number are one transaction: a repeated
    micro-batch finds its number in the table ``gpu_windows_commits``, beside the table of the
    results, and changes nothing. Rows go through the driver as Arrow, by COPY.

    Needs the extra ``postgres``, and for ``mode="upsert"`` PostgreSQL 15, or a table of your own
    with a primary key: see docs/sinks.md.

    Parameters
    ----------
    table : str
        Of the results: ``minutes`` or ``schema.minutes``, as PostgreSQL stores the names (lower
        case, unless they were quoted). It is made if it is not there; a table of your own must have
        the columns of the results, and may have more, which have defaults.
    url : str
        ``postgresql://user@host:5432/database``. A password may be part of it; better are the
        environment (``PGPASSWORD``) or the file ``~/.pgpass`` of the driver's machine. A server
        that does not answer is waited for 30 seconds, or ``?connect_timeout=60``.
    mode : {"append", "upsert"}
        Whether results are added, or replace the ones with the same keys, window and number (as
        `gpu_windows.upsert` does): of the firings of a window the latest stays, of the first rows
        of keys (`KeyedStream.top`) the table has those that are it now.
    key : tuple of str
        With ``mode="upsert"``: columns that identify rows, in place of keys, window and number. Any
        query may have it whose results differ in them within a micro-batch; PostgreSQL raises for
        others.
    late : str, optional
        The table of late and rejected rows, with their ``rejection_reason``. Default: they are
        counted, not written.
    sides : mapping of str to str
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
    >>> sink = gw.PostgresSink("minutes", "postgresql://etl@db/shop", mode="upsert")
    >>> sink
    PostgresSink(table='minutes', mode='upsert', key=(), late=None, sides={}, takes_over=False)
    """

    table: str
    url: str = field(repr=False)  # a password may be part of it
    mode: Mode = "append"
    key: tuple[str, ...] = ()
    late: str | None = None
    sides: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    takes_over: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_url(self.url)
        object.__setattr__(self, "key", _key_names(self.key, self.mode))
        check_places({output: name.sql for output, name in self.places.items()})
        if any(table.name == COMMITS for table in self.places.values()):
            raise QueryError("this table is the sink's own: write to another one", value=COMMITS)

    @property
    def places(self) -> Mapping[str, TableName]:
        """Names of the outputs that are written, to their tables."""
        tables = output_places(self.table, self.late, self.sides)
        return {output: TableName.parse(table) for output, table in tables.items()}

    def _check_mode(self, plan: Plan) -> None:
        if not self.key:
            super()._check_mode(plan)

    def open(self, query: SinkQuery) -> SinkWriter:
        """Return a writer to the tables, which are the query's from `SinkWriter.begin` on.

        Raises
        ------
        ColumnTypeError
            If PostgreSQL has no type for a column.
        QueryError
            For a ``key`` that results do not have.
        MissingExtraError
            If the extra ``postgres`` is not installed.
        OutputError
            If a table belongs to another query, or has other columns; if PostgreSQL cannot be
            reached, or refuses a statement.
        """
        from gpu_windows.sinks.postgres.columns import check_columns
        from gpu_windows.sinks.postgres.writer import PostgresWriter
        from gpu_windows.spark_glue.columns.types import to_arrow_schema

        schemas: dict[str, StructType] = {name: query.schemas[name] for name in self.places}
        arrow = {name: to_arrow_schema(schema) for name, schema in schemas.items()}
        for schema in arrow.values():
            check_columns(schema)
        unknown = [name for name in self.key if name not in arrow[RESULT].names]
        if unknown:
            rule = f"key names columns of the results: {', '.join(arrow[RESULT].names)}"
            raise QueryError(rule, value=", ".join(unknown))
        computed = query.plan.query
        upserts = self.mode == "upsert"
        on = self.key or (query.row_columns if upserts else ())
        # Firings have an order only if they are of one window.
        fires = FIRING[0].name in arrow[RESULT].names and {*on} >= {
            *query.key_columns,
            *query.window_columns,
        }
        upsert = Replacement(on, computed.change_column, computed.has_windows and fires)
        writer = PostgresWriter(
            self.url,
            self.places,
            arrow,
            query.identity,
            upsert if upserts else None,
            takes_over=self.takes_over,
        )
        return replace(writer, places=writer.prepare(commits=False))


def _key_names(key: Any, mode: Mode) -> tuple[str, ...]:
    """Return the columns that identify rows."""
    has_names = isinstance(key, list | tuple) and all(isinstance(name, str) for name in key)
    if not has_names or (key and mode != "upsert"):
        rule = 'key of a PostgresSink is a tuple of names, with mode="upsert"'
        raise QueryError(rule, value=f"{key!r} with {mode}")
    return tuple(key)
