"""Streams of files: Spark tracks which files have arrived, tasks read their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from gpu_windows.errors import GpuWindowsError, ScanError
from gpu_windows.planning.plan import Plan
from gpu_windows.planning.query import Query
from gpu_windows.runners.scanned_rows import ScannedPart, ScannedRows
from gpu_windows.scans.files import path_of_hadoop, root_of
from gpu_windows.scans.scan import FileScan
from gpu_windows.spark_glue.columns.types import to_arrow_schema
from gpu_windows.spark_glue.contract.watermarks import progress_columns
from gpu_windows.spark_glue.dataframes.task_scan import ArrivingFiles, TaskScan
from gpu_windows.spark_glue.scans.batch_scan import check_columns, check_settings, scan_files
from gpu_windows.spark_glue.tasks.scanning import read_in_tasks
from gpu_windows.spark_glue.tasks.worker_step import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

#: Schema of Spark's source of whole files; their contents are never read.
_FILES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
#: The option of Spark's that limits the files of a micro-batch.
_MAX_FILES = "maxFilesPerTrigger"


def stream_reader(session: SparkSession, max_files: int | None) -> DataStreamReader:
    """Return a reader of streams of files. ``max_files``: of a micro-batch."""
    reader = session.readStream
    return reader if max_files is None else reader.option(_MAX_FILES, max_files)


def stream_scan(
    frame: DataFrame, path: str, session: SparkSession, max_files: int | None
) -> TaskScan:
    """Return the scan by which tasks read files that arrive in a folder.

    See `gpu_windows.spark_glue.streams.outputs.scan_stream_by_spark`.
    """
    reader = stream_reader(session, max_files)
    files = reader.format("binaryFile").schema(_FILES).load(path).select("path")
    schema = to_arrow_schema(frame.schema)
    try:
        check_settings(session.conf)
        check_columns(frame)
        _check_names(schema)
        arriving = ArrivingFiles(files, (root_of(path),))
    except GpuWindowsError as error:
        return TaskScan(None, str(error))
    return TaskScan(ScannedRows((ScannedPart(FileScan(schema)),)), arriving=arriving)


def _check_names(schema: pa.Schema) -> None:
    """Raise `ScanError` for columns with names of `_FILES`: they may be partitions."""
    own = {part.split()[0].lower() for part in _FILES.split(", ")}
    for name in schema.names:
        if name.lower() in own:
            rule = "a stream with a column of this name is read by Spark"
            raise ScanError(rule, value=name, column=name)


def why_not_in_tasks(query: Query) -> str | None:
    """Return why Spark must read the rows of a stream's query, or None."""
    if query.watermarks.in_processing_time:
        return "rows of ingestion time are read by Spark"
    if progress_columns(query):
        return "rows that carry watermarks, or are guarded, are read by Spark"
    return None


@dataclass(frozen=True)
class StreamScan:
    """Reads the files of a micro-batch; pickled to the process that runs ``foreachBatch``.

    Parameters
    ----------
    rows : ScannedRows
        Without files.
    roots : tuple of str
        Of the folders in which files arrive.
    """

    rows: ScannedRows
    roots: tuple[str, ...]

    def map(
        self,
        files: DataFrame,
        plan: Plan,
        step: Step,
        schema: StructType,
    ) -> DataFrame:
        """Return the output of a step over the rows of a micro-batch's files.

        Parameters
        ----------
        files : pyspark.sql.DataFrame
            Their paths.
        plan : Plan
        step : Step
            See `gpu_windows.spark_glue.tasks.scanning.ReadSplits`.
        schema : StructType
            Of its output.

        Raises
        ------
        ScanError
            If a file is missing, or does not have the stream's schema.
        """
        paths = [path_of_hadoop(row[0]) for row in files.collect()]
        session = files.sparkSession
        (part,) = self.rows.parts
        scan = scan_files(part.scan.schema, paths, self.roots, session.conf)
        rows = ScannedRows((replace(part, scan=scan),))
        return read_in_tasks(session, rows, plan, step, schema)
