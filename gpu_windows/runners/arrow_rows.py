"""Changes of Arrow rows: of a table at once, of a stream for each batch while it is read.

Rows of several inputs are cast to the common types of their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.column_types.logical import logical_array
from gpu_windows.column_types.time_units import is_nanoseconds, to_microseconds
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.planning.own_columns import NO_KEY, SPREAD, ResultTimes
from gpu_windows.planning.validation import check_free, union_schema
from gpu_windows.runners.local import without_markers
from gpu_windows.runners.outputs import InputSide
from gpu_windows.runners.row_stream import RowStream, join_readers

#: Rows that are all there, or are made while they are read.
ArrowRows: TypeAlias = pa.Table | RowStream
#: Rows of a table in a batch.
_BATCH_ROWS = 1 << 20


def iter_batches(rows: ArrowRows) -> Iterator[pa.RecordBatch]:
    """Return the batches of rows; those of a table are at most `_BATCH_ROWS` long."""
    return iter(rows.to_batches(_BATCH_ROWS) if isinstance(rows, pa.Table) else rows)


def map_tables(rows: ArrowRows, make: Callable[[pa.Table], pa.Table]) -> ArrowRows:
    """Return the rows that ``make`` returns; called per batch if rows are read once."""
    if isinstance(rows, pa.Table):
        return make(rows)
    schema = make(rows.schema.empty_table()).schema

    def parts(batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        made = make(pa.Table.from_batches([batch]))
        yield from (made if made.schema.equals(schema) else made.cast(schema)).to_batches()

    return rows.map(schema, parts)


def union_rows(parts: Sequence[tuple[ArrowRows, pa.Schema]]) -> ArrowRows:
    """Return the rows of one table or reader after the other.

    Parameters
    ----------
    parts : sequence of tuple of rows and pyarrow.Schema
        The rows of each input, and its schema with the names that its columns have in the union.

    Raises
    ------
    QueryError
        If columns differ in name or type.
    """
    schema = union_schema([each for _, each in parts])
    inputs: list[tuple[Any, list[str]]] = [(rows, own.names) for rows, own in parts]
    if not any(isinstance(rows, RowStream) for rows, _ in inputs):
        tables = (rows.rename_columns(names).select(schema.names) for rows, names in inputs)
        return pa.concat_tables(_cast_rows(table, schema) for table in tables)

    def batches() -> Iterator[pa.RecordBatch]:
        for rows, names in inputs:
            for batch in iter_batches(rows):
                table = pa.Table.from_arrays(batch.columns, names).select(schema.names)
                yield from _cast_rows(table, schema).to_batches()

    return RowStream(schema, batches, join_readers(rows for rows, _ in inputs))


def tag_rows(
    keys: Sequence[pa.Field], left: tuple[InputSide, ArrowRows], right: tuple[InputSide, ArrowRows]
) -> ArrowRows:
    """Return the rows of two sides, with a column that says of which side a row is.

    Rows of the left side come first; before them those of a side that is broadcast.

    Parameters
    ----------
    keys : sequence of pyarrow.Field
        Key columns of both sides, of their common types.
    left, right : tuple of InputSide and rows

    Returns
    -------
    pyarrow.Table or RowStream
        With the columns of `schema_of_sides`; a table if both sides are tables.

    Raises
    ------
    ReadTwiceError
        If both sides read the same reader.
    """
    schema = schema_of_sides(keys, left[0], right[0])
    names = [field.name for field in keys]
    sides = [(*left, True), (*right, False)]
    sides.sort(key=lambda each: not each[0].is_broadcast)

    def batches() -> Iterator[pa.RecordBatch]:
        for side, rows, is_left in sides:
            yield from _rows_of_side(rows, schema, names, side, is_left=is_left)

    readers = join_readers(rows for _, rows, _ in sides)
    if any(isinstance(rows, RowStream) for _, rows, _ in sides):
        return RowStream(schema, batches, readers)
    return pa.Table.from_batches(batches(), schema)


def schema_of_sides(keys: Sequence[pa.Field], left: InputSide, right: InputSide) -> pa.Schema:
    """Return the schema of `gpu_windows.runners.outputs.Source.tag_sides`."""
    columns = [
        (TIME, left.time, left),
        *((n, column, side) for side in (left, right) for n, column in side.columns.items()),
    ]
    fields = (side.source.schema.field(column).with_name(n) for n, column, side in columns)
    nullable = (field.with_nullable(True) for field in (*keys, *fields))
    return pa.schema([pa.field(SIDE, pa.bool_()), *nullable])


def _rows_of_side(
    rows: ArrowRows,
    schema: pa.Schema,
    keys: Sequence[str],
    side: InputSide,
    *,
    is_left: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a side with all columns of ``schema``, those of the other side null."""
    own = {name: column for name, column in zip(keys, side.keys, strict=True) if column is not None}
    columns = {**own, TIME: side.time, **side.columns}
    for batch in iter_batches(rows):
        table = without_markers(pa.Table.from_batches([batch]), side.carrier, side.marker_columns)
        arrays = {name: table.column(column) for name, column in columns.items()}
        arrays[SIDE] = pa.repeat(pa.scalar(is_left), len(table))
        every = [
            arrays[field.name] if field.name in arrays else pa.nulls(len(table), field.type)
            for field in schema
        ]
        yield from _cast_rows(pa.table(every, schema.names), schema).to_batches()


def _cast_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
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


def with_result_time(results: pa.Table, times: ResultTimes) -> pa.Table:
    """Return results with the column ``times.name``."""
    if times.end is not None:
        check_free(results.schema, times.name)
        ends = results.column(times.end)
        ticks = pc.subtract(ends.cast(pa.int64()), 1)
        results = results.append_column(times.name, ticks.cast(ends.type))
    if times.sides:
        sides = [results.column(name) for name in times.sides]
        results = results.drop_columns([*times.sides])
        check_free(results.schema, times.name)
        latest = pc.max_element_wise(*(side.cast(pa.int64()) for side in sides))
        results = results.append_column(times.name, latest.cast(sides[0].type))
    return results.drop_columns([n for n in (NO_KEY, SPREAD) if n in results.column_names])
