"""Runs a streaming query: a job and a commit for each micro-batch, then the sink.

::

    job          state files and staged results are written, under names of this attempt
    commit       one file that names them: state and results are there, or neither
    deliver      the sink writes the staged results
    mark         a file records that they were delivered
    sweep        files that no kept commit needs are deleted

A crash between any two of them loses and repeats nothing: before the commit the micro-batch runs
again, after it the same results are delivered again from the same files.

To Spark the query has no state. Sources and offsets are Spark's; its ``foreachBatch`` runs one job
per stage. Only ``offsets/NUMBER`` of Spark's checkpoint is read, and none of its logs is written.

`tests/spark_glue/streams/test_engine.py` crashes a driver before and after every operation on
files; ``make chaos`` kills drivers and Python workers at random moments.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from gpu_windows.checkpointing.commit_log import MIN_COMMITS, CommitLog
from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.errors import CheckpointError, StateMismatchError
from gpu_windows.monitoring.logs import log_fields
from gpu_windows.runners.sink import SinkBatch, SinkWriter
from gpu_windows.spark_glue.streams import spark_offsets
from gpu_windows.spark_glue.streams.job import MicroBatchJob
from gpu_windows.spark_glue.streams.result_reader import ResultReader
from gpu_windows.spark_glue.streams.staged_results import StagedResults
from gpu_windows.spark_glue.streams.worker_errors import find_worker_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

#: Number of commits between two searches for files of failed attempts; the first follows a start.
_SEARCH_EVERY = 256


@dataclass
class Engine:
    """The ``foreachBatch`` function: runs, commits and delivers each micro-batch.

    Parameters
    ----------
    job : MicroBatchJob
    reader : ResultReader
        Makes DataFrames of results.
    writer : SinkWriter
    checkpoint : CheckpointFiles
        Spark's folder.
    has_steps_before : bool
        Whether earlier steps of Spark's keep state, which Spark updates as rows are computed.
    keep : int
        Number of commits to keep.
    query : str
        Its name, or the path of its checkpoint: in log records.
    """

    job: MicroBatchJob
    reader: ResultReader
    writer: SinkWriter
    checkpoint: CheckpointFiles
    has_steps_before: bool = False
    keep: int = MIN_COMMITS
    query: str = ""
    _last: StateCommit | None = field(default=None, init=False)
    _has_searched: bool = field(default=False, init=False)

    @property
    def log(self) -> CommitLog:
        """The commits."""
        return self.job.log

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Run, commit and deliver a micro-batch; if it was committed before, only deliver it.

        Raises
        ------
        StateMismatchError
            If Spark's checkpoint does not continue from the last commit, nor, if that has no
            results, from the one before it.
        CheckpointError
            If Spark's checkpoint is in another folder.
        ConcurrentQueryError
            If another driver runs a query on the checkpoint.
        """
        with log_fields(query=self.query, micro_batch=number):
            self._run(rows, number)

    def _run(self, rows: DataFrame, number: int) -> None:
        began = perf_counter()
        last = self._begin(rows.sparkSession)
        record = self._read_offsets(number)
        digest = hashlib.sha256(record).hexdigest()
        if number == last.number and digest == last.digest:
            if self.has_steps_before:
                rows.write.format("noop").mode("overwrite").save()
            return
        before = self._state_before(number, last)
        # The clock may be set back, but times of commits increase.
        planned_ms = max(spark_offsets.planned_at(record), last.planned_ms + 1)
        try:
            commit = self.job.run(rows, before, number, digest, planned_ms)
        except Exception as error:
            self.log.check_is_last(last.sequence, last.identity)  # else its files may be swept
            if (raised := find_worker_error(error)) is not None:
                raise error from raised
            raise
        self.log.add(commit)
        self._last = commit
        message = "micro-batch %d is committed: %d rows in %.2f s"
        logger.info(message, number, commit.rows, perf_counter() - began)
        self._deliver_new(commit, rows.sparkSession)
        self.log.sweep(commit, self.keep)
        if not self._has_searched or commit.sequence % _SEARCH_EVERY == 0:
            self.log.sweep_failed_attempts()
            self._has_searched = True

    def _state_before(self, number: int, last: StateCommit) -> StateCommit:
        """Return the commit from whose state a micro-batch starts, numbered as the last commit.

        If a checkpoint was rolled back, Spark plans the last micro-batch again. If that one has no
        results it is replaced: the state before it is used, and its commit stays in the sequence.
        """
        found: StateCommit | None = last
        if number == last.number and not last.results:
            found = self.log.find(number - 1)
        if found is None or number != found.number + 1:
            raise _other_number(number, last)
        return replace(found, sequence=last.sequence, identity=last.identity)

    def deliver(self, commit: StateCommit, session: SparkSession) -> None:
        """Deliver the results of the last commit to the sink, unless they were delivered."""
        if commit.sequence and not self.log.is_delivered(commit):
            message = "results of micro-batch %d are delivered again: the sink may have had them"
            logger.info(message, commit.number)
            self._deliver_new(commit, session)

    def _deliver_new(self, commit: StateCommit, session: SparkSession) -> None:
        self.writer.write(self._sink_batch(commit, session))
        self.log.mark_delivered(commit)

    def _read_offsets(self, number: int) -> bytes:
        try:
            return self.checkpoint.read(f"{spark_offsets.FOLDER}/{number}")
        except FileNotFoundError as error:
            rule = (
                "the process that runs micro-batches must see Spark's part of the checkpoint: "
                f"{spark_offsets.FOLDER}/{number} is missing"
            )
            raise CheckpointError(rule, value=self.checkpoint.root) from error

    def _begin(self, session: SparkSession) -> StateCommit:
        """Return the last commit; after a start, deliver it."""
        if self._last is None:
            found = self.log.last()
            if found is None:
                rule = "a checkpoint must have the commit of its first start"
                raise StateMismatchError(rule, value=self.log.files.root)
            self.deliver(found, session)
            self._last = found
        return self._last

    def _sink_batch(self, commit: StateCommit, session: SparkSession) -> SinkBatch:
        results = StagedResults(session, self.log.files, commit.results)
        sizes = results.sizes
        read: Callable[[str, int | None], DataFrame] = partial(self.reader.output, results)
        return SinkBatch(
            session=session,
            number=commit.number,
            rows=commit.rows,
            sizes={name: sizes[kind] for name, kind in self.reader.kinds.items()},
            read=read,
            planned_ms=commit.planned_ms,
            read_table=partial(self.reader.table, results),
        )


def _other_number(number: int, last: StateCommit) -> StateMismatchError:
    rule = (
        f"Spark's checkpoint continues with micro-batch {number}, and the last commit is of "
        f"micro-batch {last.number}: parts of the checkpoint were removed or replaced"
    )
    return StateMismatchError(rule, value=f"commit {last.sequence}")
