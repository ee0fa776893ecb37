"""Results of the local runner, written to a path as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from gpu_windows.column_types.logical import logical_schema, logical_table
from gpu_windows.commits.bounded_write import BoundedWrite
from gpu_windows.commits.parquet_files import ParquetEncoding, write_parquet_file
from gpu_windows.commits.spark_schema import spark_schema
from gpu_windows.commits.write_target import WriteTarget, WrittenParquet, codec_of
from gpu_windows.operators.counters import Counters

#: What Spark compresses by where nobody says otherwise.
_COMPRESSION = "snappy"


def write_local(
    target: WriteTarget, schema: pa.Schema, parts: Iterable[tuple[pa.Table, Counters]]
) -> WrittenParquet:
    """Write results to a path.

    Parameters
    ----------
    target : WriteTarget
    schema : pyarrow.Schema
        Of the results.
    parts : iterable of (pyarrow.Table, Counters)
        The results as they are made, and what has been counted since the part before.

    Raises
    ------
    ColumnTypeError
        If Spark would not read a column as it was written.
    OutputError
        If the path does not take it.
    """
    plain = logical_schema(schema)
    files, text = target.open(), spark_schema(plain)
    write = BoundedWrite.begin(files, text, target.mode)
    counters = Counters()

    def tables() -> Iterator[pa.Table]:
        nonlocal counters
        for table, counted in parts:
            counters += counted
            yield logical_table(table)

    encoding = ParquetEncoding(codec_of(target.compression or _COMPRESSION))
    with write.delete_on_error():
        written = write_parquet_file(write.part, 0, tables(), plain, encoding)
        found = [] if written is None else [written]
        paths = write.commit(found)
    return WrittenParquet.of(files.root, paths, found, "process", counters)
