"""Scans with a session: Spark lists files and reads schemas; rows only where tasks cannot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import GpuWindowsError, ScanError
from gpu_windows.runners.scanned_rows import ScannedPart, ScannedRows
from gpu_windows.scans.files import list_files, path_of, root_of, store_options
from gpu_windows.scans.partitions import find_values, partition_names
from gpu_windows.scans.scan import FileScan
from gpu_windows.scans.table_formats import check_no_table, find_format
from gpu_windows.spark_glue.batch.outputs import BatchSource
from gpu_windows.spark_glue.columns.types import to_arrow_schema
from gpu_windows.spark_glue.dataframes.stream_inputs import StreamInput
from gpu_windows.spark_glue.dataframes.task_scan import TaskScan
from gpu_windows.spark_glue.session.settings import Conf, hadoop_setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Settings with which Spark reads files differently from tasks, if they have this value.
_OTHERWISE = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "legacy",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "legacy",
    "spark.sql.parquet.int96TimestampConversion": "true",
}
#: Metadata of columns in Spark's tables whose values are not only in files.
_NOTES = ("__CHAR_VARCHAR", "EXISTS_DEFAULT")
_GLOB = frozenset("*?[{")


def scan_by_spark(paths: Sequence[str], session: SparkSession) -> BatchSource:
    """Return files as a source: a DataFrame, and how tasks read the same rows."""
    for path in paths:
        check_folder(path, session)
    frame = session.read.parquet(*paths)
    try:
        rows = ScannedRows((ScannedPart(_list(frame, paths)),))
        scan = TaskScan(rows)
    except GpuWindowsError as error:
        scan = TaskScan(None, str(error))
    return BatchSource(frame, inputs=(StreamInput(frame),), scan=scan)


def check_folder(path: str, session: SparkSession) -> None:
    """Raise `ScanError` for the folder of a table, if this process can list it.

    If it cannot, Spark reads the files, and `explain` says why.
    """
    try:
        root = root_of(path)
        options = store_options(root, hadoop_setting(session.conf))
        is_table = not _GLOB.intersection(root) and find_format(root, options) is not None
    except GpuWindowsError:
        return
    if is_table:
        check_no_table(root, options)


def _list(frame: DataFrame, paths: Sequence[str]) -> FileScan:
    """Return the files that Spark has listed.

    Raises
    ------
    ScanError
        If tasks would not read what Spark reads.
    """
    conf = frame.sparkSession.conf
    check_settings(conf)
    check_columns(frame)
    _check_distinct(paths)
    found = [path_of(uri) for uri in frame.inputFiles()]
    roots = [root_of(path) for path in paths]
    return scan_files(to_arrow_schema(frame.schema), found, roots, conf)


def scan_files(
    schema: pa.Schema, found: Sequence[str], roots: Sequence[str], conf: Conf
) -> FileScan:
    """Return a scan of the files that were found below scanned folders.

    Raises
    ------
    ScanError
        If a file is missing, or does not have the schema; for partitions that only Spark reads.
    """
    if not found:
        return FileScan(schema)
    names = partition_names(found, roots, schema.names)
    _check_partitions(names, schema, roots, found)
    options = store_options(found[0], hadoop_setting(conf))
    files = list_files(found, find_values(names, roots), options)
    scan = FileScan(schema, names, files, options)
    scan.check()
    return scan


def check_settings(conf: Conf) -> None:
    """Raise `ScanError` if settings make Spark read files differently from tasks."""
    for name, value in _OTHERWISE.items():
        if str(conf.get(name, None)).lower() == value:
            raise ScanError("files are read as Spark does by default", value=f"{name}={value}")


def check_columns(frame: DataFrame) -> None:
    """Raise `ScanError` for columns of tables whose values are not only in files."""
    for field in frame.schema.fields:
        if any(key.startswith(_NOTES) for key in field.metadata):
            rule = "columns of CHAR, VARCHAR and with defaults are read by Spark"
            raise ScanError(rule, value=field.dataType.simpleString(), column=field.name)


def _check_distinct(paths: Sequence[str]) -> None:
    """Raise `ScanError` if a file may be in two paths: Spark reads it twice and lists it once."""
    roots = sorted(f"{root_of(path).rstrip('/')}/" for path in paths)
    is_twice = any(other.startswith(one) for one, other in pairwise(roots))
    if is_twice or any("{" in root for root in roots):
        rule = "paths that are within each other, or may be, are read by Spark"
        raise ScanError(rule, value=", ".join(paths))
    if len(roots) > 1 and any(_GLOB.intersection(root) for root in roots):
        raise ScanError("several paths with * are read by Spark", value=", ".join(paths))


def _check_partitions(
    names: Sequence[str], schema: pa.Schema, roots: Sequence[str], found: Sequence[str]
) -> None:
    """Raise `ScanError` for partitions that cannot be read from paths below the scanned ones."""
    has_glob = any(_GLOB.intersection(root) for root in roots)
    outside = [path for path in found if not path.startswith(tuple(roots))]
    if (has_glob or outside) and any("=" in path for path in found):
        rule = "partitions below a path with * are found by Spark"
        raise ScanError(rule, value=", ".join(roots))
    for name in names:
        if types.is_timestamp(schema.field(name).type):
            raise ScanError("times in paths are read by Spark", value=name, column=name)
