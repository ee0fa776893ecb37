"""Which query owns a table, and which micro-batch of it was written last: a table beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_windows.errors import OutputError
from gpu_windows.runners.sink import SinkBatch
from gpu_windows.sinks.placed import is_written
from gpu_windows.sinks.postgres.statements import TableName

#: The name of the table.
COMMITS = "gpu_windows_commits"
#: A row for each table and query that has written to it; the one of the last generation owns it.
_CREATE = """
CREATE TABLE {} (target text, query text, generation bigint NOT NULL,
number bigint, rows bigint, planned_ms bigint, PRIMARY KEY (target, query))
"""
#: Two starts at once: the second one waits. Any number that other programs are unlikely to take.
_LOCK = "SELECT pg_advisory_xact_lock(7319482650017)"
#: What another transaction committed while this one waited for a lock is seen from then on,
#: whatever the default of the database is.
_SEE_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


def begin(cursor: Any) -> None:
    """Begin a transaction that claims tables, or writes to them."""
    cursor.execute(_SEE_COMMITTED)


@dataclass(frozen=True)
class TableCommits:
    """The commits of a query to a table.

    Parameters
    ----------
    table : TableName
        With its schema, in which its commits are.
    query : str
        The identity of its checkpoint.
    """

    table: TableName
    query: str

    @property
    def _commits(self) -> str:
        return self.table.sibling(COMMITS).sql

    def claim(self, cursor: Any, *, takes_over: bool, is_there: bool) -> None:
        """Make the query the owner of the table; wait for a micro-batch that its owner writes.

        Parameters
        ----------
        cursor
        takes_over : bool
        is_there : bool
            Whether the table exists. One that does not has no owner.

        Raises
        ------
        OutputError
            If it is another query's, or was dropped after this query had written to it.
        """
        cursor.execute(_LOCK)
        cursor.execute("SELECT to_regclass($1) IS NULL", parameters=(self._commits,))
        if cursor.fetchone()[0]:
            cursor.execute(_CREATE.format(self._commits))
        if not is_there:
            self._forget(cursor)
        owner, generation = self._owner(cursor)
        if owner == self.query:
            return
        if owner is not None and not takes_over:
            rule = (
                "the table has results of another query (another checkpoint): write to another "
                "table, or continue with takes_over=True, which keeps its rows"
            )
            raise OutputError(rule, value=self.table.sql)
        # `is_written` of the owner holds its row until it has written.
        self._run(cursor, "SELECT FROM {} WHERE target = $1 FOR UPDATE")
        insert = (
            f"INSERT INTO {{}} (target, query, generation) VALUES ($1, $2, {generation + 1}) "
            "ON CONFLICT (target, query) DO UPDATE SET generation = EXCLUDED.generation"
        )
        self._run(cursor, insert, self.query)

    def is_written(self, cursor: Any, batch: SinkBatch) -> bool:
        """Whether an earlier run wrote a micro-batch; locks the table for other runs.

        Raises
        ------
        OutputError
            If the table is another query's now, or the checkpoint an older copy.
        """
        own = "WHERE target = $1 AND query = $2 FOR UPDATE"
        self._run(cursor, f"SELECT number, rows, planned_ms FROM {{}} {own}", self.query)
        found = cursor.fetchone()
        if found is None or self._owner(cursor)[0] != self.query:
            rule = "another query has taken over the table (takes_over=True)"
            raise OutputError(rule, value=self.table.sql)
        number, rows, planned_ms = found
        return number is not None and is_written(
            batch, number, rows, planned_ms, holder="the table", table=self.table.sql
        )

    def record(self, cursor: Any, batch: SinkBatch) -> None:
        """Record a micro-batch."""
        planned = "NULL" if batch.planned_ms is None else int(batch.planned_ms)
        values = f"number = {batch.number:d}, rows = {batch.rows:d}, planned_ms = {planned}"
        update = f"UPDATE {{}} SET {values} WHERE target = $1 AND query = $2"
        self._run(cursor, update, self.query)

    def _forget(self, cursor: Any) -> None:
        """Delete the commits to a table that was dropped.

        Raises
        ------
        OutputError
            If this query has written to it.
        """
        where = "FROM {} WHERE target = $1"
        own = f"SELECT number {where} AND query = $2 AND number IS NOT NULL"
        self._run(cursor, own, self.query)
        written = cursor.fetchone()
        if written is not None:
            rule = (
                f"the table was dropped after micro-batch {written[0]}, and its rows would be "
                "missing: restore it, begin with a new checkpoint, or delete its rows of "
                f"{self._commits}, which continues in a new table"
            )
            raise OutputError(rule, value=self.table.sql)
        self._run(cursor, f"DELETE {where}")

    def _owner(self, cursor: Any) -> tuple[str | None, int]:
        """Return the query that owns the table, with the number of its generation."""
        newest = "WHERE target = $1 ORDER BY generation DESC LIMIT 1"
        self._run(cursor, f"SELECT query, generation FROM {{}} {newest}")
        owner: tuple[str | None, int] = cursor.fetchone() or (None, 0)
        return owner

    def _run(self, cursor: Any, statement: str, *more: str) -> None:
        """Run a statement on the commits, ``{}``; $1 is the table, more parameters follow."""
        parameters = (self.table.name, *more)
        cursor.execute(statement.format(self._commits), parameters=parameters)
