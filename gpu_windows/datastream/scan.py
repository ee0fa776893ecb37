"""Files as the input of a query: `scan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import TYPE_CHECKING

import pyarrow as pa

from gpu_windows.errors import QueryError
from gpu_windows.runners.outputs import Source

if TYPE_CHECKING:
    from gpu_windows.annotations import SparkSession, StructType

Path = str | PathLike[str]


@dataclass(frozen=True)
class Scan:
    """Files that `gpu_windows.stream` takes the rows of: see `scan`.

    Parameters
    ----------
    paths : tuple of str
        Files and folders.
    source : Source
        Their rows.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow.parquet as pq
    >>> path = tempfile.mkdtemp() + "/clicks.parquet"
    >>> pq.write_table(pa.table({"user": ["ann", "ann"]}), path)
    >>> users = gw.stream(gw.scan(path)).key_by("user")
    >>> users.count_window(2).aggregate(n=gw.count())["n"].to_pylist()
    [2]
    """

    paths: tuple[str, ...]
    source: Source = field(repr=False)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns."""
        return self.source.schema


def scan(path: Path | Sequence[Path], session: SparkSession | None = None) -> Scan:
    """Return Parquet files as the input of a query, whose tasks read them by themselves.

    So rows do not cross from Java to Python, which takes longer than to aggregate them. It stands
    where a DataFrame stands; the answer is that of ``spark.read.parquet(path)``. Where a query
    needs what a task cannot do, such as an expression that only Spark computes, or rows in an
    order, Spark reads the files: `explain` says which, and why.

    Files are those that are there now: one that changes or goes before it is read is an error.

    Parameters
    ----------
    path : str, os.PathLike or sequence of them
        Files and folders, with or without Hive's partitions (``day=2024-01-01/``).
    session : pyspark.sql.SparkSession, optional
        Lists the files, and runs the query. Default: the local runner reads them in pieces.

    Returns
    -------
    Scan

    Raises
    ------
    QueryError
        If the path is none.
    ScanError
        Without a session: if there is no file, or it is no Parquet file.
    pyspark.errors.AnalysisException
        With a session: what ``spark.read.parquet`` raises.

    Examples
    --------
    >>> import tempfile
    >>> import gpu_windows as gw
    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> path = tempfile.mkdtemp() + "/clicks.parquet"
    >>> pq.write_table(pa.table({"user": ["ann"], "n": [1]}), path)
    >>> gw.scan(path).schema.names
    ['user', 'n']
    """
    paths = _paths(path)
    if session is None:
        from gpu_windows.runners.scan_source import ScanSource
        from gpu_windows.runners.scanned_rows import ScannedPart, ScannedRows
        from gpu_windows.scans.listing import scan_folders

        rows = ScannedRows((ScannedPart(scan_folders(paths)),))
        return Scan(paths, ScanSource(rows))
    from gpu_windows.spark_glue.scans.batch_scan import scan_by_spark

    return Scan(paths, scan_by_spark(paths, session))


def scan_stream(
    path: Path,
    session: SparkSession,
    *,
    schema: StructType | str | None = None,
    max_files_per_trigger: int | None = None,
) -> Scan:
    """Return Parquet files that come to a folder as the input of a streaming query.

    Spark notes which files a micro-batch takes, as for ``spark.readStream.parquet``, and tasks read
    them by themselves; see `scan`. A query goes on with either on one checkpoint. Spark's progress
    counts files, `gpu_windows.watch` rows.

    Parameters
    ----------
    path : str or os.PathLike
        A folder, to which files are moved when they are complete.
    session : pyspark.sql.SparkSession
    schema : StructType or str, optional
        Of the files, such as ``"ts TIMESTAMP, value DOUBLE"``. Default: of those that are there.
    max_files_per_trigger : int, optional
        Files of a micro-batch at most. Default: all that have come.

    Returns
    -------
    Scan

    Raises
    ------
    QueryError
        If the path is none, or the number of files is not positive.
    pyspark.errors.AnalysisException
        What ``spark.readStream.parquet`` raises.

    Examples
    --------
    >>> schema = "ts TIMESTAMP, user STRING"  # doctest: +SKIP
    >>> files = gw.scan_stream("/landing/clicks", spark, schema=schema)  # doctest: +SKIP
    >>> users = gw.stream(files).key_by("user")  # doctest: +SKIP
    """
    (folder,) = _paths(fspath(path))
    limit: object = max_files_per_trigger
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        rule = "max_files_per_trigger is a number of files, at least 1"
        raise QueryError(rule, value=repr(limit))
    from gpu_windows.spark_glue.streams.outputs import scan_stream_by_spark

    source = scan_stream_by_spark(folder, session, schema, max_files_per_trigger)
    return Scan((folder,), source)


def _paths(path: Path | Sequence[Path]) -> tuple[str, ...]:
    every = [path] if isinstance(path, str | PathLike) else path
    given: object = every
    if not isinstance(given, list | tuple) or not given:
        raise QueryError("scan takes a path, or several", value=repr(path))
    if not all(isinstance(each, str | PathLike) and fspath(each) for each in given):
        raise QueryError("a path is a text that is not empty", value=repr(path))
    return tuple(fspath(each) for each in every)
