"""The files of complete micro-batches, as Spark finds them, and how many rows each has."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.commits.completeness import FileRows, Missing, select_files
from gpu_windows.commits.records import Commit
from gpu_windows.spark_glue.columns.expressions import is_of_spark, summary
from gpu_windows.spark_glue.files.marker_files import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

logger = logging.getLogger(__name__)
#: Options of Spark's sources of files, for a count that has failed: what is gone counts as no row.
_LENIENT = {"ignoreMissingFiles": "true", "ignoreCorruptFiles": "true"}
#: Files that we write, among those that others may have left there.
_OURS = {"pathGlobFilter": "*.parquet"}


def complete_files(
    session: SparkSession, path: str, output: str, commits: Iterable[Commit], missing: Missing
) -> list[str]:
    """Return the paths, as Spark's patterns, of what has the rows of an output.

    These are folders, and the files that can be read of those in which others cannot. One job of
    Spark's reads the footers of all files: as much as a count of the rows.

    Raises
    ------
    OutputError
        If a micro-batch has not the rows that it has written.
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


def read_files(session: SparkSession, schema: StructType, files: Sequence[str]) -> DataFrame:
    """Return the rows of what `complete_files` has found."""
    if not files:
        return session.createDataFrame([], schema)
    return session.read.options(**_OURS).schema(schema).parquet(*files)


def _count_rows(
    session: SparkSession, path: str, output: str, folders: Sequence[str]
) -> Mapping[str, FileRows]:
    """Return for each folder, below the path, its files; those without a footer have None."""
    found: dict[str, dict[str, int | None]] = {folder: {} for folder in folders}
    by_name = {folder.rpartition("/")[2]: folder for folder in folders}
    for file, rows in _count_rows_of_files(session, literal(f"{path}/{output}")).items():
        folder, name = _split(file)
        if folder in by_name:  # others are of attempts that failed
            found[by_name[folder]][name] = rows
    return found


def _count_rows_of_files(session: SparkSession, folder: str) -> dict[str, int | None]:
    """Return the rows of each Parquet file below a folder; of those that cannot be read, None.

    The folder is listed once, whole: to name thousands of folders to Spark takes as long as to
    count.
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
    """Return rows of which no column is read, so that Spark reads the footers of files alone."""
    from pyspark.sql.types import StructType

    ours = reader.options(**_OURS, recursiveFileLookup="true")
    return ours.schema(StructType()).parquet(folder)


def _split(file: str) -> tuple[str, str]:
    """Return the name of a file's folder, and of the file."""
    folder, name = file.split("/")[-2:]
    return folder, name
