"""Tables of other libraries as Arrow tables: pandas, Polars, DuckDB, and whatever gives Arrow."""

from __future__ import annotations

import re
from contextlib import suppress
from threading import RLock
from typing import Any, Protocol, TypeGuard
from weakref import ref

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import QueryError, ReadTwiceError
from gpu_windows.runners.row_stream import READ_TWICE

#: What pandas calls the columns of an index without a name.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
#: Streams that gave rows, by their ids, while they live.
_has_given: dict[int, ref[object]] = {}
_LOCK = RLock()


class GivesArrow(Protocol):
    """A table of another library, which gives its rows by Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with a stream of batches."""


def gives_arrow(source: object) -> TypeGuard[GivesArrow]:
    """Whether something gives its rows by Arrow's PyCapsule interface."""
    return hasattr(source, "__arrow_c_stream__")


def arrow_table(source: Any) -> pa.Table:
    """Return the rows of something that gives Arrow, in one table.

    Views of texts and of binary, in which Polars gives them, and dictionaries (categories) become
    plain columns; an index of pandas is a column if it has a name.

    Raises
    ------
    QueryError
        If what it gives is no table.
    ReadTwiceError
        If it is a stream that gave its rows before, and gives none now.
    """
    try:
        table = pa.table(source)
    except (TypeError, pa.ArrowException) as error:
        rule = "stream takes tables: what gives Arrow must give columns"
        raise QueryError(rule, value=f"{type(source).__name__}: {error}") from error
    _check_first_reading(source, len(table))
    unnamed = [name for name in table.column_names if _UNNAMED_INDEX.fullmatch(name)]
    table = table.drop_columns(unnamed).replace_schema_metadata(None)
    for place, field in enumerate(table.schema):
        if types.is_dictionary(field.type):
            table = table.set_column(place, field.name, _decoded(table.column(place)))
    plain = pa.schema([field.with_type(_plain(field.type)) for field in table.schema])
    return table if plain.equals(table.schema) else table.cast(plain)


def _check_first_reading(source: object, rows: int) -> None:
    """Refuse a stream that has given its rows before; what has a length may be read again."""
    if hasattr(source, "__len__"):
        return
    number = id(source)
    with _LOCK:
        if rows:
            with suppress(TypeError):  # which nothing can refer to weakly
                _has_given[number] = ref(source, lambda _: _has_given.pop(number, None))
        elif number in _has_given:
            value = f"a {type(source).__name__} that gave rows before and gives none now"
            raise ReadTwiceError(READ_TWICE, value=value)


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a column of dictionaries."""
    dtype = _plain(column.type.value_type)
    chunks = (chunk.dictionary.cast(dtype).take(chunk.indices) for chunk in column.chunks)
    return pa.chunked_array(chunks, dtype)


def _plain(dtype: pa.DataType) -> pa.DataType:
    """Return the type without views, within lists and structs too."""
    if types.is_string_view(dtype):
        return pa.large_string()
    if types.is_binary_view(dtype):
        return pa.large_binary()
    if types.is_struct(dtype):
        return pa.struct([field.with_type(_plain(field.type)) for field in dtype])
    if types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(_plain(dtype.value_type)))
    if types.is_large_list(dtype):
        return pa.large_list(dtype.value_field.with_type(_plain(dtype.value_type)))
    return dtype
