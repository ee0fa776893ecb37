"""What tables of Delta Lake and Iceberg do, by SQL, options and settings alone.

A commit is stamped with the query and the micro-batch that it is of, in the same transaction as its
rows: so a query that goes on knows which micro-batches are there.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_windows.errors import QueryError

if TYPE_CHECKING:
    from gpu_windows.annotations import SparkSession

#: Keys of what a commit says of itself.
_QUERY, _NUMBER = "gpu-windows.query", "gpu-windows.micro-batch"
#: Versions of a Delta table among which the last one of a query is looked for first.
_RECENT = 100


@dataclass(frozen=True)
class Stamp:
    """Whose commit it is.

    Parameters
    ----------
    query : str
        What tells the query's checkpoint from others.
    number : int
        The micro-batch.
    """

    query: str
    number: int


class TableFormat(ABC):
    """A format of tables.

    ``name`` is what SQL calls it after USING, ``title`` what people do; ``forgets``: whether a
    transaction is done twice when the history no longer tells of it.
    """

    name: str
    title: str
    forgets = False

    @abstractmethod
    def identifier(self, table: str) -> str:
        """Return what SQL calls a table.

        Raises
        ------
        QueryError
            If it is none.
        """

    def refresh(self, session: SparkSession, identifier: str) -> None:  # noqa: B027 - few need it
        """Have a session see what others have committed."""

    @abstractmethod
    def options(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the options of a writer that stamp what it adds."""

    @abstractmethod
    def settings(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the settings of Spark that stamp what is merged while they are set."""

    @abstractmethod
    def last_written(self, session: SparkSession, identifier: str, query: str) -> int | None:
        """Return the last micro-batch of a query that the table's history tells of, if any."""

    @contextmanager
    def stamping(self, session: SparkSession, stamp: Stamp) -> Iterator[None]:
        """Stamp what is merged meanwhile, in a session that nobody else writes in."""
        settings = self.settings(stamp)
        try:
            for name, value in settings.items():
                session.conf.set(name, value)
            yield
        finally:
            for name in settings:
                session.conf.unset(name)


class DeltaTables(TableFormat):
    """Delta Lake: skips a transaction that it has seen, and remembers the last of each query."""

    name, title = "delta", "Delta"

    def identifier(self, table: str) -> str:
        """Return a name as it is, and a path as Delta's SQL has it."""
        if "`" in table:
            raise QueryError("the path of a Delta table has no backtick", value=table)
        return f"delta.`{table}`" if "/" in table else table

    def options(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the transaction, and the same as text, which the history shows."""
        return {
            "txnAppId": f"gpu_windows-{stamp.query}",
            "txnVersion": str(stamp.number),
            "userMetadata": json.dumps({_QUERY: stamp.query, _NUMBER: stamp.number}),
        }

    def settings(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the same by the names of Delta's settings."""
        prefix = "spark.databricks.delta."
        names = ("write.txnAppId", "write.txnVersion", "commitInfo.userMetadata")
        values = self.options(stamp).values()
        return {prefix + name: value for name, value in zip(names, values, strict=True)}

    def last_written(self, session: SparkSession, identifier: str, query: str) -> int | None:
        """Look through the history, which Delta keeps for a month if nobody said otherwise."""
        whole = f"DESCRIBE HISTORY {identifier}"
        for text in (f"{whole} LIMIT {_RECENT}", whole):
            said = session.sql(text).select("userMetadata").where("userMetadata IS NOT NULL")
            last = max(_numbers((row[0] for row in said.collect()), query), default=None)
            if last is not None:
                return last
        return None


class IcebergTables(TableFormat):
    """Apache Iceberg: snapshots say of themselves what they are asked to."""

    name, title, forgets = "iceberg", "Iceberg", True

    def identifier(self, table: str) -> str:
        """Return the name of a table, which has a catalog."""
        if "/" in table:
            rule = "an Iceberg table is named by catalog, namespace and name: lake.db.events"
            raise QueryError(rule, value=table)
        return table

    def refresh(self, session: SparkSession, identifier: str) -> None:
        """Forget what the session's catalog holds of the table, which it does for 30 seconds."""
        session.sql(f"REFRESH TABLE {identifier}")

    def options(self, stamp: Stamp) -> Mapping[str, str]:
        """Return what is said of a snapshot."""
        values = {_QUERY: stamp.query, _NUMBER: str(stamp.number)}
        return {f"snapshot-property.{key}": value for key, value in values.items()}

    def settings(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the same by the names of Iceberg's settings."""
        options = self.options(stamp)
        return {f"spark.sql.iceberg.{name}": value for name, value in options.items()}

    def last_written(self, session: SparkSession, identifier: str, query: str) -> int | None:
        """Look through the snapshots that have not expired."""
        from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

        said = F.col("summary")
        ours = session.table(f"{identifier}.snapshots").where(said[_QUERY] == query)
        last: int | None = ours.agg(F.max(said[_NUMBER].cast("bigint"))).collect()[0][0]
        return last


def _numbers(texts: Iterable[str], query: str) -> Iterator[int]:
    """Yield the micro-batches of a query that commits tell of, among whatever others say."""
    for text in texts:
        try:
            said = json.loads(text)
        except ValueError:
            continue
        if isinstance(said, dict) and said.get(_QUERY) == query:
            yield int(said[_NUMBER])
