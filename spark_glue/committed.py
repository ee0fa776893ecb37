"""Complete micro-batches at a path as a DataFrame, in batch and as a stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import LongType, StructType

from gpu_windows.commits.completeness import Missing, check_generations
from gpu_windows.commits.records import COMMITS, OWNERS, Commit, check_output
from gpu_windows.errors import NameClashError, OutputError
from gpu_windows.spark_glue.commit_source import CommitSource
from gpu_windows.spark_glue.ownership import owners
from gpu_windows.spark_glue.part_files import complete_files, read_files
from gpu_windows.spark_glue.texts import files_of, literal, read_texts
from gpu_windows.spark_glue.types import to_arrow_schema, to_spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_output(
    session: SparkSession, path: str, output: str, micro_batch: str | None, missing: Missing
) -> DataFrame:
    """Read what `gpu_windows.read_output` describes."""
    schema = _schema(session, path, output, micro_batch, missing)
    texts = sorted(read_texts(session, f"{literal(path)}/{COMMITS}", many=True), reverse=True)
    commits = {commit.position: commit for commit in map(Commit.from_text, texts)}  # the least
    in_order = [commits[position] for position in sorted(commits)]
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
    schema = _schema(session, path, output, micro_batch, missing)
    session.dataSource.register(CommitSource)
    reader = session.readStream.format(CommitSource.name()).schema(schema)
    reader = reader.option("uri", _uri(session, path)).option("output", output)
    reader = reader.option("missing", missing)
    if micro_batch is not None:
        reader = reader.option("micro_batch", micro_batch)
    if max_micro_batches is not None:
        reader = reader.option("max_micro_batches", max_micro_batches)
    return reader.load()


def _uri(session: SparkSession, path: str) -> str:
    """Return a path as every process finds it, with the scheme that Spark takes for it."""
    return files_of(session, f"{literal(path)}/{OWNERS}")[0].rpartition(f"/{OWNERS}/")[0]


def _schema(
    session: SparkSession, path: str, output: str, micro_batch: str | None, missing: Missing
) -> StructType:
    found = owners(session, path)
    if not found:
        raise OutputError("the path must hold what write_stream wrote there", value=path)
    if missing == "raise":
        check_generations(path, [owner.generation for owner in found])
    schemas = found[-1].schemas
    check_output(output, schemas)
    written = StructType.fromJson(json.loads(schemas[output]))
    schema = to_spark_schema(to_arrow_schema(written), StructType())  # nullable, as files are
    if micro_batch is None:
        return schema
    if micro_batch.lower() in (name.lower() for name in schema.names):
        rule = "the column of the micro-batch needs a name that is free"
        raise NameClashError(rule, value=micro_batch, column=micro_batch)
    return schema.add(micro_batch, LongType())
