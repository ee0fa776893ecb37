"""What tables of Delta Lake and Iceberg do, by SQL, options and settings alone.

A commit is stamped with the query and the micro-batch that it is of, in the same transaction as its
rows: so a query that goes on knows which micro-batches are there.
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
from gpu_windows.spark_glue.columns.names import quoted_table

if TYPE_CHECKING:
    from gpu_windows.annotations import DataType, SparkSession

#: Keys of what a commit says of itself.
_QUERY, _NUMBER = "gpu-windows.query", "gpu-windows.micro-batch"
_ROWS, _PLANNED = "gpu-windows.rows", "gpu-windows.planned-ms"
#: The name of a table in a namespace of a catalog.
_THREE_PARTS = re.compile(r"(?:`[^`]+`|[^.`/]+)(?:\.(?:`[^`]+`|[^.`/]+)){2,}")
#: Versions of a Delta table among which the last one of a query is looked for first.
_RECENT = 100


@dataclass(frozen=True)
class Stamp:
    """Whose commit it is.

    Parameters
    ----------
    query : str
        What tells the query's checkpoint from others, and the output.
    number : int
        The micro-batch.
    rows : int
        How many rows the micro-batch took in.
    planned_ms : int, optional
        When Spark planned it, by which another one of its number is told.
    """

    query: str
    number: int
    rows: int
    planned_ms: int | None = None

    @classmethod
    def of(cls, said: Any) -> Self | None:
        """Read what a commit says of itself; None if it is nobody's of us."""
        try:
            planned = said[_PLANNED]
            numbers = int(said[_NUMBER]), int(said[_ROWS]), int(planned) if planned else None
            return cls(str(said[_QUERY]), *numbers)
        except (KeyError, TypeError, ValueError):
            return None


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
    def last_written(self, session: SparkSession, identifier: str, query: str) -> Stamp | None:
        """Return the last commit of a query that the table's history tells of, if any."""

    def stored(self, kind: DataType) -> DataType:
        """Return the type in which a table of this format has a column."""
        return kind

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
        if "/" not in table:
            quoted_table(table)
            return table
        if "`" in table:
            raise QueryError("the path of a Delta table has no backtick", value=table)
        if not re.match(r"/|[A-Za-z][\w+.-]*:/", table):
            rule = "the path of a Delta table is absolute, or has a scheme such as s3://"
            raise QueryError(rule, value=table)
        return f"delta.`{table}`"

    def options(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the transaction, and the same as text, which the history shows."""
        return {
            "txnAppId": f"gpu_windows-{stamp.query}",
            "txnVersion": str(stamp.number),
            "userMetadata": json.dumps(_said(stamp)),
        }

    def settings(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the same by the names of Delta's settings."""
        prefix = "spark.databricks.delta."
        names = ("write.txnAppId", "write.txnVersion", "commitInfo.userMetadata")
        values = self.options(stamp).values()
        return {prefix + name: value for name, value in zip(names, values, strict=True)}

    def last_written(self, session: SparkSession, identifier: str, query: str) -> Stamp | None:
        """Look through the history, which Delta keeps for a month if nobody said otherwise."""
        whole = f"DESCRIBE HISTORY {quoted_table(identifier)}"
        for text in (f"{whole} LIMIT {_RECENT}", whole):
            said = session.sql(text).select("userMetadata").where("userMetadata IS NOT NULL")
            last = _last((_from_json(row[0]) for row in said.collect()), query)
            if last is not None:
                return last
        return None


class IcebergTables(TableFormat):
    """Apache Iceberg: snapshots say of themselves what they are asked to."""

    name, title, forgets = "iceberg", "Iceberg", True

    def identifier(self, table: str) -> str:
        """Return the name of a table, which has a catalog."""
        if not _THREE_PARTS.fullmatch(table):
            rule = "an Iceberg table is named by catalog, namespace and name: lake.db.events"
            raise QueryError(rule, value=table)
        return table

    def refresh(self, session: SparkSession, identifier: str) -> None:
        """Forget what the session's catalog holds of the table, which it does for 30 seconds."""
        session.sql(f"REFRESH TABLE {quoted_table(identifier)}")

    def options(self, stamp: Stamp) -> Mapping[str, str]:
        """Return what is said of a snapshot."""
        return {f"snapshot-property.{key}": value for key, value in _said(stamp).items()}

    def settings(self, stamp: Stamp) -> Mapping[str, str]:
        """Return the same by the names of Iceberg's settings."""
        options = self.options(stamp)
        return {f"spark.sql.iceberg.{name}": value for name, value in options.items()}

    def last_written(self, session: SparkSession, identifier: str, query: str) -> Stamp | None:
        """Look through the snapshots that have not expired."""
        from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

        said = F.col("summary")
        ours = session.table(f"{quoted_table(identifier)}.snapshots").where(said[_QUERY] == query)
        return _last((row["summary"] for row in ours.collect()), query)

    def stored(self, kind: DataType) -> DataType:
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
            return ArrayType(self.stored(kind.elementType), kind.containsNull)
        if isinstance(kind, MapType):
            values = self.stored(kind.valueType)
            return MapType(self.stored(kind.keyType), values, kind.valueContainsNull)
        if isinstance(kind, StructType):
            found = StructType()
            for field in kind:
                found = found.add(field.name, self.stored(field.dataType), field.nullable)
            return found
        return kind


def _said(stamp: Stamp) -> dict[str, str]:
    """Return what a commit says of itself."""
    planned = "" if stamp.planned_ms is None else str(stamp.planned_ms)
    numbers = {_NUMBER: str(stamp.number), _ROWS: str(stamp.rows), _PLANNED: planned}
    return {_QUERY: stamp.query, **numbers}


def _last(said: Iterable[Any], query: str) -> Stamp | None:
    """Return the last commit of a query, among what commits say of themselves."""
    ours = (stamp for each in said if (stamp := Stamp.of(each)) and stamp.query == query)
    return max(ours, key=lambda stamp: stamp.number, default=None)


def _from_json(text: str) -> Any:
    """Read what somebody may have written."""
    try:
        return json.loads(text)
    except ValueError:
        return None
