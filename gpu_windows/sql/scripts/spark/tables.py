"""Tables that Spark reads: files, Kafka, and rows that are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import StructType

from gpu_windows.errors import OutputError
from gpu_windows.spark_glue.columns.expressions import is_of_spark, summary
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.types import to_spark
from gpu_windows.sql.scripts.spark.made_rows import make_rows
from gpu_windows.sql.scripts.spark.parquet import read_parquet
from gpu_windows.sql.scripts.spark.texts import (
    check_bytes,
    select_values,
    text_options,
    with_broken,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from gpu_windows.sql.scripts.definitions import TableDefinition
    from gpu_windows.sql.scripts.table_options import SparkOptions, TableOptions

#: Flink's names of metadata of files, and Spark's columns.
_FILE_METADATA = {
    "file.path": "_metadata.file_path",
    "file.name": "_metadata.file_name",
    "file.size": "_metadata.file_size",
    "file.modification-time": "_metadata.file_modification_time",
}
_KAFKA_METADATA = {key: key for key in ("topic", "partition", "offset", "timestamp")}
_RECORD = "__record"
_STARTS = {"earliest-offset": "earliest", "latest-offset": "latest"}


def read_rows(options: SparkOptions) -> DataFrame:
    """Return the rows of a table, with the columns that are not computed.

    Raises
    ------
    SqlError
        If an option is not covered.
    """
    readers = {"filesystem": _read_files, "kafka": _read_kafka, "datagen": make_rows}
    return readers[str(options.table.connector)](options)


def _read_kafka(options: SparkOptions) -> DataFrame:
    rows = _read_records(options)
    metadata = _metadata_columns(options, _KAFKA_METADATA)
    files, schema = options.format, _schema(options.table)
    if files.name == "raw":
        if len(schema) != 1:
            raise options.error("a raw record is one column", ", ".join(schema.names))
        value = F.col("value").cast(schema[0].dataType).alias(schema[0].name)
        return rows.select(value, *metadata)
    if files.name not in ("json", "csv"):
        raise options.error("records are json, csv or raw", files.name)
    check_bytes(options)
    with_text = with_broken(schema, files)
    read = F.from_json if files.name == "json" else F.from_csv
    ddl: Any = with_text if files.name == "json" else with_text.toDDL()
    record = read(F.col("value").cast("string"), ddl, text_options(files)).alias(_RECORD)
    records = rows.select(record, *metadata).where(F.col(_RECORD).isNotNull())
    names = [quote_name(each.name) for each in options.table.columns if each.metadata is not None]
    return select_values(options, schema, records, names, prefix=f"{_RECORD}.")


def _read_records(options: SparkOptions) -> DataFrame:
    """Return the records of topics, as Spark's connector has them."""
    has_pattern = "topic-pattern" in options.table.options
    name, own = ("topic-pattern", "subscribePattern") if has_pattern else ("topic", "subscribe")
    topics = {own: options.require(name).replace(";", ",")}
    given = {**options.kafka, **topics, **_start(options)}
    try:
        rows: DataFrame = options.reader.format("kafka").options(**given).load()
        return rows
    except AnalysisException as error:
        rule = f"Spark cannot read it: {summary(error)}"
        if error.getCondition() == "KAFKA_DATA_SOURCE_NOT_ENABLED":
            rule = (
                "Spark has no connector of Kafka: start it with spark.jars.packages=org.apache."
                f"spark:spark-sql-kafka-0-10_2.13:{options.session.version}, or give the rows as "
                f"sql_script(text, {options.table.name}=gw.stream(rows))"
            )
        raise options.error(rule, topics[own]) from error


def _start(options: SparkOptions) -> dict[str, str]:
    """Return where records are read from at the first start."""
    mode = options.get("scan.startup.mode", "group-offsets")
    if mode in _STARTS:
        return {"startingOffsets": _STARTS[mode]}
    if mode == "timestamp":
        return {"startingTimestamp": options.require("scan.startup.timestamp-millis")}
    if mode == "group-offsets" and not options.is_streaming:
        return {}
    rule = f"scan.startup.mode is one of {', '.join(_STARTS)}, timestamp: Spark has offsets of "
    raise options.error(f"{rule}its own, in the checkpoint", mode)


def _read_files(options: SparkOptions) -> DataFrame:
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
    metadata = _metadata_columns(options, _FILE_METADATA)
    try:
        return read(options, _schema(options.table), metadata)
    except OutputError as error:
        raise options.error(error.rule, str(error.value)) from error
    except Exception as error:
        if not is_of_spark(error):
            raise
        rule = f"Spark cannot read it: {summary(error)}"
        if isinstance(error, AnalysisException) and error.getCondition() == "PATH_NOT_FOUND":
            rule = "there is no such file or folder: correct 'path', or create the folder"
        raise options.error(rule, options.path) from error


def _schema(table: TableDefinition) -> StructType:
    """Return the columns that rows of a table have as such."""
    schema = StructType()
    for field in table.physical_schema:
        schema = schema.add(field.name, to_spark(field.type), nullable=True)
    return schema


def _metadata_columns(options: TableOptions, columns: Mapping[str, str]) -> list[Column]:
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
