"""Tables that Spark reads: files, Kafka, and rows that are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.spark_glue.columns.expressions import summary
from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.sql.scripts.spark.files import (
    check_bytes,
    file_schema,
    metadata_columns,
    read_files,
)
from gpu_windows.sql.scripts.spark.made_rows import make_rows
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

_KAFKA_METADATA = {key: key for key in ("topic", "partition", "offset", "timestamp")}
_RECORD = "__record"
_STARTS = {"earliest-offset": "earliest", "latest-offset": "latest"}


class SparkTable:
    """Reads a table by its connector.

    Parameters
    ----------
    options : TableOptions
    session : SparkSession
    is_streaming : bool
    """

    def __init__(self, options: TableOptions, session: Any, *, is_streaming: bool) -> None:
        self._options, self._session = options, session
        self._table = options.table
        self._is_streaming = is_streaming

    def rows(self) -> DataFrame:
        """Return its rows, with the columns that are not computed.

        Raises
        ------
        SqlError
            If an option is not covered.
        """
        kinds = {"filesystem": self._files, "kafka": self._kafka, "datagen": self._make}
        return kinds[str(self._table.connector)]()

    @property
    def _reader(self) -> Any:
        return self._session.readStream if self._is_streaming else self._session.read

    def _files(self) -> DataFrame:
        return read_files(self._options, self._session, is_streaming=self._is_streaming)

    def _kafka(self) -> DataFrame:
        has_pattern = "topic-pattern" in self._table.options
        name, own = ("topic-pattern", "subscribePattern") if has_pattern else ("topic", "subscribe")
        topics = {own: self._options.require(name).replace(";", ",")}
        options = {**self._options.kafka, **topics, **self._start()}
        try:
            rows: DataFrame = self._reader.format("kafka").options(**options).load()
        except AnalysisException as error:
            rule = f"Spark cannot read it: {summary(error)}"
            if error.getCondition() == "KAFKA_DATA_SOURCE_NOT_ENABLED":
                rule = (
                    "Spark has no connector of Kafka: start it with spark.jars.packages=org.apache."
                    f"spark:spark-sql-kafka-0-10_2.13:{self._session.version}, or give the rows as "
                    f"sql_script(text, {self._table.name}=gw.stream(rows))"
                )
            raise self._options.error(rule, topics[own]) from error
        found = metadata_columns(self._options, _KAFKA_METADATA)
        metadata = [F.col(key).cast(dtype).alias(name) for name, dtype, key in found]
        files, schema = self._options.format, file_schema(self._table)
        if files.name == "raw":
            if len(schema) != 1:
                raise self._options.error("a raw record is one column", ", ".join(schema.names))
            value = F.col("value").cast(schema[0].dataType).alias(schema[0].name)
            return rows.select(value, *metadata)
        if files.name not in ("json", "csv"):
            raise self._options.error("records are json, csv or raw", files.name)
        check_bytes(self._options)
        with_text = with_broken(schema, files)
        read = F.from_json if files.name == "json" else F.from_csv
        ddl: Any = with_text if files.name == "json" else with_text.toDDL()
        record = read(F.col("value").cast("string"), ddl, text_options(files)).alias(_RECORD)
        records = rows.select(record, *metadata).where(F.col(_RECORD).isNotNull())
        if BROKEN in with_text.names:
            first = F.col(f"{_RECORD}.{quote_name(schema.names[0])}")
            records = records.where(is_read(self._options, F.col(f"{_RECORD}.{BROKEN}"), first))
        values = text_values(schema, files, f"{_RECORD}.")
        return records.select(*values, *(quote_name(name) for name, _, _ in found))

    def _start(self) -> dict[str, str]:
        """Return where records are read from at the first start."""
        mode = self._options.get("scan.startup.mode", "group-offsets")
        if mode in _STARTS:
            return {"startingOffsets": _STARTS[mode]}
        if mode == "timestamp":
            return {"startingTimestamp": self._options.require("scan.startup.timestamp-millis")}
        if mode == "group-offsets" and not self._is_streaming:
            return {}
        rule = f"scan.startup.mode is one of {', '.join(_STARTS)}, timestamp: Spark has offsets of "
        raise self._options.error(f"{rule}its own, in the checkpoint", mode)

    def _make(self) -> DataFrame:
        return make_rows(self._session, self._options, is_streaming=self._is_streaming)
