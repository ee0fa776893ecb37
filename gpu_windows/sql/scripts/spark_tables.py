"""Tables that Spark reads: files, Kafka, and rows that are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.spark_glue.columns.types import to_spark
from gpu_windows.sql.scripts.arrow_files import has_bytes
from gpu_windows.sql.scripts.definitions import Column, TableDefinition
from gpu_windows.sql.scripts.formats import Format
from gpu_windows.sql.scripts.made_rows import make_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from gpu_windows.sql.scripts.table_options import TableOptions

#: Flink's names of metadata of records, and Spark's columns.
_KAFKA_METADATA = ("topic", "partition", "offset", "timestamp")
_FILE_METADATA = {
    "file.path": "file_path",
    "file.name": "file_name",
    "file.size": "file_size",
    "file.modification-time": "file_modification_time",
}
#: A text that no file has, where none is null.
_NO_NULL = "\x00no null\x00"
#: The text of a record that cannot be read.
_BROKEN = "__broken"
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
        files, schema = self._options.format, _spark_schema(self._table)
        self._check_bytes(files)
        names = schema.names
        if files.name == "json" and files.skips_errors:
            schema = schema.add(_BROKEN, "string")
        reader = self._reader.schema(schema)
        if files.name in ("csv", "json"):
            reader = reader.options(**_text_options(files))
        elif files.name != "parquet":
            raise self._options.error("files are parquet, csv or json", files.name)
        metadata = {
            each.name: F.col(f"_metadata.{_FILE_METADATA[key]}")
            for each, key in self._metadata(tuple(_FILE_METADATA))
        }
        rows: DataFrame = reader.format(files.name).load(self._options.path)
        if _BROKEN in schema.names:
            rows = rows.where(_is_record(F.col(_BROKEN)))
        values = [_text_value(F.col(quote_name(n)), schema[n].dataType, files, n) for n in names]
        return rows.select(*values, *_cast(self._table, metadata))

    def _check_bytes(self, files: Format) -> None:
        if files.name == "csv":
            for field in self._table.physical_schema:
                if has_bytes(field.type):
                    rule = "a text has bytes in base64: STRING and FROM_BASE64"
                    raise self._options.error(rule, field.name)

    def _kafka(self) -> DataFrame:
        has_pattern = "topic-pattern" in self._table.options
        name, own = ("topic-pattern", "subscribePattern") if has_pattern else ("topic", "subscribe")
        topics = {own: self._options.require(name).replace(";", ",")}
        options = {**self._options.kafka, **topics, **self._start()}
        rows: DataFrame = self._reader.format("kafka").options(**options).load()
        metadata = {each.name: F.col(key) for each, key in self._metadata(_KAFKA_METADATA)}
        columns = _cast(self._table, metadata)
        files, schema = self._options.format, _spark_schema(self._table)
        if files.name == "raw":
            if len(schema) != 1:
                raise self._options.error("a raw record is one column", ", ".join(schema.names))
            value = F.col("value").cast(schema[0].dataType).alias(schema[0].name)
            return rows.select(value, *columns)
        if files.name not in ("json", "csv"):
            raise self._options.error("records are json, csv or raw", files.name)
        self._check_bytes(files)
        names = schema.names
        if files.name == "json" and files.skips_errors:
            schema = schema.add(_BROKEN, "string")
        read = F.from_json if files.name == "json" else F.from_csv
        ddl: Any = schema if files.name == "json" else schema.toDDL()
        record = read(F.col("value").cast("string"), ddl, _text_options(files))
        found = rows.select(record.alias("__record"), *columns)
        if files.skips_errors:
            found = found.where(F.col("__record").isNotNull())
        if _BROKEN in schema.names:
            found = found.where(_is_record(F.col(f"__record.{_BROKEN}")))
        fields = (
            _text_value(F.col(f"__record.{quote_name(n)}"), schema[n].dataType, files, n)
            for n in names
        )
        return found.select(*fields, *map(quote_name, metadata))

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

    def _metadata(self, names: tuple[str, ...]) -> list[tuple[Column, str]]:
        found = []
        for each in self._table.columns:
            if each.metadata is None:
                continue
            if each.metadata not in names:
                rule = f"metadata is one of {', '.join(names)}"
                raise self._options.error(rule, each.metadata)
            found.append((each, each.metadata))
        return found


def _spark_schema(table: TableDefinition) -> StructType:
    from pyspark.sql.types import StructType

    schema = StructType()
    for field in table.physical_schema:
        schema = schema.add(field.name, to_spark(field.type), nullable=True)
    return schema


def _cast(table: TableDefinition, columns: dict[str, Any]) -> list[Any]:
    types = {each.name: each.dtype for each in table.columns}
    return [value.cast(to_spark(types[name])).alias(name) for name, value in columns.items()]


def _is_record(broken: Any) -> Any:
    """Return whether a text is a record of JSON, of which fields may be wrong."""
    return broken.isNull() | F.json_object_keys(broken).isNotNull()


def _text_value(value: Any, dtype: Any, files: Format, name: str) -> Any:
    """Return a value: of CSV a text without letters is empty, which Spark takes for a null."""
    is_empty = files.name == "csv" and dtype.typeName() == "string"
    if is_empty and "null-literal" not in files.options:
        return F.coalesce(value, F.lit("")).alias(name)
    return value.alias(name)


def _text_options(files: Format) -> dict[str, str]:
    """Return Spark's options of CSV or JSON with Flink's meaning."""
    between = "'T'" if files.has_iso_times else " "
    plain = f"yyyy-MM-dd{between}HH:mm:ss[.SSSSSS][.SSSSS][.SSSS][.SSS][.SS][.S]"
    options = {
        "mode": "PERMISSIVE" if files.skips_errors else "FAILFAST",
        "timestampNTZFormat": plain,
        "timestampFormat": f"{plain}'Z'",
        "dateFormat": "yyyy-MM-dd",
        "timeZone": "UTC",
    }
    if files.name == "json":
        options["columnNameOfCorruptRecord"] = _BROKEN
    if files.name == "csv":
        delimiter = files.options.get("field-delimiter", ",")
        options["sep"] = delimiter.encode().decode("unicode_escape")
        options["nullValue"] = files.options.get("null-literal", _NO_NULL)
        options["emptyValue"] = ""
        options["quote"] = options["escape"] = files.options.get("quote-character", '"')
        options["columnPruning"] = "false"  # too many fields are an error, whatever is selected
        if files.options.get("disable-quote-character", "false").lower() == "true":
            options["quote"] = ""
    return options
