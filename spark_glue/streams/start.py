"""Starts a streaming query: checks, the first commit, then Spark's ``foreachBatch``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from gpu_windows.checkpointing.commit_log import MIN_COMMITS, CommitLog
from gpu_windows.checkpointing.files import FOLDER, CheckpointFiles
from gpu_windows.checkpointing.locations import open_checkpoint
from gpu_windows.checkpointing.state_commit import ShardState, StageState, StateCommit
from gpu_windows.errors import QueryError
from gpu_windows.monitoring.logs import log_fields
from gpu_windows.monitoring.queries import last_delivered, watch_commits
from gpu_windows.planning.kinds.select import SelectQuery
from gpu_windows.planning.plan import is_plan_of
from gpu_windows.runners.sink import Sink
from gpu_windows.spark_glue.contract.manifest import Manifest
from gpu_windows.spark_glue.contract.output_kinds import first_kind
from gpu_windows.spark_glue.contract.placement import shard_ids
from gpu_windows.spark_glue.contract.progress import follows_clock
from gpu_windows.spark_glue.dataframes.stage_rows import combine_streams
from gpu_windows.spark_glue.session.settings import (
    fragment_bytes,
    hadoop_setting,
    shuffle_partitions,
)
from gpu_windows.spark_glue.session.worker_python import add_py_files
from gpu_windows.spark_glue.streams.engine import Engine
from gpu_windows.spark_glue.streams.job import MicroBatchJob
from gpu_windows.spark_glue.streams.outputs import StreamOutputs
from gpu_windows.spark_glue.streams.resume import read_resumed_commit, resume_stages
from gpu_windows.spark_glue.streams.select_job import SelectStageJob
from gpu_windows.spark_glue.streams.sink_query import make_sink_query, open_writer
from gpu_windows.spark_glue.streams.stage_job import StageJob
from gpu_windows.spark_glue.streams.stages import QueryStage
from gpu_windows.spark_glue.streams.ticks import with_ticks
from gpu_windows.spark_glue.tasks.device import gpu_share
from gpu_windows.spark_glue.tasks.given_keys import plan_of_tasks
from gpu_windows.spark_glue.tasks.packing import shard_count
from gpu_windows.spark_glue.tasks.worker_step import check_picklable, portable
from gpu_windows.spark_glue.tasks.workers import PackRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

logger = logging.getLogger(__name__)

#: Setting of the number of micro-batches that Spark keeps, and so can plan again.
_SPARK_KEEPS = "spark.sql.streaming.minBatchesToRetain"


def start(
    outputs: StreamOutputs,
    sink: Sink,
    checkpoint: str,
    *,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
    keep: int = MIN_COMMITS,
    begin_empty: Collection[str] = (),
) -> StreamingQuery:
    """Start a query on a new checkpoint, or resume it on its own.

    ``begin_empty``: results that may be new where it resumes.

    Raises
    ------
    QueryError
        If ``keep`` is greater than the number of micro-batches that Spark keeps.
    StateMismatchError
        If the checkpoint is another query's, or other files are there; if Spark's part of it is
        ahead of the last commit.
    CheckpointError
        If the checkpoint cannot be at this path: see `open_checkpoint`; or if its store cannot
        create files without replacing existing ones.
    """
    _check_keep(outputs.session, keep)
    opened = _open_checkpoint(outputs.session, checkpoint)
    query = make_sink_query(outputs, opened.files.root, opened.log.files, opened.lineage)
    stages, manifest = resume_stages(outputs, opened.last, begin_empty)
    check_picklable([stage.reader.plan for stage in stages])
    streams = {name: each for stage in stages for name, each in stage.rows.streams.items()}
    stream = _stream_writer(streams, stages, opened.log, trigger)
    stream = stream.option("checkpointLocation", opened.files.spark_url)
    if name is not None:
        stream = stream.queryName(name)
    writer = open_writer(sink, query)
    if opened.last is None:  # after all checks, so that a refused query leaves nothing
        opened.log.add(_first_commit(stages, manifest, opened.lineage))
    writer.begin(query)
    add_py_files(outputs.session)
    job = MicroBatchJob(
        stages=tuple(
            _stage_job(number, stages, outputs, opened.log) for number in range(len(stages))
        ),
        streams=tuple(streams),
        log=opened.log,
        facts=manifest.text,
        shares_rows=len(streams) < sum(len(stage.rows.streams) for stage in stages),
    )
    has_steps = any(stage.steps_before for stage in stages)
    label = name or opened.files.root
    engine = Engine(job, outputs.reader, writer, opened.files, has_steps, keep, label)
    with log_fields(query=label):
        after = "-" if opened.last is None else opened.last.number
        logger.info("the query starts on %s, after micro-batch %s", opened.files.root, after)
    delivered = last_delivered(opened.log, opened.last)
    started = stream.foreachBatch(_batch_function(engine, outputs.session)).start()
    return watch_commits(started, opened.log, delivered)


def _batch_function(engine: Engine, session: SparkSession) -> Callable[[DataFrame, int], None]:
    """Return the function that Spark calls in each micro-batch; Spark Connect pickles it."""
    is_pickled = getattr(session, "sparkContext", None) is None
    return portable(engine, session) if is_pickled else engine


def _check_keep(session: SparkSession, keep: int) -> None:
    """Refuse to keep commits whose micro-batches Spark removes from its part of the checkpoint."""
    limit = int(session.conf.get(_SPARK_KEEPS) or 0)
    if keep > limit:
        rule = f"keep is at most {limit}, the micro-batches that Spark keeps ({_SPARK_KEEPS})"
        raise QueryError(rule, value=keep)


@dataclass(frozen=True)
class _OpenedCheckpoint:
    """A checkpoint and its last commit, which is None before the first start."""

    files: CheckpointFiles
    log: CommitLog
    last: StateCommit | None
    lineage: str


def _open_checkpoint(session: SparkSession, path: str) -> _OpenedCheckpoint:
    files = open_checkpoint(path, hadoop_setting(session.conf))
    log = CommitLog(files.below(FOLDER))
    last = read_resumed_commit(log, files)
    log.files.check_create()
    return _OpenedCheckpoint(files, log, last, uuid4().hex if last is None else last.lineage)


def _stream_writer(
    streams: Mapping[str, DataFrame],
    stages: Sequence[QueryStage],
    log: CommitLog,
    trigger: Mapping[str, Any] | None,
) -> DataStreamWriter:
    rows = combine_streams(streams)
    by_clock = any(follows_clock(stage.reader.plan.query) for stage in stages)
    if by_clock:
        rows = with_ticks(rows, log)
    default = {"processingTime": "1 second" if by_clock else "0 seconds"}
    return rows.writeStream.trigger(**(trigger or default))


def _stage_job(
    number: int, stages: Sequence[QueryStage], outputs: StreamOutputs, log: CommitLog
) -> StageJob:
    stage, session = stages[number], outputs.session
    plan = stage.reader.plan
    shards = shard_count(plan)
    partitions = min(shards, shuffle_partitions(session))
    packing = PackRows(
        plan_of_tasks(plan), shard_ids(shards, partitions), fragment_bytes(session.conf)
    )
    is_last = number == len(stages) - 1
    make = SelectStageJob if is_plan_of(plan, SelectQuery) else StageJob
    return make(
        name=stage.name,
        number=number,
        reader=replace(stage.reader, first=0 if is_last else first_kind(number)),
        make_rows=stage.rows.make,
        log=log,
        packing=packing,
        partitions=partitions,
        gpu_share=gpu_share(session.conf),
        scan=stage.scan,
        is_read=stage.is_read,
    )


def _first_commit(stages: Sequence[QueryStage], manifest: Manifest, lineage: str) -> StateCommit:
    return StateCommit(
        sequence=0,
        lineage=lineage,
        facts=manifest.text,
        stages=tuple(
            StageState(stage.name, (ShardState(),) * shard_count(stage.reader.plan))
            for stage in stages
        ),
    )
