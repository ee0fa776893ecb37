"""Rows of several inputs, cast to the common types of their columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from gpu_windows.column_types.logical import logical_array
from gpu_windows.expressions.nanoseconds import is_nanoseconds, to_microseconds
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.runners.outputs import Side


def schema_of_sides(keys: Sequence[pa.Field], left: Side, right: Side) -> pa.Schema:
    """Return the schema of `gpu_windows.runners.outputs.Source.tag_sides`."""
    columns = [
        (TIME, left.time, left),
        *((n, column, side) for side in (left, right) for n, column in side.columns.items()),
    ]
    fields = (side.source.schema.field(column).with_name(n) for n, column, side in columns)
    nullable = (field.with_nullable(True) for field in (*keys, *fields))
    return pa.schema([pa.field(SIDE, pa.bool_()), *nullable])


def cast_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast rows to a schema of the same names, whose types are as wide or wider.

    Raises
    ------
    PrecisionError
        If a time is finer than the microseconds of its type.
    ColumnTypeError
        If a duration is too long for them.
    """
    columns = [
        _cast_column(column, field) for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _cast_column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    if not is_nanoseconds(field.type):
        column = to_microseconds(column, field.name, "a column of two inputs")
    pieces = (logical_array(chunk, field.type, field.name) for chunk in column.chunks)
    return pa.chunked_array([each for piece in pieces for each in piece], field.type)
