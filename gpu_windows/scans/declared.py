"""Columns of a file as a scan declares them: by any case, widened, missing ones null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import ScanError

_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def find_columns(found: Sequence[str], wanted: Sequence[str], path: str) -> dict[str, str]:
    """Return the name in the file of each wanted column that is there.

    Raises
    ------
    ScanError
        If the file has several columns that differ by upper and lower case alone.
    """
    exact = set(found)
    by_lower: dict[str, list[str]] = {}
    for name in found:
        by_lower.setdefault(name.lower(), []).append(name)
    columns: dict[str, str] = {}
    for name in wanted:
        alike = by_lower.get(name.lower(), [])
        if name in exact:
            columns[name] = name
        elif len(alike) > 1:
            rule = "names of columns differ by more than upper and lower case"
            raise ScanError(rule, value=f"{path}: {', '.join(alike)}", column=name)
        elif alike:
            columns[name] = alike[0]
    return columns


def as_declared(column: pa.Array, field: pa.Field, path: str, *, is_instant: bool) -> pa.Array:
    """Return a column of a file in the type that is declared, exactly.

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
        If the type in the file is another one, from which a value could not be taken exactly.
    """
    found, wanted = column.type, field.type
    if found == wanted:
        return column
    reason = why_not(found, wanted, is_instant=is_instant)
    if reason is None:
        try:
            return column.cast(wanted, safe=not types.is_timestamp(wanted) or not is_instant)
        except pa.ArrowException as error:
            reason = str(error)
    rule = f"a column of a file has the type that the scan declares ({wanted}): {reason}"
    raise ScanError(rule, value=path, column=field.name)


def why_not(found: pa.DataType, wanted: pa.DataType, *, is_instant: bool) -> str | None:
    """Return why values of one type are not those of another, or None."""
    if types.is_dictionary(found):
        found = found.value_type
    if types.is_timestamp(found) and types.is_timestamp(wanted):
        has_zone = found.tz is not None or is_instant
        return None if has_zone == (wanted.tz is not None) else f"it is {found}"
    kinds = (
        types.is_signed_integer,
        types.is_floating,
        types.is_decimal,
        lambda dtype: types.is_string(dtype) or types.is_large_string(dtype),
        lambda dtype: types.is_binary(dtype) or types.is_large_binary(dtype),
    )
    if any(kind(found) and kind(wanted) for kind in kinds):
        return None
    if types.is_nested(found) and found.id == wanted.id:
        return None
    if types.is_null(found) or found == wanted:
        return None
    return f"it is {found}"


def partition_values(
    names: Sequence[str], values: Sequence[str | None], schema: pa.Schema, path: str
) -> Mapping[str, pa.Scalar]:
    """Return the values of partition columns, of the types that are declared.

    Raises
    ------
    ScanError
        If the path has a value that is not of the type.
    """
    scalars = {}
    for name, text in zip(names, values, strict=True):
        dtype = schema.field(name).type
        if text is None or text == _DEFAULT_PARTITION:
            scalars[name] = pa.scalar(None, dtype)
            continue
        try:
            scalars[name] = pa.scalar(text).cast(dtype)
        except pa.ArrowException as error:
            rule = f"the value of a partition is of the type that the scan declares ({dtype})"
            raise ScanError(rule, value=f"{name}={text} in {path}", column=name) from error
    return scalars
