"""Formats of tables, Delta Lake and Iceberg, used by SQL, options and settings alone.

A commit is stamped with its query and micro-batch, in the same transaction as its rows: so a query
that resumes knows which micro-batches the table has.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from gpu_windows.errors import QueryError
from gpu_windows.spark_glue.columns.names import quote_table

if TYPE_CHECKING:
    from gpu_windows.annotations import DataType, SparkSession

#: Properties of a commit.
_QUERY, _NUMBER = "gpu-windows.query", "gpu-windows.micro-batch"
_ROWS, _PLANNED = "gpu-windows.rows", "gpu-windows.planned-ms"
#: The name of a table in a namespace of a catalog.
_THREE_PARTS = re.compile(r"(?:`[^`]+`|[^.`/]+)(?:\.(?:`[^`]+`|[^.`/]+)){2,}")
#: Number of versions of a Delta table in which the last commit of a query is searched first.
_RECENT = 100


@dataclass(frozen=True)
class Stamp:
    """Query and micro-batch of a commit.

    Parameters
    ----------
    query : str
        Identity of the query's checkpoint, and the output.
    number : int
        The micro-batch.
    rows : int
        Number of its input rows.
    planned_ms : int, optional
        When Spark planned it, which differs for another micro-batch of the same number.
    """

    query: str
    number: int
    rows: int
    planned_ms: int | None = None

    @classmethod
    def of(cls, properties: Any) -> Self | None:
        """Read the stamp in the properties of a commit; None if it has none."""
        try:
            planned = properties[_PLANNED]
            numbers = (
                int(properties[_NUMBER]),
                int(properties[_ROWS]),
                int(planned) if planned else None,
            )
            return cls(str(properties[_QUERY]), *numbers)
        except (KeyError, TypeError, ValueError):
            return None


class TableFormat(ABC):
    """A format of tables.

    ``name`` is its name in SQL after USING, ``title`` its name in messages; ``forgets``: whether a
    transaction is repeated once the history no longer has it.
    """

    name: str
    title: str
    forgets = False

    @abstractmethod
    def identifier(self, table: str) -> str:
        """Return the name of a table in SQL.

        Raises
        ------
        QueryError
            If it is not the name of a table.
        """

    def refresh(self, session: SparkSession, identifier: str) -> None:  # noqa: B027 - few need it
        """Make commits of other sessions visible in a session."""

    @abstractmethod
    def options(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the options of a writer that stamp its commit."""

    @abstractmethod
    def settings(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the settings of Spark that stamp commits of merges."""

    @abstractmethod
    def last_written(self, session: SparkSession, identifier: str, query: str) -> Stamp | None:
        """Return the last commit of a query in the table's history, if any."""

    def column_type(self, kind: DataType) -> DataType:
        """Return the type in which tables of this format store a column."""
        return kind

    @contextmanager
    def stamping(self, session: SparkSession, stamp: Stamp) -> Iterator[None]:
        """Stamp commits of merges in a session, in which nothing else may be written meanwhile."""
        settings = self.settings(stamp)
        try:
            for name, value in settings.items():
                session.conf.set(name, value)
            yield
        finally:
            for name in settings:
                session.conf.unset(name)


class DeltaTables(TableFormat):
    """Delta Lake: it skips transactions that it has seen, and stores the last of each query."""

    name, title = "delta", "Delta"

    def identifier(self, table: str) -> str:
        """Return a name as it is, and a path in Delta's syntax."""
        if "/" not in table:
            quote_table(table)
            return table
        if "`" in table:
            raise QueryError("the path of a Delta table has no backtick", value=table)
        if not re.match(r"/|[A-Za-z][\w+.-]*:/", table):
            rule = "the path of a Delta table is absolute, or has a scheme such as s3://"
            raise QueryError(rule, value=table)
        return f"delta.`{table}`"

    def options(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the transaction, and the stamp as text, which the history shows."""
        return {
            "txnAppId": f"gpu_windows-{stamp.query}",
            "txnVersion": str(stamp.number),
            "userMetadata": json.dumps(_properties_of(stamp)),
        }

    def settings(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the options by the names of Delta's settings."""
        prefix = "spark.databricks.delta."
        names = ("write.txnAppId", "write.txnVersion", "commitInfo.userMetadata")
        values = self.options(stamp).values()
        return {prefix + name: value for name, value in zip(names, values, strict=True)}

    def last_written(self, session: SparkSession, identifier: str, query: str) -> Stamp | None:
        """Search the history, which Delta keeps for a month by default."""
        whole = f"DESCRIBE HISTORY {quote_table(identifier)}"
        for text in (f"{whole} LIMIT {_RECENT}", whole):
            history = session.sql(text).select("userMetadata").where("userMetadata IS NOT NULL")
            last = _last((_from_json(row[0]) for row in history.collect()), query)
            if last is not None:
                return last
        return None


class IcebergTables(TableFormat):
    """Apache Iceberg: snapshots can have any properties."""

    name, title, forgets = "iceberg", "Iceberg", True

    def identifier(self, table: str) -> str:
        """Return the name of a table, which has a catalog."""
        if not _THREE_PARTS.fullmatch(table):
            rule = "an Iceberg table is named by catalog, namespace and name: lake.db.events"
            raise QueryError(rule, value=table)
        return table

    def refresh(self, session: SparkSession, identifier: str) -> None:
        """Drop the table from the session's catalog cache, which has it for 30 seconds."""
        session.sql(f"REFRESH TABLE {quote_table(identifier)}")

    def options(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the properties of a snapshot as options."""
        return {f"snapshot-property.{key}": value for key, value in _properties_of(stamp).items()}

    def settings(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the options by the names of Iceberg's settings."""
        options = self.options(stamp)
        return {f"spark.sql.iceberg.{name}": value for name, value in options.items()}

    def last_written(self, session: SparkSession, identifier: str, query: str) -> Stamp | None:
        """Search the snapshots that have not expired."""
        from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

        snapshots = session.table(f"{quote_table(identifier)}.snapshots")
        own = snapshots.where(F.col("summary")[_QUERY] == query)
        return _last((row["summary"] for row in own.collect()), query)

    def column_type(self, kind: DataType) -> DataType:
        """Return the type; Iceberg has no integers of 8 and 16 bits."""
        from pyspark.sql.types import (
            ArrayType,
            ByteType,
            IntegerType,
            MapType,
            ShortType,
            StructType,
        )

        if isinstance(kind, ByteType | ShortType):
            return IntegerType()
        if isinstance(kind, ArrayType):
            return ArrayType(self.column_type(kind.elementType), kind.containsNull)
        if isinstance(kind, MapType):
            values = self.column_type(kind.valueType)
            return MapType(self.column_type(kind.keyType), values, kind.valueContainsNull)
        if isinstance(kind, StructType):
            found = StructType()
            for field in kind:
                found = found.add(field.name, self.column_type(field.dataType), field.nullable)
            return found
        return kind


def _properties_of(stamp: Stamp) -> dict[str, str]:
    """Return the properties of a commit."""
    planned = "" if stamp.planned_ms is None else str(stamp.planned_ms)
    numbers = {_NUMBER: str(stamp.number), _ROWS: str(stamp.rows), _PLANNED: planned}
    return {_QUERY: stamp.query, **numbers}


def _last(commits: Iterable[Any], query: str) -> Stamp | None:
    """Return the last stamp of a query among the properties of commits."""
    own = (stamp for each in commits if (stamp := Stamp.of(each)) and stamp.query == query)
    return max(own, key=lambda stamp: stamp.number, default=None)


def _from_json(text: str) -> Any:
    """Parse text that may be of other writers; None if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None
