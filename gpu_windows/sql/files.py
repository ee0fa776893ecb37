"""The tables of the command ``gpu-windows sql``: files as streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import types

from gpu_windows.column_types.logical import logical_table
from gpu_windows.datastream.event_times import has_no_zone
from gpu_windows.datastream.stream import stream
from gpu_windows.errors import QueryError
from gpu_windows.expressions.nanoseconds import in_microseconds
from gpu_windows.planning.validation import not_a_timestamp, require_column
from gpu_windows.vocabulary.watermarks import WatermarkStrategy


def streams_of(
    tables: Sequence[str],
    event_times: Sequence[str],
    read: Callable[[Path], Any],
    time_zone: str | None = None,
) -> dict[str, Any]:
    """Return streams by name.

    Parameters
    ----------
    tables : sequence of str
        ``NAME=PATH`` of each.
    event_times : sequence of str
        ``COLUMN`` for all tables, or ``NAME=COLUMN`` for one.
    read : callable
        Returns the table at a path: see `reader`.
    time_zone : str, optional
        Of event times without one.

    Raises
    ------
    QueryError
        If one cannot be read, or has no such time.
    """
    times = _event_times(event_times)
    streams: dict[str, Any] = {}
    for said in tables:
        name, path = _pair(said, "a table is NAME=PATH")
        if name in streams:
            raise QueryError("a table is named once", value=name)
        begun = stream(read(Path(path)))
        column = times.get(name, times.get(None))
        waits = WatermarkStrategy.for_monotonous_timestamps()  # files are waited for to their end
        if column is None:
            streams[name] = begun
            continue
        require_column(begun.source.schema, column)
        dtype = begun.source.schema.field(column).type
        if types.is_integer(dtype) and _is_csv(Path(path)):  # seconds, as likely as microseconds
            raise not_a_timestamp("event time", dtype, str(dtype), column)
        zone = time_zone if has_no_zone(begun.source, column) else None
        streams[name] = begun.event_time(column, waits, time_zone=zone)
    unknown = [name for name in times if name is not None and name not in streams]
    if unknown:
        raise QueryError("--event-time names one of the tables", value=unknown[0])
    return streams


def _event_times(said: Sequence[str]) -> Mapping[str | None, str]:
    """Return columns by table; that of None is for all others."""
    times: dict[str | None, str] = {}
    for each in said:
        name, column = _pair(each, "a time is TABLE=COLUMN") if "=" in each else (None, each)
        if name in times:
            raise QueryError("a table has one event time", value=each)
        times[name] = column
    return times


def _pair(said: str, rule: str) -> tuple[str, str]:
    name, _, value = said.partition("=")
    if not name.isidentifier() or not value:
        raise QueryError(f"{rule}, and NAME is one word", value=said)
    return name, value


@contextmanager
def reader(*, on_spark: bool) -> Iterator[Callable[[Path], Any]]:
    """Give what reads a path: as an Arrow table, or as a DataFrame of a session for a while.

    Raises
    ------
    QueryError
        For errors of Spark's while it lasts.
    """
    if not on_spark:
        yield lambda path: _dataset(path).to_table()
        return
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    from gpu_windows.spark_glue.session.local_session import reason
    from gpu_windows.spark_glue.session.settings import session

    # tells of errors what is told below; of Spark's class, or Spark could not log afterwards
    logged = PySparkLogger.getLogger("SQLQueryContextLogger")
    was_off, logged.disabled = logged.disabled, True
    running = SparkSession.getActiveSession()
    spark = session(config={} if running else _QUIET)
    try:
        yield lambda path: _frame(spark, path)
    except PySparkException as error:
        raise QueryError(f"Spark cannot run it: {reason(error)}") from error
    finally:
        logged.disabled = was_off
        if running is None:
            spark.stop()


#: Of a session of our own: its JVM does not talk over the results.
_QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def _dataset(path: Path) -> Any:
    """Return the files at a path; what cannot be read is refused here."""
    kind = "csv" if _is_csv(path) else "parquet"
    try:
        return ds.dataset(path, format=kind, partitioning="hive" if path.is_dir() else None)
    except (OSError, pa.ArrowException) as error:
        said = str(error).partition("\n")[0]
        raise QueryError(f"{path} cannot be read as {kind}: {said}") from error


def _is_csv(path: Path) -> bool:
    """Whether files are CSV, which may be compressed; a folder is what its first file is."""
    if path.is_dir():
        files = (each for each in sorted(path.rglob("*")) if each.is_file())
        path = next((each for each in files if each.name[0] not in "._"), path)
    return path.name.lower().endswith((".csv", ".csv.gz"))


def _frame(spark: Any, path: Path) -> Any:
    """Return the same rows as a DataFrame; CSV is read by Arrow, for Spark has other nulls there.

    Raises
    ------
    PrecisionError
        If a time of CSV is finer than a microsecond.
    """
    from pyspark.sql.types import StructType

    from gpu_windows.spark_glue.columns.names import quoted
    from gpu_windows.spark_glue.columns.types import to_spark_schema

    if not _is_csv(path):
        columns = map(quoted, _dataset(path).schema.names)
        return spark.read.parquet(str(path)).select(*columns)
    table = logical_table(_dataset(path).to_table())
    for at, field in enumerate(table.schema):
        times = in_microseconds(table.column(at), field.name, "a time of CSV on Spark")
        column = times.cast(pa.string()) if types.is_null(times.type) else times
        table = table.set_column(at, field.name, column)
    return spark.createDataFrame(table, schema=to_spark_schema(table.schema, StructType()))
