"""Writes the micro-batches of a query to its tables."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from gpu_windows.commits.records import RESULT
from gpu_windows.runners.sink import SinkBatch, SinkQuery, SinkWriter
from gpu_windows.sinks.modes import Replacement
from gpu_windows.sinks.placed import is_written
from gpu_windows.sinks.tables import statements
from gpu_windows.sinks.tables.expired_history import is_written_by_record
from gpu_windows.sinks.tables.formats import Stamp, TableFormat
from gpu_windows.sinks.tables.ownership import OWNER, TableOwner

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame, SparkSession, StructType


@dataclass(frozen=True)
class Merge(Replacement):
    """How results replace earlier ones in a table.

    Parameters
    ----------
    on, change, fires
        See `Replacement`.
    within : tuple of str
        Those of ``on`` that are bounds of windows, if any.
    """

    within: tuple[str, ...] = ()

    @classmethod
    def of(cls, query: SinkQuery) -> Self:
        """Return how the results of a query are merged."""
        return replace(super().of(query), within=query.window_columns)

    def __call__(self, results: DataFrame, identifier: str) -> None:
        """Merge results into a table."""
        rows = self.latest(results)
        statements.merge(rows, identifier, self.on, change=self.change, within=self.within)


@dataclass(eq=False)
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

    format: TableFormat
    places: Mapping[str, str]
    schemas: Mapping[str, StructType]
    merge: Merge | None
    takes_over: bool
    _owners: dict[str, TableOwner] = field(default_factory=dict, init=False)
    #: The user's, if it has an identity (Spark Connect).
    _session: str | None = field(default=None, init=False)
    #: Outputs whose last micro-batch this run has written or checked.
    _checked: set[str] = field(default_factory=set, init=False)

    def check_tables(self, query: SinkQuery) -> None:
        """Raise for tables that are another query's, or have other columns; change nothing.

        Raises
        ------
        OutputError
        """
        for output, table in self.places.items():
            if statements.exists(query.session, table):
                self._find_owner(query, output, table)

    def begin(self, query: SinkQuery) -> None:
        """Create missing tables, and make the query the owner of all of them.

        Raises
        ------
        OutputError
            If another query has claimed one.
        """
        session = query.session
        self._session = _id_of(session)
        for output, table in self.places.items():
            statements.create(session, table, self.schemas[output], self.format.name)
            owner = self._owners[output] = self._find_owner(query, output, table)
            if TableOwner.of(session, table) != owner:
                statements.set_property(session, table, OWNER, owner.text)
                owner.check(session, table)

    def _find_owner(self, query: SinkQuery, output: str, table: str) -> TableOwner:
        """Return the query as the owner of an existing table, which it may become."""
        session, identity = query.session, query.identity
        self.format.refresh(session, table)
        owner = TableOwner.next(session, table, identity, takes_over=self.takes_over)
        statements.check_columns(session, table, self.schemas[output])
        return owner

    def write(self, batch: SinkBatch) -> None:
        """Write a micro-batch unless it was written before; outputs without rows are skipped.

        Raises
        ------
        OutputError
            If a table is another query's now, or the checkpoint an older copy.
        """
        for output, table in self.places.items():
            if batch.sizes[output]:
                self._write(batch, output, table)

    def _write(self, batch: SinkBatch, output: str, table: str) -> None:
        session, owner = batch.session, self._owners[output]
        self.format.refresh(session, table)
        owner.check(session, table)
        stamp = Stamp(f"{owner.query}-{output}", batch.number, batch.rows, batch.planned_ms)
        if output not in self._checked and self._is_written(batch, output, stamp):
            return
        rows, merge = batch.read(output, None), self._merge_of(output)
        if merge is None:
            statements.append(rows, table, self.format.options(stamp))
        else:
            with self._stamping(rows.sparkSession, stamp):
                merge(rows, table)
        self._checked.add(output)

    def _merge_of(self, output: str) -> Merge | None:
        """Return how an output is merged; others are appended."""
        return self.merge if output == RESULT else None

    def _stamping(self, session: SparkSession, stamp: Stamp) -> AbstractContextManager[None]:
        """Stamp commits of merges, but not in the user's session.

        Spark runs ``foreachBatch`` in a session of its own, but Spark Connect 4.1 in the user's:
        there other writes would get the stamp, too. So merges have none there, and are repeated
        with a repeated micro-batch, which changes nothing.
        """
        if _id_of(session) is not None and _id_of(session) == self._session:
            return nullcontext()
        return self.format.stamping(session, stamp)

    def _is_written(self, batch: SinkBatch, output: str, stamp: Stamp) -> bool:
        """Whether an earlier run wrote the micro-batch."""
        session, table = batch.session, self.places[output]
        last = self.format.last_written(session, table, stamp.query)
        if last is None and self.format.forgets and self._merge_of(output) is None:
            return is_written_by_record(session, table, stamp.query, stamp.number)
        return last is not None and is_written(
            batch, last.number, last.rows, last.planned_ms, holder=table, table=table
        )


def _id_of(session: SparkSession) -> str | None:
    """Return the id of a Spark Connect session; None for other sessions."""
    found: str | None = getattr(session, "session_id", None)
    return found
