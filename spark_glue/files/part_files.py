"""Finds the files of complete micro-batches by Spark, with their numbers of rows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import StructType

from gpu_windows.commits.completeness import FileRows, Missing, select_files
from gpu_windows.commits.records import Commit
from gpu_windows.spark_glue.columns.expressions import is_of_spark, summary
from gpu_windows.spark_glue.files.marker_files import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

logger = logging.getLogger(__name__)
#: Options of Spark's file sources for a second count: missing and corrupt files count as no rows.
_LENIENT = {"ignoreMissingFiles": "true", "ignoreCorruptFiles": "true"}
#: Setting of Hadoop: whether a complete folder gets a marker.
_MARK = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
#: Option that selects Parquet files among files of others.
_PARQUET_ONLY = {"pathGlobFilter": "*.parquet"}


def complete_files(
    session: SparkSession, path: str, output: str, commits: Iterable[Commit], missing: Missing
) -> list[str]:
    """Return the paths, as glob patterns, that hold the rows of an output.

    A path is a folder, or a readable file of a folder in which others are not readable. One Spark
    job reads the footers of all files, as a count of rows does.

    Raises
    ------
    OutputError
        If a micro-batch lacks rows that it has written.
    """
    having = [commit for commit in commits if output in commit.outputs]
    if not having:
        return []
    found = _count_rows(session, path, output, [each.outputs[output].folder for each in having])
    paths = []
    for commit in having:
        folder = commit.outputs[output].folder
        there = commit.outputs[output].choose_files(found[folder])
        names = select_files(path, commit, output, there, missing)
        pattern = literal(f"{path}/{folder}")
        is_whole = names and len(names) == len(found[folder])
        paths += [pattern] if is_whole else [f"{pattern}/{name}" for name in names]
    return paths


def write_folder(rows: DataFrame, url: str, compression: str | None = None) -> None:
    """Let Spark write rows into a new folder, without the marker that commits replace."""
    rows.write.mode("error").option(_MARK, "false").parquet(url, compression=compression)


def read_files(session: SparkSession, schema: StructType, files: Sequence[str]) -> DataFrame:
    """Return the rows of the paths of `complete_files`."""
    if not files:
        return session.createDataFrame([], schema)
    return session.read.options(**_PARQUET_ONLY).schema(schema).parquet(*files)


def _count_rows(
    session: SparkSession, path: str, output: str, folders: Sequence[str]
) -> Mapping[str, FileRows]:
    """Return the files of each folder to their rows; None for a file without a footer."""
    found: dict[str, dict[str, int | None]] = {folder: {} for folder in folders}
    by_name = {folder.rpartition("/")[2]: folder for folder in folders}
    for file, rows in _count_rows_of_files(session, literal(f"{path}/{output}")).items():
        folder, name = _split(file)
        if folder in by_name:  # others are of attempts that failed
            found[by_name[folder]][name] = rows
    return found


def _count_rows_of_files(session: SparkSession, folder: str) -> dict[str, int | None]:
    """Return the number of rows of each Parquet file below a folder; None for unreadable files.

    The folder is listed once, as a whole, because naming thousands of folders takes Spark as long
    as counting.
    """
    try:
        return _count(session.read, folder)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return {}
    except Exception as error:
        if not is_of_spark(error):
            raise
        logger.warning("files cannot be read, the others are counted: %s", summary(error))
        return _count(session.read.options(**_LENIENT), folder)


def _count(reader: DataFrameReader, folder: str) -> dict[str, int | None]:
    rows = _without_columns(reader, folder)
    found: dict[str, int | None] = {unquote(file): None for file in rows.inputFiles()}
    for row in rows.groupBy(F.input_file_name().alias("file")).count().collect():
        found[unquote(row["file"])] = row["count"]
    return found


def _without_columns(reader: DataFrameReader, folder: str) -> DataFrame:
    """Return rows without columns, for which Spark reads the footers of files alone."""
    files = reader.options(**_PARQUET_ONLY, recursiveFileLookup="true")
    return files.schema(StructType()).parquet(folder)


def _split(file: str) -> tuple[str, str]:
    """Return the name of a file's folder, and of the file."""
    folder, name = file.split("/")[-2:]
    return folder, name
