"""Casts columns of a file to those a scan declares: names in any case, wider types, nulls."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types

from gpu_windows.column_types.logical import logical_type, plain_array
from gpu_windows.errors import ScanError


def find_columns(found: Sequence[str], wanted: Sequence[str], path: str) -> dict[str, str]:
    """Return the names of wanted columns to their names in the file; missing ones are left out.

    Raises
    ------
    ScanError
        If the file has several columns whose names differ by case alone.
    """
    by_lower: dict[str, list[str]] = {}
    for name in found:
        by_lower.setdefault(name.lower(), []).append(name)
    columns: dict[str, str] = {}
    for name in wanted:
        alike = by_lower.get(name.lower(), [])
        if len(alike) > 1:
            rule = "names of columns differ by more than upper and lower case"
            raise ScanError(rule, value=f"{path}: {', '.join(alike)}", column=name)
        if alike:
            columns[name] = alike[0]
    return columns


def cast_to_declared(column: pa.Array, field: pa.Field, path: str, *, is_instant: bool) -> pa.Array:
    """Cast a column of a file to its declared type, exactly.

    Parameters
    ----------
    column : pyarrow.Array
    field : pyarrow.Field
    path : str
        Of the file.
    is_instant : bool
        Whether times without a zone in the file are instants: Spark's INT96.

    Raises
    ------
    ScanError
        If a value of the type in the file cannot be converted exactly.
    """
    found, wanted = column.type, field.type
    if found == wanted:
        return column
    reason = why_not(found, wanted, is_instant=is_instant)
    if reason is None:
        try:
            return plain_array(column).cast(wanted)
        except pa.ArrowException as error:
            reason = str(error)
    rule = f"a column of a file has the type that the scan declares ({wanted}): {reason}"
    raise ScanError(rule, value=path, column=field.name)


def why_not(found: pa.DataType, wanted: pa.DataType, *, is_instant: bool) -> str | None:
    """Return why values of one type cannot be cast to another exactly, or None.

    If it is None, a cast of Arrow converts each value exactly, or fails.
    """
    found, wanted = logical_type(found), logical_type(wanted)
    if found == wanted or types.is_null(found):
        return None
    if types.is_nested(found) and found.id == wanted.id:
        return _why_not_nested(found, wanted, is_instant=is_instant)
    if types.is_timestamp(found) and types.is_timestamp(wanted):
        has_zone = found.tz is not None or is_instant
        return None if has_zone == (wanted.tz is not None) else f"it is {found}"
    if types.is_floating(found) and types.is_floating(wanted):
        return None if found.bit_width <= wanted.bit_width else f"it is {found}"
    alike = (
        types.is_integer(found) and types.is_integer(wanted),
        types.is_decimal(found) and types.is_decimal(wanted),
    )
    return None if any(alike) else f"it is {found}"


def _why_not_nested(found: pa.DataType, wanted: pa.DataType, *, is_instant: bool) -> str | None:
    """Return why values of a nested type cannot be cast to another of its kind, or None."""
    if not types.is_struct(found):
        pairs = [(found.field(n), wanted.field(n)) for n in range(found.num_fields)]
    else:
        names = [field.name for field in found]
        lower, pairs = [name.lower() for name in names], []
        for field in wanted:
            if lower.count(field.name.lower()) != names.count(field.name):
                return f"its field {field.name} has another name there: {', '.join(names)}"
            if field.name in names:
                pairs.append((found.field(names.index(field.name)), field))
    reasons = (why_not(one.type, other.type, is_instant=is_instant) for one, other in pairs)
    return next((reason for reason in reasons if reason is not None), None)
