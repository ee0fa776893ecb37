"""Parquet that Spark reads: its columns are checked, and of results of queries all are complete."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import StructType

from gpu_windows.commits.records import COMMITS, RESULT, Commit, Owner
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.types import to_arrow_schema
from gpu_windows.spark_glue.files.committed import read_output, stream_output
from gpu_windows.spark_glue.files.marker_files import literal, read_markers
from gpu_windows.spark_glue.files.ownership import owners
from gpu_windows.spark_glue.files.part_files import complete_files
from gpu_windows.sql.scripts.tables import TWO_TIMESTAMPS, is_same_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from gpu_windows.sql.scripts.table_options import SparkOptions, TableOptions

_WIDENED = {
    pa.int8(): (pa.int16(), pa.int32(), pa.int64(), pa.float64()),
    pa.int16(): (pa.int32(), pa.int64(), pa.float64()),
    pa.int32(): (pa.int64(), pa.float64()),
    pa.float32(): (pa.float64(),),
}


def read_parquet(options: SparkOptions, schema: StructType, metadata: list[Column]) -> DataFrame:
    """Return the rows of a file, of a folder, or of what a query of ours wrote.

    Parameters
    ----------
    options : SparkOptions
    schema : StructType
        The columns of the table.
    metadata : list of Column
        Of files.

    Raises
    ------
    SqlError
        If files have not these columns, in these types.
    OutputError
        If complete results are not all there.
    pyspark.errors.AnalysisException
        If there is no such file or folder.
    """
    found = owners(options.session, options.path)
    if not found:
        _check_files(options)
        rows: DataFrame = options.reader.schema(schema).parquet(options.path)
    else:
        if metadata and options.is_streaming and not found[-1].is_bounded:
            names = ", ".join(each.name for each in options.table.columns if each.metadata)
            rule = "results of a query have no metadata of files when they are read as a stream"
            raise options.error(rule, names)
        rows = _results(options, found[-1])
        _check_columns(options, to_arrow_schema(rows.schema), "results there")
    values = [F.col(quote_name(f.name)).cast(f.dataType).alias(f.name) for f in schema]
    return rows.select(*values, *metadata)


def _results(options: SparkOptions, owner: Owner) -> DataFrame:
    """Return the complete results at a path; those of a bounded query are a stream of its files."""
    session, path = options.session, options.path
    if options.is_streaming and not owner.is_bounded:
        return stream_output(session, path, RESULT, None, None, "raise")
    written = read_output(session, path, RESULT, None, "raise")
    if not options.is_streaming:
        return written
    texts = read_markers(session, f"{literal(path)}/{COMMITS}", many=True)
    last = max(map(Commit.from_text, texts), key=lambda commit: commit.position)
    files = complete_files(session, path, RESULT, [last], "raise")
    at = files[0] if len(files) == 1 else f"{{{','.join(files)}}}"
    reader = session.readStream.schema(written.schema).option("pathGlobFilter", "*.parquet")
    rows: DataFrame = reader.parquet(at if files else f"{literal(path)}/{COMMITS}")
    return rows


def _check_files(options: SparkOptions) -> None:
    """Raise `SqlError` if files lack a column, or have another type; if there are any yet.

    The footer of one file is read; of all, if that lacks a column.
    """
    session, path = options.session, options.path
    reader = session.read.option("recursiveFileLookup", "true")
    in_folders = set[str]()
    try:
        schema = reader.parquet(path).schema
        if _missing(options, schema.names):
            schema = reader.option("mergeSchema", "true").parquet(path).schema
        if _missing(options, schema.names):  # it may be in the names of folders
            own = {name.lower() for name in schema.names}
            every = session.read.parquet(path).schema
            in_folders = {f.name.lower() for f in every} - own
    except AnalysisException as error:
        if error.getCondition() == "UNABLE_TO_INFER_SCHEMA":  # no file yet
            return
        raise
    _check_columns(options, to_arrow_schema(schema), "files", in_folders)


def _missing(options: TableOptions, names: list[str]) -> list[str]:
    """Return the columns of a table that are not among names."""
    own = {name.lower() for name in names}
    return [name for name in options.table.physical_schema.names if name.lower() not in own]


def _check_columns(
    options: TableOptions, schema: pa.Schema, where: str, in_folders: Collection[str] = ()
) -> None:
    for name in _missing(options, schema.names):
        if name.lower() not in in_folders:
            columns = ", ".join(schema.names)
            rule = f"the {where} have no such column: leave it out, or name one of {columns}"
            raise options.error(rule, name)
    found = {field.name.lower(): field.type for field in schema}
    for field in options.table.physical_schema:
        dtype = found.get(field.name.lower())
        if dtype is None or is_same_type(dtype, field.type) or _is_widened(dtype, field.type):
            continue
        rule = f"the {where} have {dtype} here, and {field.type} is declared"
        if types.is_timestamp(dtype) and types.is_timestamp(field.type):
            rule += f": {TWO_TIMESTAMPS}"
        else:
            rule += ": declare that, and CAST it in a query"
        raise options.error(rule, field.name)


def _is_widened(dtype: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark reads values of one type as another that has all of them."""
    if types.is_decimal(dtype) and types.is_decimal(wanted):
        digits, wanted_digits = dtype.precision - dtype.scale, wanted.precision - wanted.scale
        return bool(wanted.scale >= dtype.scale and wanted_digits >= digits)
    return wanted in _WIDENED.get(dtype, ())
