"""A micro-batch of a query: its stages one after another, and the commit that names their files.

Spark's tasks may fail or run twice: each attempt writes files under names of its own. Readers go by
the names in commits, never by what lies in a folder.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.monitoring.logs import log_fields
from gpu_windows.monitoring.progress import BatchMetrics
from gpu_windows.spark_glue.dataframes.stage_rows import split_streams
from gpu_windows.spark_glue.streams.stage_job import FinishedStage, MicroBatchTimes, StageJob
from gpu_windows.spark_glue.streams.staged_results import StagedResults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Micro-batches whose metrics a commit has: more than run between two polls of a watcher.
_LATEST = 16


@dataclass(frozen=True, kw_only=True)
class MicroBatchJob:
    """Runs micro-batches of one query; pickled to the process that runs ``foreachBatch``.

    Parameters
    ----------
    stages : tuple of StageJob
    streams : tuple of str
        Names of the streams that rows are of, in order.
    log : CommitLog
    facts : str
        See `StateCommit`.
    shares_rows : bool
        Whether several stages read one stream, whose rows are then computed once.
    """

    stages: tuple[StageJob, ...]
    streams: tuple[str, ...]
    log: CommitLog
    facts: str
    shares_rows: bool = False

    def run(
        self, rows: DataFrame, last: StateCommit, number: int, digest: str, planned_ms: int
    ) -> StateCommit:
        """Run a micro-batch and write its files; return its commit, which is not logged yet.

        Parameters
        ----------
        rows : DataFrame
            Of all streams.
        last : StateCommit
            The last one.
        number, digest, planned_ms
            See `StateCommit`.
        """
        began = time.perf_counter()
        times = MicroBatchTimes(
            sequence=last.sequence + 1,
            number=number,
            now_ms=planned_ms,
        )
        if self.shares_rows:
            rows.persist()
        try:
            finished = self._run_stages(rows, last, times)
        finally:
            if self.shares_rows:
                rows.unpersist()
        metrics = _with_seconds(finished, time.perf_counter() - began)
        calls = [e.next_call_ms for e in finished.values() if e.next_call_ms is not None]
        return StateCommit(
            sequence=times.sequence,
            lineage=last.lineage,
            facts=self.facts,
            number=number,
            digest=digest,
            planned_ms=planned_ms,
            stages=tuple(each.state for each in finished.values()),
            results=tuple(file for each in finished.values() for file in each.staged_files),
            rows=sum(each.metrics.counters.rows for each in finished.values()),
            metrics=(*last.metrics, metrics.as_json)[-_LATEST:],
            next_call_ms=min(calls, default=None),
            parent=last.identity,
        )

    def _run_stages(
        self, rows: DataFrame, last: StateCommit, times: MicroBatchTimes
    ) -> dict[str, FinishedStage]:
        finished: dict[str, FinishedStage] = {}
        frames = split_streams(rows, self.streams)
        for job, before in zip(self.stages, last.stages, strict=True):
            watermarks = {name: each.state.watermark for name, each in finished.items()}
            with log_fields(target=job.name):
                done = job.run(job.make_rows(frames), before, watermarks, times)
            finished[job.name] = done
            if job.is_read:
                batch = StagedResults(rows.sparkSession, self.log.files, done.staged_files)
                frames[job.name] = job.reader.stage_rows(batch)
        return finished


def _with_seconds(finished: Mapping[str, FinishedStage], seconds: float) -> BatchMetrics:
    """Return the metrics of the last stage, with those of the others."""
    every = {name: replace(each.metrics, seconds=seconds) for name, each in finished.items()}
    own = every.pop("")
    return replace(own, stages=every)
