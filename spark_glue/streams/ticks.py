"""Ticks: an input without rows that has something new when a timer is due by the clock.

So time that passes lies in Spark's offsets like rows do: it is replayed, and stops, fails and
starts again with the query. The last commit says when the next timer is due: until then the source
has no new offset, so that no micro-batch runs.
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

#: Its one column, of which there is no value.
_SCHEMA = "tick timestamp"
_AT = "at_ms"
_MS = 1_000


class TickSource(DataSource):
    """Spark's source of ticks: of each checkpoint a class of its own, see `_source_of`."""

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
        """Return where a query begins."""
        return {_AT: 0}

    def latestOffset(  # noqa: N802
        self, start: dict[str, int] | None = None, limit: Any = None
    ) -> dict[str, int]:
        """Return the time if something is due, else what was returned before.

        After a start it is the time: what was due meanwhile is not waited for. The clock may have
        been set back since: then it is the time of the last micro-batch.
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
        """Note the time: a query with this trigger ends there.

        A union with a source that cannot do so would take all rows in one micro-batch.
        """
        self._end_ms = _now_ms()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return one without rows: Spark takes none for an error."""
        del start, end
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Yield nothing."""
        del partition
        yield from ()


def _now_ms() -> int:
    return int(time.time() * _MS)


def _source_of(commits: CommitLog) -> type[TickSource]:
    """Return a source that has the commits in its class, which Spark pickles with what is in it.

    An option would show the credentials of a store in plans.
    """

    class CheckpointTicks(TickSource):
        log = commits

        @classmethod
        def name(cls) -> str:
            return f"gpu_windows_ticks_{hashlib.sha256(cls.log.files.root.encode()).hexdigest()}"

    return CheckpointTicks


def with_ticks(rows: DataFrame, log: CommitLog) -> DataFrame:
    """Return the rows of a stream, and micro-batches when something is due by the clock.

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
