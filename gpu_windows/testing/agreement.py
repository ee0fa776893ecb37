"""Runs a query on Arrow, as a Spark batch and as a stream, and compares the results."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from gpu_windows.column_types.logical import logical_table
from gpu_windows.datastream.read import read_output
from gpu_windows.datastream.stream import stream
from gpu_windows.datastream.write import write_stream
from gpu_windows.errors import QueryError
from gpu_windows.testing.rows import assert_rows

if TYPE_CHECKING:
    from gpu_windows.annotations import SparkSession


def assert_runs_agree(
    query: Callable[..., Any],
    spark: SparkSession,
    /,
    *tables: pa.Table,
    micro_batches: int = 3,
    compare_stream: bool = True,
    columns: Sequence[str] | None = None,
    digits: int | None = None,
    **inputs: pa.Table,
) -> pa.Table:
    """Assert that a query has the same results on Arrow, as a Spark batch and as a stream.

    A stream reads the rows in several micro-batches. Windows that its watermark has not reached do
    not fire, and rows may be late: so end the rows with one that is far enough ahead and in no
    result that you compare, such as one of a key that is left out, or compare batches alone.

    Parameters
    ----------
    query : callable
        Is given a stream for each input, and returns outputs (``with_outputs()`` and a verb).
    spark : pyspark.sql.SparkSession
    *tables : pyarrow.Table
        Rows of the one input that ``query`` takes by position.
    micro_batches : int
        Of the stream; each table is cut into as many parts.
    compare_stream : bool
        Whether a stream is run as well.
    columns, digits
        See `assert_rows`.
    **inputs : pyarrow.Table
        Rows of inputs that it takes by name.

    Returns
    -------
    pyarrow.Table
        The results on Arrow, for further checks.

    Raises
    ------
    AssertionError
        If they differ; it says which runs, and in which rows.

    Examples
    --------
    >>> gw.testing.assert_runs_agree(minutes, spark, clicks)  # doctest: +SKIP
    """
    if micro_batches < 1:
        raise QueryError("micro_batches is a whole number from 1 on", value=repr(micro_batches))
    local = _outputs(query, tables, inputs).result()
    frames = [_frame_of(spark, table) for table in tables]
    frames_by_name = {name: _frame_of(spark, table) for name, table in inputs.items()}
    batch = _outputs(query, frames, frames_by_name).result()
    compared: dict[str, Any] = {"columns": columns, "digits": digits}
    _compare("a Spark batch", batch, local, compared)
    if compare_stream:
        with tempfile.TemporaryDirectory() as folder:
            results = _run_stream(query, spark, tables, inputs, micro_batches, Path(folder))
        _compare("a stream", results, local, compared)
    return local


def _outputs(query: Callable[..., Any], tables: Any, inputs: Any) -> Any:
    return query(
        *(stream(table) for table in tables),
        **{name: stream(table, name=name) for name, table in inputs.items()},
    )


def _compare(name: str, found: Any, wanted: pa.Table, options: dict[str, Any]) -> None:
    try:
        assert_rows(found, wanted, **options)
    except AssertionError as error:
        raise AssertionError(f"{name} (+) and Arrow (-) do not agree: {error}") from None


def _run_stream(
    query: Callable[..., Any],
    spark: SparkSession,
    tables: Sequence[pa.Table],
    inputs: dict[str, pa.Table],
    parts: int,
    folder: Path,
) -> pa.Table:
    """Return the results of a stream over files, each a part of a table."""
    every = {**{str(number): table for number, table in enumerate(tables)}, **inputs}
    streams = {
        name: _read_in_parts(spark, table, parts, folder / "inputs" / name)
        for name, table in every.items()
    }
    unnamed = [streams[str(number)] for number in range(len(tables))]
    outputs = _outputs(query, unnamed, {name: streams[name] for name in inputs})
    path, checkpoint = str(folder / "results"), str(folder / "checkpoint")
    write_stream(outputs, path, checkpoint, trigger={"availableNow": True}).awaitTermination()
    return read_output(spark, path).toArrow()


def _frame_of(spark: SparkSession, table: pa.Table) -> Any:
    """Return a table as a DataFrame, in which times without a zone have none either."""
    from gpu_windows.spark_glue.columns.types import to_spark_schema

    rows = logical_table(table)
    return spark.createDataFrame(rows, to_spark_schema(rows.schema))


def _read_in_parts(spark: SparkSession, table: pa.Table, parts: int, folder: Path) -> Any:
    """Write a table as files, in order, and return a stream that reads one after the other."""
    folder.mkdir(parents=True)
    size = max(1, -(-len(table) // parts))
    for number, start in enumerate(range(0, max(1, len(table)), size)):
        file = folder / f"{number:04}.parquet"
        pq.write_table(table.slice(start, size), file)
        os.utime(file, (number, number))  # Spark reads the oldest first
    schema = _frame_of(spark, table.slice(0, 0)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))
