"""Read what queries wrote to a path: complete micro-batches, each once, or one complete write."""

from __future__ import annotations

from os import PathLike, fspath
from typing import TYPE_CHECKING

from gpu_windows.commits.completeness import Missing, check_missing
from gpu_windows.commits.records import RESULT
from gpu_windows.errors import QueryError
from gpu_windows.vocabulary.options import is_whole

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame, SparkSession


def read_output(
    spark: SparkSession,
    path: str | PathLike[str],
    output: str = RESULT,
    *,
    micro_batch: str | None = None,
    missing: Missing = "raise",
) -> DataFrame:
    """Read what `gpu_windows.write_stream` wrote to a path, while it writes or afterwards.

    Also the last complete write of `gpu_windows.typing.Outputs.write_parquet`.

    The DataFrame holds the micro-batches that are complete now, and stays the same however long
    the query goes on. A job of Spark's reads the footers of all files before, to see whether they
    have the rows that were written.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session that can read the path.
    path : str or os.PathLike
        As the sink was given it.
    output : str
        ``"result"``; ``"late"``: late and rejected rows, with their ``rejection_reason``;
        ``"sides/TAG"``: a side output.
    micro_batch : str, optional
        Name of a further column, the last one: the number of the micro-batch that wrote the row.
    missing : {"raise", "skip"}
        What becomes of rows whose files are gone, or cannot be read: an error, or they are left
        out, and what is left is read.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns of the output, with the types that it had.

    Raises
    ------
    OutputError
        If there are no results of `write_stream` or `write_parquet`, or no such output, or a
        micro-batch has not the rows that it has written.
    NameClashError
        If the output has a column of the name ``micro_batch``.
    QueryError
        If ``spark`` is no session, or ``path`` no path, or ``missing`` something else.

    Examples
    --------
    >>> minutes = gw.read_output(spark, "/data/minutes")  # doctest: +SKIP
    >>> late = gw.read_output(spark, "/data/minutes", "late")  # doctest: +SKIP
    """
    _check_session("read_output", spark)
    check_missing(missing)
    from gpu_windows.spark_glue.files import committed

    return committed.read_output(spark, _path(path), output, micro_batch, missing)


def read_output_stream(
    spark: SparkSession,
    path: str | PathLike[str],
    output: str = RESULT,
    *,
    micro_batch: str | None = None,
    max_micro_batches: int | None = None,
    missing: Missing = "raise",
) -> DataFrame:
    """Read what `gpu_windows.write_stream` writes to a path as a stream of its own.

    Every row comes once, whatever dies and is started again on either side: so windows of windows
    are two queries. Rows carry no watermark: give them one by the last moment of their window, the
    expression ``window_end - INTERVAL 1 MICROSECOND``, as event time. The files are found by the
    driver's Python and read by the workers', through Arrow's file systems: local, S3, HDFS, GCS,
    Azure.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session that can read the path.
    path : str or os.PathLike
        As the sink was given it; the query there must have been started once.
    output, micro_batch :
        See `read_output`.
    max_micro_batches : int, optional
        Micro-batches that are taken in one of this stream; all that are there if not given. It
        needs Spark 4.2; older versions take all.
    missing : {"raise", "skip"}
        See `read_output`; the error ends the query. Started again with ``"skip"``, it goes on.

    Returns
    -------
    pyspark.sql.DataFrame
        A streaming one.

    Raises
    ------
    OutputError
        If there are no results of `write_stream`, or no such output, or they are those of
        `write_parquet`, which do not grow.
    NameClashError
        If the output has a column of the name ``micro_batch``.
    QueryError
        If ``max_micro_batches`` is less than 1, or ``missing`` something else.

    Examples
    --------
    >>> minutes = gw.read_output_stream(spark, "/data/minutes")  # doctest: +SKIP
    >>> hours = gw.stream(minutes).window_time().key_by("user")  # doctest: +SKIP
    """
    _check_session("read_output_stream", spark)
    check_missing(missing)
    from gpu_windows.spark_glue.files import committed

    limit = max_micro_batches
    if limit is not None and not (is_whole(limit) and limit > 0):
        raise QueryError("max_micro_batches must be a whole number above 0", value=repr(limit))
    return committed.stream_output(spark, _path(path), output, micro_batch, limit, missing)


def _check_session(function: str, session: object) -> None:
    if not hasattr(session, "createDataFrame"):
        rule = f"{function} takes a session, then a path: gw.{function}(spark, path)"
        raise QueryError(rule, value=repr(session))


def _path(path: str | PathLike[str]) -> str:
    if not isinstance(path, str | PathLike):
        raise QueryError("a path is text, or os.PathLike", value=repr(path))
    text = fspath(path)
    return text.rstrip("/") or text
