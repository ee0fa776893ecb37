"""Rows and times as tests write them: dicts, and times as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyarrow import types

from gpu_windows.column_types.time_units import warn_of_unit
from gpu_windows.errors import QueryError
from gpu_windows.functions.checked_results import CONVERSION_ERRORS, as_array, is_of_type
from gpu_windows.runners.arrow_input import arrow_table, gives_arrow
from gpu_windows.user_values import to_tick

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: A time: a datetime, a text such as "2026-05-01 12:00:00", or microseconds since 1970.
Time = datetime | str | int


def ticks_of(time: Time) -> int:
    """Return a time in ticks; one without a zone is in UTC.

    Raises
    ------
    QueryError
        If it is not a time.
    """
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError as error:
            rule = "a time as text is written as in 2026-05-01 12:00:00"
            raise QueryError(rule, value=repr(time)) from error
    if isinstance(time, datetime):
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    ticks = None if isinstance(time, bool) else to_tick(time)
    if ticks is None:
        rule = "a time is a datetime, a text, or microseconds since 1970"
        raise QueryError(rule, value=repr(time))
    return ticks


def table_of(rows: object, schema: pa.Schema) -> pa.Table:
    """Return rows as a table of a schema.

    Parameters
    ----------
    rows : table or iterable of mapping
        Times may be text.
    schema : pyarrow.Schema

    Raises
    ------
    QueryError
        If a row has a column that the schema lacks, or a value does not fit.
    """
    if isinstance(rows, pa.Table):
        if set(rows.schema.names) != set(schema.names):
            rule = f"rows have the columns {', '.join(schema.names)}"
            raise QueryError(rule, value=", ".join(rows.schema.names))
        try:
            return rows.select(schema.names).cast(schema)
        except pa.ArrowException as error:
            rule = "a value does not fit the columns"
            raise QueryError(f"{rule} {', '.join(map(str, schema))}: {error}") from error
    if gives_arrow(rows):
        return table_of(arrow_table(rows), schema)
    if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
        rule = "rows are a table of Arrow, pandas or Polars, or a list of dicts"
        raise QueryError(rule, value=repr(rows))
    given = [_row_of(row, schema) for row in rows]
    columns = [_column([row.get(field.name) for row in given], field) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        return as_array(values, field.type)
    except CONVERSION_ERRORS as error:
        wrong = next((each for each in values if not is_of_type(each, field.type)), values)
        rule = f"a value does not fit its column, {field.type}: {error}"
        raise QueryError(rule, value=repr(wrong), column=field.name) from error


def _row_of(row: Any, schema: pa.Schema) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        raise QueryError("rows are a table or a list of dicts", value=repr(row))
    if unknown := [name for name in row if name not in schema.names]:
        rule = f"a row has some of the columns {', '.join(schema.names)}"
        raise QueryError(rule, value=", ".join(map(str, unknown)))
    return {name: _value_of(value, schema.field(name).type, name) for name, value in row.items()}


def _value_of(value: Any, dtype: pa.DataType, name: str) -> Any:
    if not (types.is_timestamp(dtype) and isinstance(value, str | int | float)):
        return value
    ticks = ticks_of(value)  # type: ignore[arg-type] # a float is refused
    if not isinstance(value, str):
        warn_of_unit(pa.chunked_array([pa.array([ticks])]), name)
    time = _EPOCH + timedelta(microseconds=ticks)
    return time if dtype.tz is not None else time.replace(tzinfo=None)
