"""Reads complete micro-batches at a path as a DataFrame, in batch and as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import LongType, StructType

from gpu_windows.commits.completeness import Missing, check_generations
from gpu_windows.commits.records import COMMITS, OWNERS, Commit, Owner, check_output
from gpu_windows.errors import NameClashError, OutputError
from gpu_windows.spark_glue.columns.types import to_arrow_schema, to_spark_schema
from gpu_windows.spark_glue.files.commit_source import CommitSource
from gpu_windows.spark_glue.files.marker_files import files_of, literal, read_markers
from gpu_windows.spark_glue.files.ownership import owners
from gpu_windows.spark_glue.files.part_files import complete_files, read_files
from gpu_windows.spark_glue.session.settings import max_task_bytes, tasks_at_a_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_output(
    session: SparkSession, path: str, output: str, micro_batch: str | None, missing: Missing
) -> DataFrame:
    """Read what `gpu_windows.read_output` describes."""
    found = _owners(session, path, missing)
    texts = sorted(read_markers(session, f"{literal(path)}/{COMMITS}", many=True), reverse=True)
    commits = {commit.position: commit for commit in map(Commit.from_text, texts)}  # the least
    in_order = [commits[position] for position in sorted(commits)]
    owner = found[-1]
    if owner.is_bounded:
        in_order = in_order[-1:]
        owner = _writer(session, path, found, in_order)
    schema = _schema(owner, output, micro_batch)
    files = complete_files(session, path, output, in_order, missing)
    if micro_batch is None or not files:
        return read_files(session, schema, files)
    frame = read_files(session, StructType(schema.fields[:-1]), files)
    number = F.regexp_extract(F.input_file_name(), r"/\d+-(\d+)-[0-9a-f]+/[^/]*$", 1)
    return frame.withColumn(micro_batch, number.cast(LongType()))


def stream_output(
    session: SparkSession,
    path: str,
    output: str,
    micro_batch: str | None,
    max_micro_batches: int | None,
    missing: Missing,
) -> DataFrame:
    """Read what `gpu_windows.read_output_stream` describes."""
    owner = _owners(session, path, missing)[-1]
    if owner.is_bounded:
        rule = "results of write_parquet do not grow: read them by read_output"
        raise OutputError(rule, value=path)
    schema = _schema(owner, output, micro_batch)
    session.dataSource.register(CommitSource)
    reader = session.readStream.format(CommitSource.name()).schema(schema)
    reader = reader.option("uri", _uri(session, path)).option("output", output)
    reader = reader.option("missing", missing).option("tasks", tasks_at_a_time(session))
    reader = reader.option("task_bytes", max_task_bytes(session))
    if micro_batch is not None:
        reader = reader.option("micro_batch", micro_batch)
    if max_micro_batches is not None:
        reader = reader.option("max_micro_batches", max_micro_batches)
    return reader.load()


def _uri(session: SparkSession, path: str) -> str:
    """Return a path with its scheme, as every process finds it."""
    return files_of(session, f"{literal(path)}/{OWNERS}")[0].rpartition(f"/{OWNERS}/")[0]


def _owners(session: SparkSession, path: str, missing: Missing) -> list[Owner]:
    """Return the queries that wrote to a path, in order, at least one."""
    found = owners(session, path)
    if not found:
        rule = "the path must hold what write_stream wrote there, or write_parquet"
        raise OutputError(rule, value=path)
    if missing == "raise" and not found[-1].is_bounded:  # of those only the last counts
        check_generations(path, [owner.generation for owner in found])
    return found


def _writer(
    session: SparkSession, path: str, found: Iterable[Owner], commits: Iterable[Commit]
) -> Owner:
    """Return the bounded query whose write counts.

    ``found``: those that had begun; ``commits``: the write that counts, if one is complete.
    """
    for commit in commits:
        for owner in (*found, *owners(session, path)):  # it may have begun since
            if owner.generation == commit.generation:
                return owner
    rule = "no write to the path is complete, or it was replaced just now: read it again"
    raise OutputError(rule, value=path)


def _schema(owner: Owner, output: str, micro_batch: str | None) -> StructType:
    check_output(output, owner.schemas)
    written = StructType.fromJson(json.loads(owner.schemas[output]))
    schema = to_spark_schema(to_arrow_schema(written))  # nullable, as files are
    if micro_batch is None:
        return schema
    if micro_batch.lower() in (name.lower() for name in schema.names):
        rule = "the column of the micro-batch needs a name that is free"
        raise NameClashError(rule, value=micro_batch, column=micro_batch)
    return schema.add(micro_batch, LongType())
