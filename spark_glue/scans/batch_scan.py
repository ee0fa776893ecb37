"""Scans with a session: Spark lists files and reads schemas, or rows where tasks cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import GpuWindowsError, ScanError
from gpu_windows.runners.scanned_rows import ScannedPart, ScannedRows
from gpu_windows.scans.files import list_files, path_of, root_of, store_options
from gpu_windows.scans.partitions import find_values, partition_names
from gpu_windows.scans.scan import FileScan
from gpu_windows.spark_glue.scans.task_scan import TaskScan
from gpu_windows.spark_glue.settings import hadoop_setting
from gpu_windows.spark_glue.source import SparkSource
from gpu_windows.spark_glue.stream_inputs import StreamInput
from gpu_windows.spark_glue.types import to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Settings with which Spark reads files otherwise than Arrow does: their values here.
_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
}
_GLOB = frozenset("*?[{")


def scan_by_spark(paths: Sequence[str], session: SparkSession) -> SparkSource:
    """Return files as a source: a DataFrame, and how tasks read the same rows."""
    frame = session.read.parquet(*paths)
    try:
        rows = ScannedRows((ScannedPart(_list(frame, paths)),))
        scan = TaskScan(rows)
    except GpuWindowsError as error:
        scan = TaskScan(None, str(error))
    return SparkSource(frame, inputs=(StreamInput(frame),), scan=scan)


def _list(frame: DataFrame, paths: Sequence[str]) -> FileScan:
    """Return the files that Spark has listed.

    Raises
    ------
    ScanError
        If tasks would not read what Spark reads.
    """
    conf = frame.sparkSession.conf
    check_settings(frame.sparkSession)
    found = [path_of(uri) for uri in frame.inputFiles()]
    schema = to_arrow_schema(frame.schema)
    if not found:
        return FileScan(schema)
    roots = [root_of(path) for path in paths]
    names = partition_names(found, roots, schema.names)
    check_partitions(names, schema, roots, found)
    options = store_options(found[0], hadoop_setting(conf))
    files = list_files(found, find_values(names, roots), options)
    scan = FileScan(schema, names, files, options)
    scan.check()
    return scan


def check_settings(session: SparkSession) -> None:
    """Raise `ScanError` where Spark reads files otherwise than Arrow does."""
    for name, plain in _SETTINGS.items():
        value = session.conf.get(name)
        if value != plain:
            rule = f"Spark reads files otherwise than Arrow does unless {name} is {plain}"
            raise ScanError(rule, value=value)


def check_partitions(
    names: Sequence[str], schema: pa.Schema, roots: Sequence[str], found: Sequence[str]
) -> None:
    """Raise `ScanError` for partitions that the paths below what is scanned do not tell."""
    has_glob = any(_GLOB.intersection(root) for root in roots)
    outside = [path for path in found if not path.startswith(tuple(roots))]
    if (has_glob or outside) and any("=" in path for path in found):
        rule = "partitions below a path with * are found by Spark"
        raise ScanError(rule, value=", ".join(roots))
    for name in names:
        if types.is_timestamp(schema.field(name).type):
            raise ScanError("times in paths are read by Spark", value=name, column=name)
