"""Files that arrive in a folder, as the source of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_windows.spark_glue.dataframes.stream_inputs import StreamInput
from gpu_windows.spark_glue.scans.batch_scan import check_folder
from gpu_windows.spark_glue.scans.stream_scan import stream_reader, stream_scan
from gpu_windows.spark_glue.streams.outputs import StreamSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def scan_stream_by_spark(
    path: str, session: SparkSession, schema: StructType | str | None, max_files: int | None
) -> StreamSource:
    """Return files that arrive in a folder as a source.

    Parameters
    ----------
    path : str
    session : pyspark.sql.SparkSession
    schema : StructType or str, optional
        Of the files; default: of those already there.
    max_files : int, optional
        Of a micro-batch.
    """
    check_folder(path, session)
    wanted = session.read.parquet(path).schema if schema is None else schema
    frame = stream_reader(session, max_files).schema(wanted).parquet(path)
    scan = stream_scan(frame, path, session, max_files)
    return StreamSource(frame, inputs=(StreamInput(frame),), scan=scan)
