"""Records of CSV and JSON that Spark reads, with Flink's meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

    from gpu_windows.sql.scripts.formats import Format
    from gpu_windows.sql.scripts.table_options import TableOptions

#: The column with the text of a record that cannot be read.
BROKEN = "__broken"
#: A text that no file has, where none is null.
_NO_NULL = "\x00no null\x00"
#: Characters of a record that an error has.
_EXCERPT = 200
_VALUE = "\x00value\x00"


def with_broken(schema: StructType, files: Format) -> StructType:
    """Return the columns of records, with `BROKEN` if records are checked."""
    return schema if _is_lenient_csv(files) else schema.add(BROKEN, "string")


def is_read(
    options: TableOptions, broken: Column, first: Column, file: Column | None = None
) -> Column:
    """Return a condition for the records that are rows.

    One that cannot be read is an error with its text; or, if ``ignore-parse-errors`` is set, left
    out if it is none at all.

    Parameters
    ----------
    options : TableOptions
    broken, first : Column
        `BROKEN`, and the first column: Spark reads no record for `BROKEN` alone.
    file : Column, optional
        The path of its file.
    """
    files = options.format
    nothing = F.substring(F.coalesce(first.cast("string"), F.lit("")), 1, 0)
    text = F.concat(broken, nothing)
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


def text_values(schema: StructType, files: Format, prefix: str = "") -> Iterator[Column]:
    """Yield the values of records; ``prefix``: of the struct that has them.

    They depend on `BROKEN`, so that Spark does not apply filters of queries before a record is
    known to be read: those would hide one that is not.
    """
    for field in schema:
        value = F.col(f"{prefix}{quote_name(field.name)}")
        if files.name == "csv" and field.dataType.typeName() == "string":
            # a text without letters is empty, which Spark takes for a null
            value = value if "null-literal" in files.options else F.coalesce(value, F.lit(""))
        if not files.skips_errors:
            value = F.when(F.col(f"{prefix}{BROKEN}").isNull(), value)
        yield value.alias(field.name)


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
        options |= _csv_options(files.options)
    return options


def _csv_options(given: Mapping[str, str]) -> dict[str, str]:
    has_no_quote = given.get("disable-quote-character", "false").lower() == "true"
    quote = given.get("quote-character", '"')
    return {
        "sep": given.get("field-delimiter", ",").encode().decode("unicode_escape"),
        "nullValue": given.get("null-literal", _NO_NULL),
        "emptyValue": "",
        "quote": "" if has_no_quote else quote,
        "escape": quote,
        "columnPruning": "false",  # too many fields are an error, whatever is selected
    }


def _is_lenient_csv(files: Format) -> bool:
    return files.name == "csv" and files.skips_errors
