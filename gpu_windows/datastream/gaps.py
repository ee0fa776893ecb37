"""Parameters of gap filling, as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from numbers import Integral
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import InvalidDurationError, QueryError
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.runners.arrow_input import arrow_table, gives_arrow, is_data_frame
from gpu_windows.vocabulary.gap_filling import GapFilling, GivenKeys
from gpu_windows.vocabulary.options import Duration, is_whole, ticks


def gap_filling(
    carry_forward: str | Sequence[str],
    interpolate: str | Sequence[str],
    until: Duration | None,
    given: GivenKeys | None,
) -> GapFilling:
    """Return how gaps are filled, from what users write.

    Raises
    ------
    InvalidDurationError
        If ``until`` is not positive.
    QueryError
        If a name is not a text.
    """
    length = None if until is None else ticks(until)
    if length is not None and length <= 0:
        raise InvalidDurationError("until must be positive", value=repr(until))
    carried, interpolated = (
        _names(names, parameter)
        for names, parameter in ((carry_forward, "carry_forward"), (interpolate, "interpolate"))
    )
    return GapFilling(carried, interpolated, length, given)


def _names(names: str | Sequence[str], parameter: str) -> tuple[str, ...]:
    every = (names,) if isinstance(names, str) else names
    if not isinstance(every, list | tuple) or not all(isinstance(each, str) for each in every):
        rule = f"{parameter} takes a name of a result or a list of them"
        raise QueryError(rule, value=repr(names))
    return tuple(every)


def given_keys(
    keys: object,
    start: object,
    end: object,
    fields: Sequence[pa.Field],
    time: pa.DataType,
    zone: str | None,
) -> GivenKeys:
    """Return given keys and their bounds, from what users write.

    Parameters
    ----------
    keys : sequence or table
        Values of the key, tuples of these if it has several columns; or a table with its columns.
    start, end : datetime or str or int or None
    fields : sequence of pyarrow.Field
        Of the key columns, with the users' names.
    time : pyarrow.DataType
        The type of event times.
    zone : str, optional
        The time zone of the windows, which that of a bound without one is.

    Raises
    ------
    QueryError
        If keys are of other types, or one comes twice; if a bound is missing or not a time.
    """
    if start is None:
        raise QueryError("given keys are filled from a start on: say start=...", value="start=None")
    first = _tick(start, "start", time, zone)
    last = None if end is None else _tick(end, "end", time, zone)
    if last is not None and last <= first:
        raise QueryError("end must be after start", value=f"start={start}, end={end}")
    return GivenKeys(_key_table(keys, fields), first, last)


def _key_table(keys: object, fields: Sequence[pa.Field]) -> pa.Table:
    """Return given keys as a table of the types of the key columns."""
    schema = pa.schema([field.with_nullable(True).remove_metadata() for field in fields])
    names = ", ".join(schema.names)
    if is_data_frame(keys) or gives_arrow(keys):
        given = arrow_table(keys.toArrow() if is_data_frame(keys) else keys)
        if not {*schema.names} <= {*given.column_names}:
            rule = f"a table of keys has the columns {names}"
            raise QueryError(rule, value=", ".join(given.column_names))
        columns = [given.column(name) for name in schema.names]
    elif isinstance(keys, list | tuple):
        columns = _key_columns(keys, len(fields), names)
    else:
        rule = f"keys takes a list of values of {names}, or a table of these"
        raise QueryError(rule, value=repr(keys)[:80])
    arrays = [_key_column(values, field) for values, field in zip(columns, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    if not len(table):
        raise QueryError("keys must name one at least; without keys all are filled", value="[]")
    codes = KeyEncoder(schema.types).encode(table.columns)
    _, first = np.unique(codes, return_index=True)
    if len(first) < len(codes):
        repeated = np.setdiff1d(np.arange(len(codes)), first)
        value = table.slice(int(repeated[0]), 1).to_pylist()[0]
        raise QueryError("keys must differ", value=value, column=names)
    return table


def _key_column(values: list[object] | pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return values of a key column in its type, if none of them has to change."""
    try:
        if isinstance(values, pa.ChunkedArray):
            if _kind(values.type) == _kind(field.type):
                return values.cast(field.type)
            error: object = f"a column of {values.type}"
        else:
            _check_values(values, field.type)
            return pa.chunked_array([pa.array(values, field.type)])
    except (pa.ArrowException, OverflowError, TypeError) as raised:
        error = raised
    raise QueryError(f"keys must be values of {field.name} {field.type}", value=error)


def _kind(dtype: pa.DataType) -> object:
    """Return what types have in common whose values may be cast to each other."""
    if types.is_integer(dtype):
        return "integer"
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "string"
    if types.is_timestamp(dtype):
        return "timestamp", dtype.tz is None
    return dtype


def _check_values(values: list[object], dtype: pa.DataType) -> None:
    """Raise `TypeError` for values that Arrow would change: fractions, times without a zone."""
    for value in values:
        if types.is_integer(dtype) and not (value is None or isinstance(value, Integral)):
            raise TypeError(f"{value!r} is not a whole number")
        if not types.is_timestamp(dtype):
            continue
        if isinstance(value, datetime) and (value.tzinfo is None) != (dtype.tz is None):
            raise TypeError(f"{value!r} has {'no' if value.tzinfo is None else 'a'} time zone")


def _key_columns(keys: Sequence[Any], count: int, names: str) -> list[list[object]]:
    if count == 1:
        return [[*keys]]
    for key in keys:
        if not isinstance(key, list | tuple) or len(key) != count:
            raise QueryError(f"a key is a tuple of {names}", value=repr(key))
    return [[*column] for column in zip(*keys, strict=True)] or [[] for _ in range(count)]


def _tick(value: object, name: str, time: pa.DataType, zone: str | None) -> int:
    """Return a bound in ticks."""
    has_zone = not types.is_timestamp(time) or time.tz is not None
    if isinstance(value, str):
        value = _parse_time(value, name)
    if isinstance(value, datetime):
        if value.tzinfo is None and has_zone and zone is not None:
            value = value.replace(tzinfo=ZoneInfo(zone))
        if (value.tzinfo is not None) != has_zone:
            kind = (
                f"a time zone, as event times have one: '{value}+00:00' in UTC"
                if has_zone
                else f"no time zone, as event times have none: '{value.replace(tzinfo=None)}'"
            )
            raise QueryError(f"{name} must have {kind}", value=repr(value))
        tick: int = pa.scalar(value, pa.timestamp("us", "UTC" if has_zone else None)).value
        return tick
    if is_whole(value) and not types.is_timestamp(time):
        whole = int(value)  # type: ignore[call-overload]
        if LONG_MIN < whole < LONG_MAX:
            return int(whole)
    rule = f"{name} takes a time: a datetime, or a text such as '2026-05-01 00:00'"
    if not types.is_timestamp(time):
        rule += ", or microseconds since 1970"
    raise QueryError(rule, value=repr(value))


def _parse_time(text: str, name: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        rule = f"{name} as a text is an ISO time, such as '2026-05-01 00:00' or with a zone +00:00"
        raise QueryError(rule, value=repr(text)) from error
