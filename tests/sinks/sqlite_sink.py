"""A custom sink: a table of SQLite with the latest result of every key and window."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pyspark.sql.functions import unix_micros

import gpu_windows as gw
from gpu_windows.typing import SinkBatch, SinkQuery


@dataclass(frozen=True)
class SqliteSink(gw.Sink):
    """Keeps a row for each key and window, times as microseconds since 1970 in UTC."""

    path: str
    table: str  # its name in the file

    def check(self, plan: Any) -> None:  # before Spark is called
        if not plan.query.is_upserted:
            raise gw.errors.QueryError(plan.query.upsert_message)

    def open(self, query: SinkQuery) -> gw.SinkWriter:  # may refuse; writes nothing
        names = tuple(query.schemas["result"].names)
        return SqliteWriter(self.path, self.table, names, query.row_columns)


@dataclass
class SqliteWriter(gw.SinkWriter):
    path: str
    table: str
    names: tuple[str, ...]
    on: tuple[str, ...]
    query: str = ""

    def begin(self, query: SinkQuery) -> None:  # at every start, after the query is accepted
        self.query = query.identity  # a new checkpoint has another one
        columns, on = ", ".join(self.names), ", ".join(self.on)
        with closing(sqlite3.connect(self.path)) as table:
            create = f"CREATE TABLE IF NOT EXISTS {self.table} ({columns}, PRIMARY KEY ({on}))"
            table.execute(create)
            last_batch = "query PRIMARY KEY, number, rows, planned_ms"
            table.execute(f"CREATE TABLE IF NOT EXISTS written ({last_batch})")

    def write(self, batch: SinkBatch) -> None:
        if not batch.sizes["result"]:
            return  # it may run again with other rows
        results = batch.outputs["result"].orderBy("firing")
        times = {name: unix_micros(name) for name, kind in results.dtypes if kind == "timestamp"}
        rows = (tuple(map(_plain, row)) for row in results.withColumns(times).toLocalIterator())
        marks = ", ".join("?" for _ in self.names)
        with closing(sqlite3.connect(self.path)) as table, table:  # one transaction
            found = table.execute("SELECT * FROM written WHERE query = ?", [self.query])
            _, last, *which = found.fetchone() or (None, -1)
            if batch.number == last and batch.is_again(*which):
                return  # an earlier run wrote it
            if batch.number <= last:  # other rows under an old number
                raise gw.errors.OutputError("the checkpoint is an older copy", value=batch.number)
            table.executemany(f"REPLACE INTO {self.table} VALUES ({marks})", rows)
            if "change" in self.names:  # windows that were merged
                table.execute(f"DELETE FROM {self.table} WHERE change = 'delete'")
            token = (self.query, batch.number, batch.rows, batch.planned_ms)
            table.execute("REPLACE INTO written VALUES (?, ?, ?, ?)", token)


def _plain(value: Any) -> Any:
    """Return a value that SQLite supports: a number, a string or None."""
    return value if value is None or isinstance(value, int | float) else str(value)
