"""A sink of one's own: a table of SQLite with the latest result of every key and window."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pyspark.sql.functions import unix_micros

import gpu_windows as gw


@dataclass(frozen=True)
class SqliteSink(gw.Sink):
    """Keeps a row for each key and window, times as microseconds since 1970 in UTC."""

    path: str
    table: str  # its name in the file

    def check(self, plan: Any) -> None:  # before anything is asked of Spark, or is there
        if not plan.query.is_upserted:
            raise gw.errors.QueryError(plan.query.upsert_rule)

    def open(self, query: gw.SinkQuery) -> gw.SinkWriter:  # may look and refuse; leaves nothing
        names = tuple(query.schemas["result"].names)
        return SqliteWriter(self.path, self.table, names, query.row_columns)


@dataclass
class SqliteWriter(gw.SinkWriter):
    path: str
    table: str
    names: tuple[str, ...]
    on: tuple[str, ...]
    query: str = ""

    def begin(self, query: gw.SinkQuery) -> None:  # at every start; the checkpoint is the query's
        self.query = query.identity  # of the checkpoint: a new one at the same path has another
        columns, on = ", ".join(self.names), ", ".join(self.on)
        with closing(sqlite3.connect(self.path)) as table:
            made = f"CREATE TABLE IF NOT EXISTS {self.table} ({columns}, PRIMARY KEY ({on}))"
            table.execute(made)
            table.execute("CREATE TABLE IF NOT EXISTS written (query PRIMARY KEY, number)")

    def write(self, batch: gw.SinkBatch) -> None:
        results = batch.outputs["result"].orderBy("firing")
        times = {name: unix_micros(name) for name, kind in results.dtypes if kind == "timestamp"}
        rows = (tuple(map(_plain, row)) for row in results.withColumns(times).toLocalIterator())
        places = ", ".join("?" for _ in self.names)
        with closing(sqlite3.connect(self.path)) as table, table:  # one transaction
            told = table.execute("SELECT number FROM written WHERE query = ?", [self.query])
            if batch.number > (told.fetchone() or [-1])[0]:  # else a run before this one wrote it
                table.executemany(f"REPLACE INTO {self.table} VALUES ({places})", rows)
                table.execute("REPLACE INTO written VALUES (?, ?)", [self.query, batch.number])


def _plain(value: Any) -> Any:
    """Return what SQLite has: numbers and text, null."""
    return value if value is None or isinstance(value, int | float) else str(value)
