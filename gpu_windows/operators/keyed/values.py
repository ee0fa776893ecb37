"""Arrow columns as Python values and back, without loss.

Dates, times and timestamps are taken as their stored integers: Python's own types know
neither nanoseconds nor years before 1 or after 9999.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyarrow import types


def stored_values(column: pa.ChunkedArray) -> list[object]:
    """Return the values of a column, temporal ones as the integers that are stored."""
    values: list[object] = stored_column(column).to_pylist()
    return values


def stored_column(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a column, a temporal one as the integers that are stored."""
    dtype = stored_type(column.type)
    return column if dtype == column.type else column.cast(dtype)


def stored_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of what `stored_column` returns."""
    if types.is_interval(dtype) or not types.is_temporal(dtype):
        return dtype
    return pa.int64() if dtype.bit_width == 64 else pa.int32()


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return a type without the properties that may differ between starts of a query.

    These are the names of list entries, the width of list offsets, and nullability.
    """
    if types.is_struct(dtype):
        return pa.struct([(field.name, plain_type(field.type)) for field in dtype])
    if types.is_list(dtype) or types.is_large_list(dtype):
        return pa.list_(plain_type(dtype.value_type))
    if types.is_map(dtype):
        return pa.map_(plain_type(dtype.key_type), plain_type(dtype.item_type))
    return dtype


def keyed_table(schema: pa.Schema, keys: Sequence[Sequence[object]], rows: pa.Table) -> pa.Table:
    """Return rows with their key columns in front.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the key columns.
    keys : sequence of sequence
        The key of each row, with parts as `key_parts` returns them.
    rows : pyarrow.Table
    """
    parts: Sequence[Sequence[object]] = [*zip(*keys, strict=True)]
    columns = [pa.array(parts[i] if parts else [], f.type) for i, f in enumerate(schema)]
    whole = pa.schema([*schema, *rows.schema])
    return pa.Table.from_arrays([*columns, *rows.columns], schema=whole)


def key_part(value: object) -> Hashable:
    """Return a key value so that equal keys are equal and hashable.

    All NaN are one key, -0.0 is 0.0, null is a key of its own; a struct becomes the tuple of
    its fields, which `pyarrow.array` takes as well.
    """
    if isinstance(value, float):
        return _NAN if value != value else value + 0.0  # noqa: PLR0124 - NaN
    if isinstance(value, Mapping):
        return tuple(key_part(field) for field in value.values())
    assert isinstance(value, Hashable)
    return value


def key_parts(column: pa.ChunkedArray) -> Sequence[Hashable]:
    """Return the values of a key column, each as `key_part` returns it."""
    values: list[Any] = stored_values(column)
    if types.is_floating(column.type) or types.is_nested(column.type):
        return [*map(key_part, values)]
    return values


class UserKey:
    """Converter of keys for user functions: user's names to Python values, as in rows.

    A time that Python cannot represent stays the stored integer; a struct is the tuple of its
    fields.

    Parameters
    ----------
    fields : sequence of pyarrow.Field
        The key columns, as users name them.
    """

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self.names = tuple(field.name for field in fields)
        is_stored = ((f, stored_type(f.type) != f.type) for f in fields)
        self._temporal = [(field.name, field.type) for field, stored in is_stored if stored]

    def __call__(self, key: Sequence[object]) -> dict[str, object]:
        """Return a key, given by `key_parts`; {} if no key column is visible to users."""
        values = dict(zip(self.names, key, strict=bool(self.names)))
        for name, dtype in self._temporal:
            with suppress(ValueError, OverflowError):  # years that Python does not support
                values[name] = pa.scalar(values[name], dtype).as_py()
        return values


#: The one NaN: dicts find it by identity.
_NAN = float("nan")
