"""Files of tables, read by Spark: Parquet, CSV and JSON, and what queries of ours wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import DataType, StructType

from gpu_windows.errors import OutputError, SqlError
from gpu_windows.spark_glue.columns.expressions import is_of_spark, summary
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.types import to_spark
from gpu_windows.sql.scripts.arrow_files import has_bytes
from gpu_windows.sql.scripts.definitions import TableDefinition
from gpu_windows.sql.scripts.spark.parquet import read_parquet
from gpu_windows.sql.scripts.spark.texts import (
    BROKEN,
    is_read,
    text_options,
    text_values,
    with_broken,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gpu_windows.sql.scripts.table_options import TableOptions

#: Flink's names of metadata of files, and Spark's columns.
_METADATA = {
    "file.path": "_metadata.file_path",
    "file.name": "_metadata.file_name",
    "file.size": "_metadata.file_size",
    "file.modification-time": "_metadata.file_modification_time",
}


def read_files(options: TableOptions, session: Any, *, is_streaming: bool) -> DataFrame:
    """Return the rows of a file, or of the files in a folder; in streams new ones too.

    Raises
    ------
    SqlError
        If there is no such file or folder; if files of Parquet have other columns; if an option is
        not covered.
    """
    kind = options.format.name
    if kind not in ("parquet", "csv", "json"):
        raise options.error("files are parquet, csv or json", kind)
    read = read_parquet if kind == "parquet" else _read_texts
    metadata = [
        F.col(column).cast(dtype).alias(name)
        for name, dtype, column in metadata_columns(options, _METADATA)
    ]
    try:
        schema = file_schema(options.table)
        return read(options, session, schema, metadata, is_streaming=is_streaming)
    except SqlError:
        raise
    except OutputError as error:
        raise options.error(error.rule, str(error.value)) from error
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise options.error(f"Spark cannot read it: {summary(error)}", options.path) from error
        rule = "there is no such file or folder: correct 'path', or create the folder"
        raise options.error(rule, options.path) from error
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise options.error(f"Spark cannot read it: {summary(error)}", options.path) from error


def file_schema(table: TableDefinition) -> StructType:
    """Return the columns that rows of a table have as such."""
    schema = StructType()
    for field in table.physical_schema:
        schema = schema.add(field.name, to_spark(field.type), nullable=True)
    return schema


def check_bytes(options: TableOptions) -> None:
    """Raise `SqlError` for bytes in CSV."""
    if options.format.name == "csv":
        for field in options.table.physical_schema:
            if has_bytes(field.type):
                rule = "a text has bytes in base64: STRING and FROM_BASE64"
                raise options.error(rule, field.name)


def metadata_columns(
    options: TableOptions, columns: Mapping[str, str]
) -> Iterator[tuple[str, DataType, str]]:
    """Yield name, type and Spark's column of each column METADATA.

    ``columns``: Spark's by Flink's names.

    Raises
    ------
    SqlError
        If there is no such metadata.
    """
    for each in options.table.columns:
        if each.metadata is not None:
            if each.metadata not in columns:
                raise options.error(f"metadata is one of {', '.join(columns)}", each.metadata)
            assert each.dtype is not None, "a column of metadata has a type"
            yield each.name, to_spark(each.dtype), columns[each.metadata]


def _read_texts(
    options: TableOptions,
    session: Any,
    schema: StructType,
    metadata: list[Any],
    *,
    is_streaming: bool,
) -> DataFrame:
    files = options.format
    check_bytes(options)
    with_text = with_broken(schema, files)
    reader = session.readStream if is_streaming else session.read
    reader = reader.schema(with_text).options(**text_options(files))
    rows: DataFrame = reader.format(files.name).load(options.path)
    if BROKEN in with_text.names:
        first = F.col(quote_name(schema.names[0]))
        rows = rows.where(is_read(options, F.col(BROKEN), first, F.col("_metadata.file_path")))
    return rows.select(*text_values(schema, files), *metadata)
