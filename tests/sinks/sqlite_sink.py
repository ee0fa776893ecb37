"""A sink of one's own: a table of SQLite with the latest result of every key and window."""

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

    def check(self, plan: Any) -> None:  # before anything is asked of Spark, or is there
        if not plan.query.is_upserted:
            raise gw.errors.QueryError(plan.query.upsert_message)

    def open(self, query: SinkQuery) -> gw.SinkWriter:  # may look and refuse; leaves nothing
        names = tuple(query.schemas["result"].names)
        return SqliteWriter(self.path, self.table, names, query.row_columns)


@dataclass
class SqliteWriter(gw.SinkWriter):
    path: str
    table: str
    names: tuple[str, ...]
    on: tuple[str, ...]
    query: str = ""

    def begin(self, query: SinkQuery) -> None:  # at every start; the checkpoint is the query's
        self.query = query.identity  # of the checkpoint: a new one at the same path has another
        columns, on = ", ".join(self.names), ", ".join(self.on)
        with closing(sqlite3.connect(self.path)) as table:
            made = f"CREATE TABLE IF NOT EXISTS {self.table} ({columns}, PRIMARY KEY ({on}))"
            table.execute(made)
            told = "query PRIMARY KEY, number, rows, planned_ms"
            table.execute(f"CREATE TABLE IF NOT EXISTS written ({told})")

    def write(self, batch: SinkBatch) -> None:
        if not batch.sizes["result"]:
            return  # it may come again with others
        results = batch.outputs["result"].orderBy("firing")
        times = {name: unix_micros(name) for name, kind in results.dtypes if kind == "timestamp"}
        rows = (tuple(map(_plain, row)) for row in results.withColumns(times).toLocalIterator())
        places = ", ".join("?" for _ in self.names)
        with closing(sqlite3.connect(self.path)) as table, table:  # one transaction
            told = table.execute("SELECT * FROM written WHERE query = ?", [self.query])
            _, last, *which = told.fetchone() or (None, -1)
            if batch.number == last and batch.is_again(*which):
                return  # a run before this one wrote it
            if batch.number <= last:  # other rows, under a number that was there
                raise gw.errors.OutputError("the checkpoint is an older copy", value=batch.number)
            table.executemany(f"REPLACE INTO {self.table} VALUES ({places})", rows)
            if "change" in self.names:  # windows that merged go
                table.execute(f"DELETE FROM {self.table} WHERE change = 'delete'")
            token = (self.query, batch.number, batch.rows, batch.planned_ms)
            table.execute("REPLACE INTO written VALUES (?, ?, ?, ?)", token)


def _plain(value: Any) -> Any:
    """Return what SQLite has: numbers and text, null."""
    return value if value is None or isinstance(value, int | float) else str(value)
