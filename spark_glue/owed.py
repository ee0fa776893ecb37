"""Has a query that starts again go on with time, where Spark would wait for rows.

After a micro-batch that has moved the watermark, and in processing time always, Spark runs another
one, rows or not: windows close in it, and timers fire. A query that ends before that one is noted
in its checkpoint, by a death or a stop, runs it no more when it starts again: Spark has forgotten
that it owes it. Until new rows come, what is complete is not given then, and no clock ticks. So it
is noted before the start, as Spark would have.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from gpu_windows.spark_glue.offset_log import QUERY, UNREADABLE, OffsetLog
from gpu_windows.spark_glue.texts import literal, read_texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)
#: Settings of Spark: whether micro-batches run in which only time has passed, and whether a start
#: on a checkpoint stops a query that runs on it; else Spark refuses the start.
NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
_STOPS = "spark.sql.streaming.stopActiveRunOnRestart"


def plan_owed(session: SparkSession, checkpoint: str, uri: str, *, by_clock: bool) -> bool:
    """Note the micro-batch that a query owes which is about to start; log why if it cannot be.

    Parameters
    ----------
    session : SparkSession
    checkpoint, uri : str
        The checkpoint, and the same with its scheme.
    by_clock : bool
        Whether the query runs micro-batches all the time, since it waits for processing time.

    Returns
    -------
    bool
        Whether one was noted.
    """
    if not (is_on(session, NO_DATA) and is_on(session, _STOPS)):
        return False  # such micro-batches are not wanted, or it may run in another session
    query = min(read_texts(session, f"{literal(checkpoint)}/{QUERY}"), default=None)
    if query is None:
        return False  # nothing has run yet
    for each in session.streams.active:
        if str(each.id) in query:
            each.stop()  # as Spark does when it starts this one
    owed = _Owed(OffsetLog(uri), query, by_clock)
    found = owed.plan()
    if found in _DONE:
        return found == _NOTED
    by_task = owed.plan_by_task(session)
    if by_task not in _DONE:
        logger.warning(
            "what is complete may wait for the next rows, for %s: not from here (%s), nor by a "
            "task (%s)",
            f"nothing can be noted at {uri}",
            found,
            by_task,
        )
    return by_task == _NOTED


def is_on(session: SparkSession, setting: str) -> bool:
    """Whether a setting of Spark that is true by default is true."""
    return (session.conf.get(setting, None) or "true").lower() == "true"


#: What is told of a plan that was made, or not needed; else the reason why there is none.
_DONE = _NOTED, _NOT_OWED = "noted", "not owed"


@dataclass(frozen=True)
class _Owed:
    log: OffsetLog
    query: str
    by_clock: bool

    def plan(self) -> str:
        """Note the micro-batch if one is owed; return whether that was done, or why it was not."""
        try:
            if not self.log.is_of(self.query):
                return "the checkpoint is not seen"
            planned = self.log.plan_owed(by_clock=self.by_clock)
        except UNREADABLE as error:
            return f"{type(error).__name__}: {error}"
        return _NOT_OWED if planned is None else _NOTED

    def plan_by_task(self, session: SparkSession) -> str:
        """Do so where Spark runs: a client of Spark Connect may be elsewhere."""
        there = replace(self, log=OffsetLog(self.log.uri))  # with its own access to it
        try:
            return str(session.range(0, 1, 1, 1).mapInArrow(there, "told string").collect()[0][0])
        except Exception as error:  # noqa: BLE001 - PySpark raises what Py4J does, too
            return f"{type(error).__name__}: {error}"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"told": [self.plan()]})
