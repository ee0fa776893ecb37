"""Writes the micro-batches of a query to its tables."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from gpu_windows.commits.records import RESULT
from gpu_windows.errors import OutputError
from gpu_windows.runners.sink import SinkBatch, SinkQuery, SinkWriter
from gpu_windows.sinks.modes import latest
from gpu_windows.sinks.tables import statements
from gpu_windows.sinks.tables.expired_history import is_written_by_record
from gpu_windows.sinks.tables.formats import Stamp, TableFormat
from gpu_windows.sinks.tables.ownership import OWNER, TableOwner

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame, SparkSession, StructType


@dataclass(frozen=True)
class Merge:
    """How results replace earlier ones.

    Parameters
    ----------
    on : tuple of str
        Names of the columns that identify rows.
    within : tuple of str
        Those of them that are bounds of windows, if any.
    fires : bool
        Whether results are firings of windows: then the last one in a micro-batch counts.
    change : str, optional
        The column that marks deleted rows.
    """

    on: tuple[str, ...]
    within: tuple[str, ...]
    fires: bool
    change: str | None

    @classmethod
    def of(cls, query: SinkQuery) -> Self:
        """Return how the results of a query are merged."""
        computed = query.plan.query
        change = computed.change_column
        return cls(query.row_columns, query.window_columns, computed.has_windows, change)

    def __call__(self, results: DataFrame, identifier: str) -> None:
        """Merge results into a table."""
        rows = latest(results, self.on) if self.fires else results
        statements.merge(rows, identifier, self.on, change=self.change, within=self.within)


class TableWriter(SinkWriter):
    """Writes the outputs of a query to tables that it owns.

    Parameters
    ----------
    format : TableFormat
    places : mapping of str to str
        Names of written outputs to the names of their tables in SQL.
    schemas : mapping of str to StructType
        Of the tables that are created.
    merge : Merge, optional
        None: results are appended.
    takes_over : bool
    """

    def __init__(
        self,
        format: TableFormat,  # noqa: A002 - as everyone calls it
        places: Mapping[str, str],
        schemas: Mapping[str, StructType],
        merge: Merge | None,
        *,
        takes_over: bool,
    ) -> None:
        self._format = format
        self._places = places
        self._schemas = schemas
        self._merge = merge
        self._takes_over = takes_over
        self._owners: dict[str, TableOwner] = {}
        self._session: str | None = None  # the user's, if it has an identity (Spark Connect)
        self._checked: set[str] = (
            set()
        )  # outputs whose last micro-batch this run has written or checked

    def check_tables(self, query: SinkQuery) -> None:
        """Raise for tables that are another query's, or have other columns; change nothing.

        Raises
        ------
        OutputError
        """
        session, identity = query.session, query.identity
        for output, table in self._places.items():
            if statements.exists(session, table):
                self._format.refresh(session, table)
                TableOwner.next(session, table, identity, takes_over=self._takes_over)
                statements.check_columns(session, table, self._schemas[output])

    def begin(self, query: SinkQuery) -> None:
        """Create missing tables, and make the query the owner of all of them.

        Raises
        ------
        OutputError
            If another query has claimed one.
        """
        session, identity = query.session, query.identity
        self._session = _id_of(session)
        for output, table in self._places.items():
            statements.create(session, table, self._schemas[output], self._format.name)
            self._format.refresh(session, table)
            generation = TableOwner.next(session, table, identity, takes_over=self._takes_over)
            owner = self._owners[output] = TableOwner(generation, identity)
            statements.check_columns(session, table, self._schemas[output])
            if TableOwner.of(session, table) != owner:
                statements.set_property(session, table, OWNER, owner.text)
                owner.check(session, table)

    def write(self, batch: SinkBatch) -> None:
        """Write a micro-batch unless it was written before; outputs without rows are skipped.

        Raises
        ------
        OutputError
            If a table is another query's now, or the checkpoint an older copy.
        """
        for output, table in self._places.items():
            if batch.sizes[output]:
                self._write(batch, output, table)

    def _write(self, batch: SinkBatch, output: str, table: str) -> None:
        session, owner = batch.session, self._owners[output]
        self._format.refresh(session, table)
        owner.check(session, table)
        stamp = Stamp(f"{owner.query}-{output}", batch.number, batch.rows, batch.planned_ms)
        if output not in self._checked and self._is_written(batch, output, stamp):
            return
        rows = batch.read(output, None)
        if self._merges(output):
            with self._stamping(rows.sparkSession, stamp):
                assert self._merge is not None
                self._merge(rows, table)
        else:
            statements.append(rows, table, self._format.options(stamp))
        self._checked.add(output)

    def _merges(self, output: str) -> bool:
        """Whether an output is merged; others are appended."""
        return output == RESULT and self._merge is not None

    def _stamping(self, session: SparkSession, stamp: Stamp) -> AbstractContextManager[None]:
        """Stamp commits of merges, but not in the user's session.

        Spark runs ``foreachBatch`` in a session of its own, but Spark Connect 4.1 in the user's:
        there other writes would get the stamp, too. So merges have none there, and are repeated
        with a repeated micro-batch, which changes nothing.
        """
        if _id_of(session) is not None and _id_of(session) == self._session:
            return nullcontext()
        return self._format.stamping(session, stamp)

    def _is_written(self, batch: SinkBatch, output: str, stamp: Stamp) -> bool:
        """Whether an earlier run wrote the micro-batch."""
        session, table = batch.session, self._places[output]
        last = self._format.last_written(session, table, stamp.query)
        if last is None and self._format.forgets and not self._merges(output):
            return is_written_by_record(session, table, stamp.query, stamp.number)
        if last is None or last.number < stamp.number:
            return False
        if last.number > stamp.number or not batch.is_again(last.rows, last.planned_ms):
            rule = (
                f"the checkpoint continues with micro-batch {stamp.number} of {stamp.rows} rows, "
                f"and {table} holds micro-batch {last.number} of {last.rows} rows: either the "
                "checkpoint is an older copy, or what comes before gw.stream has changed. Write to "
                "another table"
            )
            raise OutputError(rule, value=table)
        return True


def _id_of(session: SparkSession) -> str | None:
    """Return the id of a Spark Connect session; None for other sessions."""
    found: str | None = getattr(session, "session_id", None)
    return found
