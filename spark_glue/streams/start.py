"""Starts a streaming query: checks, the first commit, then Spark's ``foreachBatch``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from gpu_windows.checkpointing.commit_log import KEPT, CommitLog
from gpu_windows.checkpointing.files import FOLDER
from gpu_windows.checkpointing.locations import open_checkpoint
from gpu_windows.checkpointing.state_commit import ShardState, StageState, StateCommit
from gpu_windows.errors import QueryError
from gpu_windows.monitoring.queries import last_delivered, watch_commits
from gpu_windows.runners.sink import Sink
from gpu_windows.spark_glue.contract.manifest import Manifest
from gpu_windows.spark_glue.contract.output_kinds import first_kind
from gpu_windows.spark_glue.contract.placement import shard_ids
from gpu_windows.spark_glue.contract.times import follows_clock
from gpu_windows.spark_glue.dataframes.stage_rows import combine_streams
from gpu_windows.spark_glue.session.py_files import show_py_files
from gpu_windows.spark_glue.session.settings import fragment_bytes, hadoop_setting
from gpu_windows.spark_glue.session.shuffles import shuffle_partitions
from gpu_windows.spark_glue.streams.begun_results import begin_stage, resume_manifest
from gpu_windows.spark_glue.streams.engine import Engine
from gpu_windows.spark_glue.streams.job import MicroBatchJob
from gpu_windows.spark_glue.streams.outputs import StreamOutputs
from gpu_windows.spark_glue.streams.resume import read_resumed_commit
from gpu_windows.spark_glue.streams.sink_query import open_writer, query_of
from gpu_windows.spark_glue.streams.stage_job import StageJob
from gpu_windows.spark_glue.streams.stages import StageOfQuery
from gpu_windows.spark_glue.streams.ticks import with_ticks
from gpu_windows.spark_glue.tasks.device import gpu_share
from gpu_windows.spark_glue.tasks.packing import shard_count
from gpu_windows.spark_glue.tasks.workers import PackRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

#: How many micro-batches Spark can plan again.
_SPARK_KEEPS = "spark.sql.streaming.minBatchesToRetain"


def start(
    outputs: StreamOutputs,
    sink: Sink,
    checkpoint: str,
    *,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
    keep: int = KEPT,
    begin_empty: Collection[str] = (),
) -> StreamingQuery:
    """Start a query on a new checkpoint, or resume it on its own.

    ``begin_empty``: results that may be new where it resumes.

    Raises
    ------
    QueryError
        If more commits are to be kept than micro-batches that Spark keeps.
    StateMismatchError
        If the checkpoint is another query's, or other files are there; if Spark's part of it is
        ahead of ours.
    CheckpointError
        If the checkpoint is where it cannot be: see `open_checkpoint`; or its store replaces what
        exists.
    """
    _check_keep(outputs.session, keep)
    files = open_checkpoint(checkpoint, hadoop_setting(outputs.session.conf))
    log = CommitLog(files.below(FOLDER))
    last = read_resumed_commit(log, files)
    log.files.check_create()
    lineage = uuid4().hex if last is None else last.lineage
    query = query_of(outputs, files.root, log.files, lineage)
    stages = outputs.stages
    manifest = outputs.manifest
    if last is not None:
        manifest = resume_manifest(outputs, last, begin_empty)
        stages = tuple(begin_stage(stage, manifest) for stage in stages)
    streams = {name: each for stage in stages for name, each in stage.rows.streams.items()}
    stream = _writer_of(streams, stages, log, trigger)
    stream = stream.option("checkpointLocation", files.spark_url)
    if name is not None:
        stream = stream.queryName(name)
    writer = open_writer(sink, query)
    if last is None:  # what is refused before leaves nothing
        log.add(_first_commit(stages, manifest, lineage))
    writer.begin(query)
    show_py_files(outputs.session)
    job = MicroBatchJob(
        stages=tuple(_stage_job(number, stages, outputs, log) for number in range(len(stages))),
        streams=tuple(streams),
        log=log,
        facts=manifest.text,
    )
    has_steps = any(stage.steps_before for stage in stages)
    engine = Engine(job, outputs.reader, writer, files, has_steps, keep)
    delivered = last_delivered(log, last)
    return watch_commits(stream.foreachBatch(engine).start(), log, delivered)


def _check_keep(session: SparkSession, keep: int) -> None:
    """Refuse to keep commits to which nobody can go back: Spark would have removed its part."""
    most = int(session.conf.get(_SPARK_KEEPS) or 0)
    if keep > most:
        rule = f"keep is at most {most}, the micro-batches that Spark keeps ({_SPARK_KEEPS})"
        raise QueryError(rule, value=keep)


def _writer_of(
    streams: Mapping[str, DataFrame],
    stages: Sequence[StageOfQuery],
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
    number: int, stages: Sequence[StageOfQuery], outputs: StreamOutputs, log: CommitLog
) -> StageJob:
    stage, session = stages[number], outputs.session
    plan = stage.reader.plan
    shards = shard_count(plan)
    partitions = min(shards, shuffle_partitions(session))
    packing = PackRows(plan, shard_ids(shards, partitions), fragment_bytes(session.conf))
    is_last = number == len(stages) - 1
    return StageJob(
        name=stage.name,
        number=number,
        reader=replace(stage.reader, first=0 if is_last else first_kind(number)),
        make_rows=stage.rows.make,
        log=log,
        packing=packing,
        partitions=partitions,
        gpu_share=gpu_share(session.conf),
        scan=stage.scan,
    )


def _first_commit(stages: Sequence[StageOfQuery], manifest: Manifest, lineage: str) -> StateCommit:
    return StateCommit(
        sequence=0,
        lineage=lineage,
        facts=manifest.text,
        stages=tuple(
            StageState(stage.name, (ShardState(),) * shard_count(stage.reader.plan))
            for stage in stages
        ),
    )
