"""Rows of several inputs in the types that their columns have together."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from gpu_windows.column_types.logical import logical_array
from gpu_windows.expressions.nanoseconds import is_nanoseconds, to_microseconds
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.runners.outputs import Side


def tagged_schema(keys: Sequence[pa.Field], left: Side, right: Side) -> pa.Schema:
    """Return the columns of the rows of two inputs: see `gpu_windows.runners.outputs.Source`."""
    named = [
        (TIME, left.time, left),
        *((n, column, side) for side in (left, right) for n, column in side.columns.items()),
    ]
    fields = (side.source.schema.field(column).with_name(n) for n, column, side in named)
    nullable = (field.with_nullable(True) for field in (*keys, *fields))
    return pa.schema([pa.field(SIDE, pa.bool_()), *nullable])


def in_types(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows in the types of a schema of the same names, which hold their values.

    Raises
    ------
    PrecisionError
        If a time is finer than the microseconds of its type.
    ColumnTypeError
        If a duration is too long for them.
    """
    columns = [_in_type(column, field) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _in_type(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    if not is_nanoseconds(field.type):
        column = to_microseconds(column, field.name, "a column of two inputs")
    pieces = (logical_array(chunk, field.type, field.name) for chunk in column.chunks)
    return pa.chunked_array([each for piece in pieces for each in piece], field.type)
