"""Files of tables, read by Spark: Parquet, CSV and JSON, and what queries of ours wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import StructType

from gpu_windows.errors import OutputError
from gpu_windows.spark_glue.columns.expressions import is_of_spark, summary
from gpu_windows.spark_glue.columns.types import to_spark
from gpu_windows.sql.scripts.definitions import TableDefinition
from gpu_windows.sql.scripts.spark.parquet import read_parquet
from gpu_windows.sql.scripts.spark.texts import (
    check_bytes,
    select_values,
    text_options,
    with_broken,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from gpu_windows.sql.scripts.table_options import SparkOptions, TableOptions

#: Flink's names of metadata of files, and Spark's columns.
_METADATA = {
    "file.path": "_metadata.file_path",
    "file.name": "_metadata.file_name",
    "file.size": "_metadata.file_size",
    "file.modification-time": "_metadata.file_modification_time",
}


def read_files(options: SparkOptions) -> DataFrame:
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
    metadata = metadata_columns(options, _METADATA)
    try:
        return read(options, file_schema(options.table), metadata)
    except OutputError as error:
        raise options.error(error.rule, str(error.value)) from error
    except Exception as error:
        if not is_of_spark(error):
            raise
        rule = f"Spark cannot read it: {summary(error)}"
        if isinstance(error, AnalysisException) and error.getCondition() == "PATH_NOT_FOUND":
            rule = "there is no such file or folder: correct 'path', or create the folder"
        raise options.error(rule, options.path) from error


def file_schema(table: TableDefinition) -> StructType:
    """Return the columns that rows of a table have as such."""
    schema = StructType()
    for field in table.physical_schema:
        schema = schema.add(field.name, to_spark(field.type), nullable=True)
    return schema


def metadata_columns(options: TableOptions, columns: Mapping[str, str]) -> list[Column]:
    """Return the columns METADATA of a table.

    ``columns``: Spark's by Flink's names.

    Raises
    ------
    SqlError
        If there is no such metadata.
    """
    found = []
    for each in options.table.columns:
        if each.metadata is not None:
            if each.metadata not in columns:
                raise options.error(f"metadata is one of {', '.join(columns)}", each.metadata)
            assert each.dtype is not None, "a column of metadata has a type"
            value = F.col(columns[each.metadata]).cast(to_spark(each.dtype))
            found.append(value.alias(each.name))
    return found


def _read_texts(options: SparkOptions, schema: StructType, metadata: list[Column]) -> DataFrame:
    files = options.format
    check_bytes(options)
    reader = options.reader.schema(with_broken(schema, files)).options(**text_options(files))
    rows: DataFrame = reader.format(files.name).load(options.path)
    return select_values(options, schema, rows, metadata, file=F.col("_metadata.file_path"))
