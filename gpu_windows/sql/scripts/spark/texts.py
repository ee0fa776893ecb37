"""Records of CSV and JSON that Spark reads, with Flink's meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import StringType, StructField, StructType

from gpu_windows.spark_glue.columns.names import quote_name
from gpu_windows.sql.scripts.arrow_files import has_bytes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from gpu_windows.sql.scripts.formats import Format
    from gpu_windows.sql.scripts.table_options import TableOptions

#: The column with the text of a record that cannot be read.
BROKEN = "__broken"
#: A text that no file has, where none is null.
_NO_NULL = "\x00no null\x00"
#: Characters of a record that an error has.
_EXCERPT = 200
_VALUE = "\x00value\x00"
_TEXT = StringType()
#: A field that is added to a record of CSV: where it is read says how many are before it.
_END = "\x00end\x00"
#: Types of numbers around which Flink ignores spaces, of CSV that may be wrong.
_TRIMMED = ("tinyint", "smallint", "int", "bigint", "float", "double")


def check_bytes(options: TableOptions) -> None:
    """Raise `SqlError` for bytes in CSV."""
    if options.format.name == "csv":
        for field in options.table.physical_schema:
            if has_bytes(field.type):
                rule = "a text has bytes in base64: STRING and FROM_BASE64"
                raise options.error(rule, field.name)


def with_broken(schema: StructType, files: Format) -> StructType:
    """Return the columns that Spark reads of records, with `BROKEN`."""
    fields = list(schema)
    if _is_lenient_csv(files):
        fields = [StructField(each.name, _TEXT) if _is_trimmed(each) else each for each in fields]
    return StructType([*fields, StructField(BROKEN, _TEXT)])


def select_values(
    options: TableOptions,
    schema: StructType,
    rows: DataFrame,
    others: Iterable[Column | str],
    *,
    prefix: str = "",
    file: Column | None = None,
) -> DataFrame:
    """Return the values of records that are rows.

    Parameters
    ----------
    options : TableOptions
    schema : StructType
        The columns of records.
    rows : DataFrame
        The records that Spark has read as `with_broken`.
    others : iterable of Column or str
        Columns of the rows beside their records.
    prefix : str
        Of the columns: the name of the struct that has them.
    file : Column, optional
        The path of a record's file.
    """
    broken = F.col(f"{prefix}{BROKEN}")
    first = F.col(f"{prefix}{quote_name(schema.names[0])}")
    records = rows.where(_is_read(options, broken, first, file))
    return records.select(*_values(schema, options.format, prefix), *others)


def _is_read(options: TableOptions, broken: Column, first: Column, file: Column | None) -> Column:
    """Return a condition for the records that are rows.

    One that cannot be read is an error with its text; or, if ``ignore-parse-errors`` is set, left
    out if it is none at all. ``first``: Spark reads no record for `BROKEN` alone.
    """
    files = options.format
    nothing = F.substring(F.coalesce(first.cast("string"), F.lit("")), 1, 0)
    text = F.concat(broken, nothing)
    if _is_lenient_csv(files):
        return text.isNull() | (_count_fields(text, len(options.table.physical_schema), files) > 0)
    if files.skips_errors:
        return text.isNull() | F.json_object_keys(text).isNotNull()
    name, columns = files.name, ", ".join(options.table.physical_schema.names)
    rule = (
        f"a record of {name.upper()} cannot be read as {columns}: correct it, or set '{name}.ignore"
        "-parse-errors' = 'true', which drops it or makes its wrong fields null"
    )
    before, after = str(options.error(rule, _VALUE)).split(_VALUE)
    parts = [F.lit(before), F.substring(text, 1, _EXCERPT)]
    parts += [] if file is None else [F.lit(" in "), file]
    failure = F.raise_error(F.concat(*parts, F.lit(after)))
    return F.when(text.isNull(), F.lit(True)).otherwise(failure)


def _values(schema: StructType, files: Format, prefix: str) -> Iterator[Column]:
    """Yield the values of records; ``prefix``: of the struct that has them.

    They depend on `BROKEN`, so that Spark does not apply filters of queries before a record is
    known to be read: those would hide one that is not.
    """
    broken = F.col(f"{prefix}{BROKEN}")
    for at, field in enumerate(schema):
        name = f"{prefix}{quote_name(field.name)}"
        value = F.col(name)
        if _is_lenient_csv(files) and _is_trimmed(field):
            value = F.expr(f"TRY_CAST({name} AS {field.dataType.simpleString()})")
        elif files.name == "csv" and field.dataType == _TEXT:
            value = _with_empty_text(value, broken, at, len(schema), files)
        if not files.skips_errors:
            value = F.when(broken.isNull(), value)
        yield value.alias(field.name)


def _with_empty_text(value: Column, broken: Column, at: int, fields: int, files: Format) -> Column:
    """Return a field, empty if it has no letters, which Spark takes for null as if it lacked."""
    if "null-literal" in files.options:
        return value
    if not files.skips_errors:
        return F.coalesce(value, F.lit(""))
    is_there = broken.isNull() | (_count_fields(broken, fields, files) > at)
    return F.coalesce(value, F.when(is_there, F.lit("")))


def text_options(files: Format) -> dict[str, str]:
    """Return Spark's options of CSV or JSON with Flink's meaning."""
    between = "'T'" if files.has_iso_times else " "
    plain = f"yyyy-MM-dd{between}HH:mm:ss[.SSSSSS][.SSSSS][.SSSS][.SSS][.SS][.S]"
    options = {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": BROKEN,
        "timestampNTZFormat": plain,
        "timestampFormat": f"{plain}'Z'",
        "dateFormat": "yyyy-MM-dd",
        "timeZone": "UTC",
    }
    if files.name == "csv":
        options |= _csv_options(files)
    return options


def _csv_options(files: Format) -> dict[str, str]:
    return {
        "sep": files.delimiter,
        "nullValue": files.options.get("null-literal", _NO_NULL),
        "emptyValue": "",
        "quote": files.quote or "",
        "escape": files.options.get("quote-character", '"'),
        "columnPruning": "false",  # too many fields are an error, whatever is selected
    }


def _count_fields(record: Column, max_fields: int, files: Format) -> Column:
    """Return the number of fields of a record of CSV; -1 if it has more than that."""
    schema = ", ".join(f"`{at}` STRING" for at in range(max_fields + 1))
    text = F.concat(record, F.lit(files.delimiter + _END))
    read = F.from_csv(text, schema, _csv_options(files))
    fields = F.array(*(F.coalesce(read[str(at)], F.lit("")) for at in range(max_fields + 1)))
    return F.array_position(fields, _END) - 1


def _is_trimmed(field: StructField) -> bool:
    return field.dataType.simpleString() in _TRIMMED


def _is_lenient_csv(files: Format) -> bool:
    return files.name == "csv" and files.skips_errors
