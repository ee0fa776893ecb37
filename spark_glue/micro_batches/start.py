"""Starts a streaming query: checks, the first commit, then Spark's ``foreachBatch``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname
from uuid import uuid4

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.state_commit import ShardState, StateCommit
from gpu_windows.errors import StateMismatchError, UnsupportedQueryError
from gpu_windows.runners.sink import Sink
from gpu_windows.spark_glue.batch import columns_of, shuffle_partitions
from gpu_windows.spark_glue.device import gpu_share
from gpu_windows.spark_glue.manifest import Manifest
from gpu_windows.spark_glue.marks import INPUT
from gpu_windows.spark_glue.micro_batches.engine import Engine
from gpu_windows.spark_glue.micro_batches.job import MicroBatchJob
from gpu_windows.spark_glue.micro_batches.ticks import with_ticks
from gpu_windows.spark_glue.placement import shard_ids
from gpu_windows.spark_glue.py_files import show_py_files
from gpu_windows.spark_glue.settings import blob_bytes, large_bytes
from gpu_windows.spark_glue.sink import open_writer, query_of
from gpu_windows.spark_glue.streaming import StreamOutputs
from gpu_windows.spark_glue.times import Times
from gpu_windows.spark_glue.watermarks import (
    CARRIED_WATERMARK,
    followed,
    told_columns,
    with_carried_watermark,
)
from gpu_windows.spark_glue.workers import PackRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

#: The folder of this package in a checkpoint.
FOLDER = "gpu_windows"


def start(
    outputs: StreamOutputs,
    sink: Sink,
    checkpoint: str,
    *,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> StreamingQuery:
    """Start a query on a new checkpoint, or resume it on its own.

    Raises
    ------
    StateMismatchError
        If the checkpoint is another query's, or other files are there.
    UnsupportedQueryError
        If the checkpoint is not on a disk that all processes reach by its path.
    """
    root = local_path(checkpoint)
    log = CommitLog(CheckpointFiles(str(root / FOLDER)))
    query = query_of(outputs, checkpoint)
    last = _check(log, root, outputs.manifest)
    stream = _stream(outputs, log, trigger).option("checkpointLocation", checkpoint)
    if name is not None:
        stream = stream.queryName(name)
    writer = open_writer(sink, query)
    if last is None:  # what is refused before leaves nothing
        log.add(_first_commit(outputs))
    writer.begin(query)
    show_py_files(outputs.session)
    engine = Engine(_job(outputs, log), outputs.reader, writer, CheckpointFiles(str(root)))
    return stream.foreachBatch(engine).start()


def _stream(
    outputs: StreamOutputs, log: CommitLog, trigger: Mapping[str, Any] | None
) -> DataStreamWriter:
    rows, by_clock = _rows(outputs), Times(outputs.plan.query).in_processing_time
    if by_clock:
        rows = with_ticks(rows, log.files.root)
    default = {"processingTime": "1 second" if by_clock else "0 seconds"}
    return rows.writeStream.trigger(**(trigger or default))


def _job(outputs: StreamOutputs, log: CommitLog) -> MicroBatchJob:
    conf, shards = outputs.session.conf, len(outputs.ids)
    partitions = min(shards, shuffle_partitions(outputs.session))
    large, _ = large_bytes(shards, partitions)
    packing = PackRows(outputs.plan, shard_ids(shards, partitions), blob_bytes(conf), large)
    return MicroBatchJob(outputs.plan, log, packing, partitions, gpu_share(conf))


def local_path(checkpoint: str) -> Path:
    """Return the folder of a checkpoint on a disk.

    Raises
    ------
    UnsupportedQueryError
        If it is elsewhere.
    """
    parts = urlsplit(checkpoint)
    if parts.scheme not in ("", "file"):
        rule = "a checkpoint is on a disk that the driver and all executors reach by its path"
        raise UnsupportedQueryError(rule, value=checkpoint)
    path = url2pathname(parts.path) if parts.scheme else checkpoint
    return Path(path).absolute()


def _check(log: CommitLog, root: Path, manifest: Manifest) -> StateCommit | None:
    """Return the last commit of the query; None if the checkpoint is new."""
    last = log.last()
    if last is not None:
        manifest.check_resumes(Manifest.from_text(last.facts))
        return last
    others = sorted(root.iterdir()) if root.is_dir() else []
    others = [each for each in others if each.name != FOLDER]  # a first start may have died
    if others:
        rule = "a checkpoint is a new folder, or one that a query of gpu_windows has begun"
        raise StateMismatchError(rule, value=others[0])
    return None


def _first_commit(outputs: StreamOutputs) -> StateCommit:
    shards = (ShardState(),) * len(outputs.ids)
    return StateCommit(sequence=0, lineage=uuid4().hex, facts=outputs.manifest.text, shards=shards)


def _rows(outputs: StreamOutputs) -> DataFrame:
    """Return the rows with the columns that tasks need, and nothing else."""
    plan = outputs.plan
    watermarks, marked = plan.query.watermarks, plan.marker_columns
    rows = followed(outputs.frame, plan.query.time, watermarks, marked, by_us=True)
    rows = with_carried_watermark(rows, watermarks)
    columns = dict.fromkeys(told_columns(plan.query))
    if len(watermarks.inputs) > 1:
        columns[INPUT] = None
    if watermarks.column is not None:
        columns[CARRIED_WATERMARK] = None
    return columns_of(rows, plan, tuple(columns))
