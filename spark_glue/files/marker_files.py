"""Marker files: small texts in a folder each, written once, on any file system of Spark's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, Row, SparkSession


def literal(path: str) -> str:
    """Return a path with the special characters of glob patterns escaped."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def read_markers(session: SparkSession, pattern: str, *, many: bool = False) -> list[str]:
    """Return the markers in and below the folders that match a pattern.

    A folder without one is left of a writer that crashed, and does not count.

    Parameters
    ----------
    session : SparkSession
    pattern : str
        Path of files, as Hadoop's globs have it.
    many : bool
        Whether many are expected. If not, the pattern is given to Spark twice: for a single
        missing folder it would log a warning with a stack.
    """
    rows: list[Row] = []
    with _ignore_missing_paths():
        rows = _reader(session, *(1 if many else 2) * [pattern]).collect()
    return list(dict.fromkeys(text for row in rows if (text := row[0].strip())))


def files_of(session: SparkSession, folder: str) -> list[str]:
    """Return the URIs of the files in a folder and below it, without a job."""
    return _reader(session, folder).inputFiles()


def files_matching(session: SparkSession, pattern: str) -> list[str]:
    """Return the URIs of files that match a glob of Hadoop's, but hidden ones, without a job."""
    with _ignore_missing_paths():
        return _reader(session, pattern, pattern).inputFiles()  # twice: see `read_markers`
    return []


def write_marker(session: SparkSession, folder: str, text: str) -> bool:
    """Write a marker unless there is one; return whether this call wrote it.

    An incomplete one of a writer that crashed is replaced.
    """
    rows = _writer(session, text)
    try:
        rows.mode("error").text(folder)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        if read_markers(session, literal(folder)):
            return False
        rows.mode("overwrite").text(folder)
    return True


@contextmanager
def _ignore_missing_paths() -> Iterator[None]:
    """Leave a block in which Spark finds no file of a pattern."""
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise


def _writer(session: SparkSession, text: str) -> DataFrameWriter:
    rows = session.range(0, 1, 1, 1).select(F.lit(text).alias("value")).write
    return rows.option("compression", "none")  # readers without Hadoop read it, too


def _reader(session: SparkSession, *patterns: str) -> DataFrame:
    files = session.read.option("recursiveFileLookup", "true")
    return files.text(list(patterns), wholetext=True)
