"""Rows of several inputs, cast to the common types of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from gpu_windows.column_types.logical import logical_array
from gpu_windows.column_types.time_units import is_nanoseconds, to_microseconds
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.runners.local import without_markers
from gpu_windows.runners.outputs import InputSide


def schema_of_sides(keys: Sequence[pa.Field], left: InputSide, right: InputSide) -> pa.Schema:
    """Return the schema of `gpu_windows.runners.outputs.Source.tag_sides`."""
    columns = [
        (TIME, left.time, left),
        *((n, column, side) for side in (left, right) for n, column in side.columns.items()),
    ]
    fields = (side.source.schema.field(column).with_name(n) for n, column, side in columns)
    nullable = (field.with_nullable(True) for field in (*keys, *fields))
    return pa.schema([pa.field(SIDE, pa.bool_()), *nullable])


def rows_of_side(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    keys: Sequence[str],
    side: InputSide,
    *,
    is_left: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a side with all columns of ``schema``, those of the other side null."""
    own = {name: column for name, column in zip(keys, side.keys, strict=True) if column is not None}
    columns = {**own, TIME: side.time, **side.columns}
    for batch in batches:
        rows = without_markers(pa.Table.from_batches([batch]), side.carrier, side.marker_columns)
        arrays = {name: rows.column(column) for name, column in columns.items()}
        arrays[SIDE] = pa.repeat(pa.scalar(is_left), len(rows))
        every = [
            arrays[field.name] if field.name in arrays else pa.nulls(len(rows), field.type)
            for field in schema
        ]
        yield from cast_rows(pa.table(every, schema.names), schema).to_batches()


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


def batches_of_union(
    parts: Iterable[tuple[pa.Table | Iterable[pa.RecordBatch], list[str]]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of several tables or readers, one after the other, cast to a schema.

    ``parts``: the rows of each, and the names that its columns have in the union.
    """
    for data, names in parts:
        for batch in data.to_batches() if isinstance(data, pa.Table) else data:
            rows = pa.Table.from_arrays(batch.columns, names).select(schema.names)
            yield from cast_rows(rows, schema).to_batches()


def _cast_column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    if not is_nanoseconds(field.type):
        column = to_microseconds(column, field.name, "a column of two inputs")
    pieces = (logical_array(chunk, field.type, field.name) for chunk in column.chunks)
    return pa.chunked_array([each for piece in pieces for each in piece], field.type)
