"""An input without rows that has a new offset when the clock makes a timer due.

So the passing of time is in Spark's offsets, as rows are: it is replayed, and it stops, fails and
restarts with the query. The last commit has the time of the next timer. Until then the source has
no new offset, and no micro-batch runs.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.spark_glue.contract.available_now import SupportsTriggerAvailableNow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

#: Its one column, which never has a value.
_SCHEMA = "tick timestamp"
_AT = "at_ms"
_MS = 1_000


class TickSource(DataSource):
    """Spark source of ticks; every checkpoint has a subclass, see `_source_of`."""

    #: The commits of the checkpoint.
    log: ClassVar[CommitLog]

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a stream."""
        del schema
        return TickReader(self.log)


class TickReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is a time of the clock, in milliseconds since 1970; it has no rows.

    Parameters
    ----------
    log : CommitLog
        The commits of the query.
    """

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self._at_ms = 0
        self._end_ms: int | None = None
        self._has_begun = False

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - as Spark calls it
        """Return the offset before the first one."""
        return {_AT: 0}

    def latestOffset(  # noqa: N802
        self, start: dict[str, int] | None = None, limit: Any = None
    ) -> dict[str, int]:
        """Return the current time if something is due, else the previous offset.

        The first call after a start returns the time, so that timers which became due meanwhile
        fire. If the clock was set back, it is the time of the last micro-batch.
        """
        del limit
        self._at_ms = max(self._at_ms, 0 if start is None else start[_AT])
        last = self._log.last()
        if last is None:
            return {_AT: self._at_ms}
        now, due = _now_ms() if self._end_ms is None else self._end_ms, last.next_call_ms
        if not self._has_begun or (due is not None and due <= now):
            self._at_ms = max(now, self._at_ms, last.planned_ms)
            self._has_begun = True
        return {_AT: self._at_ms}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record the time: a query with this trigger stops there.

        A union with a source without this method would read all rows in one micro-batch.
        """
        self._end_ms = _now_ms()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return one partition without rows: an empty list is an error to Spark."""
        del start, end
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Yield nothing."""
        del partition
        yield from ()


def _now_ms() -> int:
    return int(time.time() * _MS)


def _source_of(commits: CommitLog) -> type[TickSource]:
    """Return a subclass that has the commits as an attribute, which Spark pickles with the class.

    As options of the source, credentials of a store would be visible in plans.
    """

    class CheckpointTicks(TickSource):
        log = commits

        @classmethod
        def name(cls) -> str:
            return f"gpu_windows_ticks_{hashlib.sha256(cls.log.files.root.encode()).hexdigest()}"

    return CheckpointTicks


def with_ticks(rows: DataFrame, log: CommitLog) -> DataFrame:
    """Return a stream that also has micro-batches when the clock makes something due.

    Parameters
    ----------
    rows : DataFrame
    log : CommitLog
        The commits of the query.
    """
    session, source = rows.sparkSession, _source_of(log)
    session.dataSource.register(source)
    ticks = session.readStream.format(source.name()).schema(_SCHEMA).load()
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in rows.schema]
    return rows.union(ticks.where(F.lit(False)).select(*nothing))
