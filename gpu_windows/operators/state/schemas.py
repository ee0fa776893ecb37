"""Schema evolution of state between starts of a query.

A later start may have more columns, and types that differ only in the width of their offsets. State
is read in the current types, see `StateLog.types`; other columns have the type that was stored
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import StateMismatchError

#: No column is missing.
NOTHING = pa.schema([])


def add_missing(rows: pa.Table, lacking: pa.Schema) -> pa.Table:
    """Return rows with the columns that an earlier start lacked, as nulls."""
    for field in lacking:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    return rows


def concat_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables; a column has the type of the first table that has it.

    Columns and nullability may differ: missing columns are null.

    Raises
    ------
    StateMismatchError
        If a column has incompatible types.
    """
    first = tables[0].schema
    if all(table.schema.equals(first) for table in tables):
        return pa.concat_tables(tables)
    schema = unify_schemas([table.schema for table in tables])
    return pa.concat_tables([conform(table, schema) for table in tables])


def unify_schemas(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the columns of all schemas, each of the type in the first one that has it.

    Raises
    ------
    StateMismatchError
        If a column has incompatible types.
    """
    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        for field in schema:
            before = fields.setdefault(field.name, field)
            if before.type != field.type and plain_type(before.type) != plain_type(field.type):
                raise _other_type(field.name, before.type, field.type)
    return pa.schema([field.with_nullable(True) for field in fields.values()])


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns of a schema of `unify_schemas`; missing ones are null."""
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(len(table), field.type))
            continue
        column = table.column(field.name)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def with_types(schema: pa.Schema, types_now: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return a schema with the current types, where these are compatible."""
    fields = [
        field.with_type(now)
        if (now := types_now.get(field.name, field.type)) != field.type
        and plain_type(now) == plain_type(field.type)
        else field
        for field in schema
    ]
    return pa.schema(fields)


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return a type with small offsets; it is the same for compatible types."""
    if types.is_large_string(dtype):
        return pa.string()
    if types.is_large_binary(dtype):
        return pa.binary()
    if types.is_list(dtype) or types.is_large_list(dtype):
        return pa.list_(_plain_field(dtype.value_field, "item"))
    if types.is_map(dtype):
        return pa.map_(plain_type(dtype.key_type), plain_type(dtype.item_type))
    if types.is_struct(dtype):
        return pa.struct([_plain_field(field, field.name) for field in dtype])
    return dtype


def _plain_field(field: pa.Field, name: str) -> pa.Field:
    return pa.field(name, plain_type(field.type))


def _other_type(name: str, before: pa.DataType, now: pa.DataType) -> StateMismatchError:
    rule = "a column of state keeps its type: start a changed query on a new checkpoint"
    return StateMismatchError(rule, value=f"was {before}, is {now}", column=name)
