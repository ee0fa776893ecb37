"""Tables that Spark reads: files, Kafka, and rows that are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.spark_glue.columns.expressions import summary
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.sql.scripts.spark.files import (
    file_schema,
    metadata_columns,
    read_files,
)
from gpu_windows.sql.scripts.spark.made_rows import make_rows
from gpu_windows.sql.scripts.spark.texts import (
    check_bytes,
    select_values,
    text_options,
    with_broken,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gpu_windows.sql.scripts.table_options import SparkOptions

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
    readers = {"filesystem": read_files, "kafka": _read_kafka, "datagen": make_rows}
    return readers[str(options.table.connector)](options)


def _read_kafka(options: SparkOptions) -> DataFrame:
    rows = _read_records(options)
    metadata = metadata_columns(options, _KAFKA_METADATA)
    files, schema = options.format, file_schema(options.table)
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
