"""Results of the local runner, written to a path as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyarrow import types

from gpu_windows.commits.bounded_write import BoundedWrite
from gpu_windows.commits.parquet_files import ParquetEncoding, write_parquet_file
from gpu_windows.commits.spark_schema import spark_schema
from gpu_windows.commits.write_target import WriteTarget, WrittenParquet, codec_of
from gpu_windows.operators.counters import Counters

#: What Spark compresses by where nobody says otherwise.
_COMPRESSION = "snappy"


def write_here(
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
    files, text = target.open(), spark_schema(schema)
    plain = _without_dictionaries(schema)
    write = BoundedWrite.begin(files, text, target.mode)
    counters = Counters()

    def tables() -> Iterator[pa.Table]:
        nonlocal counters
        for table, counted in parts:
            counters += counted
            yield table.cast(plain)

    encoding = ParquetEncoding(codec_of(target.compression or _COMPRESSION))
    with write.abandoned_on_error():
        written = write_parquet_file(write.part, 0, tables(), plain, encoding)
        found = [] if written is None else [written]
        paths = write.commit(found)
    return WrittenParquet.of(files.root, paths, found, "process", counters)


def _without_dictionaries(schema: pa.Schema) -> pa.Schema:
    """Return a schema without dictionaries, which differ from one part to the next."""
    return pa.schema(
        f.with_type(f.type.value_type) if types.is_dictionary(f.type) else f for f in schema
    )
