"""Arranges Arrow tables: distinct rows, sorted rows, some rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.column_types.logical import is_sortable
from gpu_windows.errors import ColumnTypeError
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import sortable
from gpu_windows.planning.validation import check_key, require_column
from gpu_windows.runners.arrangement import Arrangement, SortKey


def arrange(table: pa.Table, arrangement: Arrangement) -> pa.Table:
    """Return a table after an arrangement.

    Raises
    ------
    ColumnNotFoundError
        If there is no such column.
    ColumnTypeError
        If values of a column cannot be compared.
    """
    if arrangement.distinct:
        table = _distinct_rows(table)
    if arrangement.sort_keys:
        table = _sort(table, arrangement.sort_keys)
    return table.slice(arrangement.offset, arrangement.limit)


def _distinct_rows(table: pa.Table) -> pa.Table:
    """Return the first of equal rows, in order."""
    for field in table.schema:
        check_key(field.name, field.type)
    if table.num_rows == 0 or table.num_columns == 0:
        return table
    codes = KeyEncoder(table.schema.types).encode(table.columns)
    _, first = np.unique(codes, return_index=True)
    return table.take(pa.array(np.sort(first)))


def _sort(table: pa.Table, keys: tuple[SortKey, ...]) -> pa.Table:
    orders = []
    for key in keys:
        require_column(table.schema, key.column)
        dtype = table.schema.field(key.column).type
        if not is_sortable(dtype):
            rule = "results are sorted by numbers, times, strings and binary"
            raise ColumnTypeError(rule, value=str(dtype), column=key.column)
        column = table.column(key.column)
        is_null = pc.is_null(column).to_numpy()
        orders.append(~is_null if key.nulls_first else is_null)
        values = sortable(column)
        orders.append(~values if key.descending else values)  # ~x falls as x grows
    return table.take(pa.array(np.lexsort(orders[::-1])))
