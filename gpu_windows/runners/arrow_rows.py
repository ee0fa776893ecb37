"""Changes of Arrow rows: of a table at once, of a stream for each batch while it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from gpu_windows.planning.validation import union_schema
from gpu_windows.runners.common_types import (
    batches_of_union,
    cast_rows,
    rows_of_side,
    schema_of_sides,
)
from gpu_windows.runners.outputs import InputSide
from gpu_windows.runners.row_stream import RowStream, join_readers

#: Rows that are all there, or are made while they are read.
ArrowRows: TypeAlias = pa.Table | RowStream
#: Rows of a table in a batch.
_BATCH_ROWS = 1 << 20


def iter_batches(rows: ArrowRows) -> Iterator[pa.RecordBatch]:
    """Return the batches of rows; those of a table are at most `_BATCH_ROWS` long."""
    return iter(rows.to_batches(_BATCH_ROWS) if isinstance(rows, pa.Table) else rows)


def replace_column(
    rows: ArrowRows, schema: pa.Schema, column: str, make: Callable[[Any], Any]
) -> ArrowRows:
    """Return rows with a column replaced by what ``make`` returns for it.

    Parameters
    ----------
    rows : pyarrow.Table or RowStream
    schema : pyarrow.Schema
        Their columns afterwards.
    column : str
    make : callable
        From an array or chunked array to one of as many values, of the new type.
    """
    at = schema.get_field_index(column)
    field = schema.field(at)
    return _convert(rows, schema, lambda data: data.set_column(at, field, make(data.column(at))))


def append_column(
    rows: ArrowRows, schema: pa.Schema, make: Callable[[Any], pa.Array | pa.ChunkedArray]
) -> ArrowRows:
    """Return rows with one more column, which ``make`` computes of a table or batch.

    ``schema``: their columns afterwards, of which the last is new.
    """
    field = schema.field(len(schema) - 1)
    return _convert(rows, schema, lambda data: data.append_column(field, make(data)))


def _convert(rows: ArrowRows, schema: pa.Schema, convert: Callable[[Any], Any]) -> ArrowRows:
    if isinstance(rows, pa.Table):
        return convert(rows)
    return rows.map(schema, lambda batch: (convert(batch),))


def map_tables(rows: ArrowRows, make: Callable[[pa.Table], pa.Table]) -> ArrowRows:
    """Return the rows that ``make`` returns; called per batch if rows are read once."""
    if isinstance(rows, pa.Table):
        return make(rows)
    schema = make(rows.schema.empty_table()).schema

    def parts(batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        yield from make(pa.Table.from_batches([batch])).cast(schema).to_batches()

    return rows.map(schema, parts)


def map_batches(
    rows: ArrowRows, schema: pa.Schema, make: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> ArrowRows:
    """Return the batches that ``make`` returns, which have another schema."""
    if isinstance(rows, pa.Table):
        return pa.Table.from_batches((make(batch) for batch in rows.to_batches()), schema)
    return rows.map(schema, lambda batch: (make(batch),))


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
    if any(isinstance(rows, RowStream) for rows, _ in inputs):
        readers = join_readers(rows for rows, _ in inputs)
        return RowStream(schema, lambda: batches_of_union(inputs, schema), readers)
    tables = (table.rename_columns(names).select(schema.names) for table, names in inputs)
    return pa.concat_tables(cast_rows(table, schema) for table in tables)


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
    readers = join_readers(rows for _, rows, _ in sides)

    def batches() -> Iterator[pa.RecordBatch]:
        for side, rows, is_left in sides:
            yield from rows_of_side(iter_batches(rows), schema, names, side, is_left=is_left)

    if any(isinstance(rows, RowStream) for _, rows, _ in sides):
        return RowStream(schema, batches, readers)
    return pa.Table.from_batches(batches(), schema)
