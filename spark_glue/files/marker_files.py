"""Small texts in folders of their own, written once, on whatever file system Spark has.

PySpark is imported by those who read and write: a shard that is run without Spark has no texts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession


def literal(path: str) -> str:
    """Return a path as Spark reads it where none of its characters is a pattern's."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def read_texts(session: SparkSession, pattern: str, *, many: bool = False) -> list[str]:
    """Return the texts at and below the folders that a pattern names; none where there are none.

    A folder without a text is one of a writer that died: nothing counts that it did after.

    Parameters
    ----------
    session : SparkSession
    pattern : str
        Path of files, as Hadoop's globs have it.
    many : bool
        There may be many texts. Few are read twice: of a folder that is named alone, and missing,
        Spark logs a warning with a stack.
    """
    from pyspark.errors import AnalysisException

    try:
        rows = _reader(session, *(1 if many else 2) * [pattern]).collect()
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return []
    return list(dict.fromkeys(text for row in rows if (text := row[0].strip())))


def files_of(session: SparkSession, folder: str) -> list[str]:
    """Return the URIs of the files in a folder and below it, without a job."""
    return _reader(session, folder).inputFiles()


def put_text(session: SparkSession, folder: str, text: str) -> bool:
    """Write a text where none is; return whether it is there now.

    What a writer left that died before its text was whole is replaced.
    """
    from pyspark.errors import AnalysisException

    rows = _writer(session, text)
    try:
        rows.mode("error").text(folder)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        if read_texts(session, literal(folder)):
            return False
        rows.mode("overwrite").text(folder)
    return True


def _writer(session: SparkSession, text: str) -> DataFrameWriter:
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    rows = session.range(0, 1, 1, 1).select(F.lit(text).alias("value")).write
    return rows.option("compression", "none")  # who follows reads it without Hadoop


def _reader(session: SparkSession, *patterns: str) -> DataFrame:
    files = session.read.option("recursiveFileLookup", "true")
    return files.text(list(patterns), wholetext=True)
