"""Rows of the elements of lists and maps: one for each element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.errors import ColumnTypeError, QueryError
from gpu_windows.planning.validation import check_new, require_column


@dataclass(frozen=True)
class Explosion:
    """How rows become rows of the elements of a list or map.

    Parameters
    ----------
    column : str
    names : tuple of str
        Of the new columns: one for an element, one for each field of elements that are structs, or
        two for the keys and values of a map.
    position : str, optional
        Name of a column with the number of the element, from 1.
    keep_empty : bool
        Whether a row whose list is null or empty becomes one row with nulls.
    """

    column: str
    names: tuple[str, ...]
    position: str | None = None
    keep_empty: bool = False

    @property
    def new_names(self) -> tuple[str, ...]:
        """Names of all new columns."""
        return self.names if self.position is None else (*self.names, self.position)

    def check(self, schema: pa.Schema) -> None:
        """Raise unless the column is a list or map, and names are free: one for each part.

        Raises
        ------
        ColumnTypeError
            If the column is of another type.
        QueryError
            If there is no such column, a name is picked, or there are more or fewer names.
        """
        require_column(schema, self.column)
        dtype = schema.field(self.column).type
        if not is_exploded(dtype):
            raise ColumnTypeError(
                "explode takes a list or a map", value=str(dtype), column=self.column
            )
        count = len(parts_of(dtype))
        if len(self.names) != count:
            rule = f"explode takes {count} names for the parts of an element of {self.column}"
            raise QueryError(rule, value=", ".join(self.names) or "none")
        check_new(schema, self.new_names)


def is_exploded(dtype: pa.DataType) -> bool:
    """Whether values of a type have elements."""
    lists = types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype)
    return bool(lists or types.is_map(dtype))


def parts_of(dtype: pa.DataType) -> Sequence[pa.Field]:
    """Return the parts of an element: the fields of a struct, key and value, or the element."""
    if types.is_map(dtype):
        return (dtype.key_field, dtype.item_field)
    element = dtype.value_type
    if types.is_struct(element):
        return [element.field(index) for index in range(element.num_fields)]
    return (dtype.value_field,)


def explode_table(table: pa.Table, explosion: Explosion) -> pa.Table:
    """Return the rows of the elements, with all columns of the rows that they come from.

    Raises
    ------
    QueryError
        See `Explosion.check`.
    """
    explosion.check(table.schema)
    dtype = table.schema.field(explosion.column).type
    lists = table.column(explosion.column).combine_chunks()
    if types.is_map(dtype):
        lists = lists.cast(pa.list_(pa.struct(parts_of(dtype))))
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
    counts = np.maximum(lengths, 1) if explosion.keep_empty else lengths
    rows = np.repeat(np.arange(len(lengths)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_missing = np.repeat(lengths == 0, counts)
    index = np.repeat(np.cumsum(lengths) - lengths, counts) + within
    picked = pa.array(index, pa.int64(), mask=is_missing)
    found = table.take(pa.array(rows, pa.int64()))
    values = _parts(pc.list_flatten(lists))
    for name, part, value in zip(explosion.names, parts_of(dtype), values, strict=True):
        found = found.append_column(pa.field(name, part.type), value.take(picked))
    if explosion.position is not None:
        numbers = pa.array(within + 1, pa.int32(), mask=is_missing)
        found = found.append_column(explosion.position, numbers)
    return found


def _parts(elements: pa.Array) -> list[pa.Array]:
    """Return the parts of elements: the fields of structs, or the elements themselves."""
    if not types.is_struct(elements.type):
        return [elements]
    return [pc.struct_field(elements, [index]) for index in range(elements.type.num_fields)]
