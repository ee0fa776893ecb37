"""Files as streams: the tables of the command ``gpu-windows sql``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import types

from gpu_windows.column_types.logical import logical_table
from gpu_windows.column_types.time_units import to_microseconds
from gpu_windows.datastream.stream import has_no_zone, stream
from gpu_windows.errors import QueryError
from gpu_windows.planning.validation import not_a_timestamp, require_column
from gpu_windows.vocabulary.watermarks import WatermarkStrategy


def open_streams(
    tables: Sequence[str],
    event_times: Sequence[str],
    read: Callable[[Path], Any],
    time_zone: str | None = None,
) -> dict[str, Any]:
    """Open files as streams, by name.

    Parameters
    ----------
    tables : sequence of str
        ``NAME=PATH`` of each table.
    event_times : sequence of str
        ``COLUMN`` for all tables, or ``NAME=COLUMN`` for one.
    read : callable
        Returns the table at a path: see `table_reader`.
    time_zone : str, optional
        Makes instants of event times without a time zone.

    Raises
    ------
    QueryError
        If a file cannot be read, or has no such event time.
    """
    times = _event_times(event_times)
    streams: dict[str, Any] = {}
    for argument in tables:
        name, path = _pair(argument, "give a table as NAME=PATH")
        if name in streams:
            raise QueryError("two tables have the same name", value=name)
        untimed = stream(read(Path(path)))
        column = times.get(name, times.get(None))
        watermarks = WatermarkStrategy.for_monotonous_timestamps()  # used after the last row alone
        if column is None:
            streams[name] = untimed
            continue
        require_column(untimed.source.schema, column)
        dtype = untimed.source.schema.field(column).type
        if types.is_integer(dtype) and _is_csv(Path(path)):  # seconds or microseconds?
            raise not_a_timestamp("event time", dtype, str(dtype), column)
        zone = time_zone if has_no_zone(untimed.source, column) else None
        streams[name] = untimed.event_time(column, watermarks, time_zone=zone)
    unknown = [name for name in times if name is not None and name not in streams]
    if unknown:
        raise QueryError("--event-time names a table that is not given", value=unknown[0])
    return streams


def _event_times(argument: Sequence[str]) -> Mapping[str | None, str]:
    """Return event time columns by table; the key None is for all other tables."""
    times: dict[str | None, str] = {}
    for each in argument:
        name, column = (
            _pair(each, "give an event time as TABLE=COLUMN") if "=" in each else (None, each)
        )
        if name in times:
            raise QueryError("a table can have one event time", value=each)
        times[name] = column
    return times


def _pair(argument: str, rule: str) -> tuple[str, str]:
    name, _, value = argument.partition("=")
    if not name.isidentifier() or not value:
        raise QueryError(f"{rule}, where the name is an identifier", value=argument)
    return name, value


@contextmanager
def table_reader(*, on_spark: bool) -> Iterator[Callable[[Path], Any]]:
    """Yield a function that reads a path as an Arrow table, or as a DataFrame of a session.

    A session that is created here stops at the end.

    Raises
    ------
    QueryError
        For errors of Spark in the body.
    """
    if not on_spark:
        yield lambda path: _dataset(path).to_table()
        return
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    from gpu_windows.spark_glue.session.local_session import reason
    from gpu_windows.spark_glue.session.settings import session

    # logs the errors that are reported below; of Spark's class, or Spark could not log afterwards
    logged = PySparkLogger.getLogger("SQLQueryContextLogger")
    was_off, logged.disabled = logged.disabled, True
    running = SparkSession.getActiveSession()
    spark = session(config={} if running else _QUIET)
    try:
        yield lambda path: _read_frame(spark, path)
    except PySparkException as error:
        raise QueryError(f"Spark cannot run it: {reason(error)}") from error
    finally:
        logged.disabled = was_off
        if running is None:
            spark.stop()


#: Settings of a session that is created here, so that Spark does not print between results.
_QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def _dataset(path: Path) -> Any:
    """Return the files at a path as a dataset, or raise `QueryError`."""
    kind = "csv" if _is_csv(path) else "parquet"
    try:
        return ds.dataset(path, format=kind, partitioning="hive" if path.is_dir() else None)
    except (OSError, pa.ArrowException) as error:
        argument = str(error).partition("\n")[0]
        raise QueryError(f"{path} cannot be read as {kind}: {argument}") from error


def _is_csv(path: Path) -> bool:
    """Whether files are CSV, maybe compressed; the first file decides for a folder."""
    if path.is_dir():
        files = (each for each in sorted(path.rglob("*")) if each.is_file())
        path = next((each for each in files if each.name[0] not in "._"), path)
    return path.name.lower().endswith((".csv", ".csv.gz"))


def _read_frame(spark: Any, path: Path) -> Any:
    """Read files as a DataFrame; Arrow reads CSV, because Spark's nulls in CSV differ.

    Raises
    ------
    PrecisionError
        If a time of CSV is finer than a microsecond.
    """
    from gpu_windows.spark_glue.columns.names import quote_name
    from gpu_windows.spark_glue.columns.types import to_spark_schema

    if not _is_csv(path):
        columns = map(quote_name, _dataset(path).schema.names)
        return spark.read.parquet(str(path)).select(*columns)
    table = logical_table(_dataset(path).to_table())
    for at, field in enumerate(table.schema):
        times = to_microseconds(table.column(at), field.name, "a time of CSV on Spark")
        column = times.cast(pa.string()) if types.is_null(times.type) else times
        table = table.set_column(at, field.name, column)
    return spark.createDataFrame(table, schema=to_spark_schema(table.schema))
