"""Files of tables, read by Arrow."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.json as pa_json

from gpu_windows.commits.path_log import committed_files
from gpu_windows.commits.records import OWNERS
from gpu_windows.errors import QueryError
from gpu_windows.sql.scripts.formats import Format


def read_files(path: str, files: Format, schema: pa.Schema) -> pa.Table:
    """Return the rows of a file, or of the files in a folder.

    Parameters
    ----------
    path : str
    files : Format
    schema : pyarrow.Schema
        The columns that are read: of CSV, in order.

    Raises
    ------
    OSError, pyarrow.ArrowException
        If they cannot be read.
    QueryError
        If a record may be wrong, which Arrow does not drop.
    """
    if files.name == "parquet":
        files_there = committed_files(path) if Path(path, OWNERS).is_dir() else None
        if files_there == []:
            return schema.empty_table()
        found = ds.dataset(files_there or path, format="parquet", partitioning=_partitioning(path))
        names = {name.lower(): name for name in found.schema.names}
        columns = [names[name.lower()] for name in schema.names if name.lower() in names]
        return found.to_table(columns=columns)
    if files.skips_errors:
        raise QueryError("records that may be wrong are read on Spark", value="ignore-parse-errors")
    _check_bytes(schema, files)
    if files.name == "csv" and not f"{files.delimiter}{files.quote or ''}".isascii():
        rule = "Arrow reads CSV with a delimiter and a quote of ASCII: read it on Spark"
        raise QueryError(rule, value=f"{files.delimiter} and {files.quote}")
    parts = [_read_file(each, files, schema) for each in _files(Path(path))]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _partitioning(path: str) -> str | None:
    return "hive" if Path(path).is_dir() else None


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return [p for p in sorted(path.rglob("*")) if p.is_file() and p.name[0] not in "._"]


def _read_file(path: Path, files: Format, schema: pa.Schema) -> pa.Table:
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    if path.stat().st_size == 0:
        return nullable.empty_table()
    if files.name == "json":
        written = pa.schema([_written_field(field) for field in nullable])
        options = pa_json.ParseOptions(explicit_schema=written, unexpected_field_behavior="ignore")
        return pa_json.read_json(path, parse_options=options).cast(nullable)
    null = files.options.get("null-literal")
    return pa_csv.read_csv(
        path,
        read_options=pa_csv.ReadOptions(column_names=schema.names),
        parse_options=pa_csv.ParseOptions(
            delimiter=files.delimiter, quote_char=False if files.quote is None else files.quote
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=nullable,
            null_values=[] if null is None else [null],
            strings_can_be_null=null is not None,
            quoted_strings_can_be_null=False,
        ),
    )


def _written_field(field: pa.Field) -> pa.Field:
    """Return a field as JSON has it: times are texts, whose cast is strict about zones."""
    return field.with_type(pa.string()) if pa.types.is_temporal(field.type) else field


def _check_bytes(schema: pa.Schema, files: Format) -> None:
    """Refuse bytes, which texts have in base64: Arrow would read the letters."""
    for field in schema:
        if has_bytes(field.type):
            instead = "read it on Spark" if files.name == "json" else "STRING and FROM_BASE64"
            raise QueryError(f"a text has bytes in base64: {instead}", value=field.name)


def has_bytes(dtype: pa.DataType) -> bool:
    """Whether values have bytes, maybe in fields or elements."""
    if pa.types.is_nested(dtype):
        return any(has_bytes(dtype.field(place).type) for place in range(dtype.num_fields))
    return bool(pa.types.is_binary(dtype))
