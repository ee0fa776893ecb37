"""Selections and arrangements of Arrow tables; SQL over them imports the extra ``sql``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.column_types.logical import is_sortable
from gpu_windows.errors import ColumnTypeError
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import sortable
from gpu_windows.planning.validation import check_key, require_column
from gpu_windows.runners.selection import Arrangement, Selection, SortKey


def filter_table(table: pa.Table, condition: str) -> pa.Table:
    """Return the rows for which a condition is true; see `evaluate_condition`."""
    from gpu_windows.expressions.arrow import evaluate_condition

    return table.filter(evaluate_condition(condition, table))


def add_columns(table: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """Return a table with more columns, or others of the same names."""
    from gpu_windows.expressions.arrow import compute_columns

    made = compute_columns(columns, table)
    return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **made})


def apply_selections(table: pa.Table, selections: Iterable[Selection]) -> pa.Table:
    """Return results after selections."""
    for each in selections:
        table = arrange(table, each) if isinstance(each, Arrangement) else _apply(table, each)
    return table


def _apply(table: pa.Table, selection: Selection) -> pa.Table:
    if selection.where is not None:
        table = filter_table(table, selection.where)
    if not selection.columns:
        return table
    for name in selection.unchanged:
        require_column(table.schema, name)
    computed = selection.expressions
    if not computed:
        return table.select([*selection.columns])
    from gpu_windows.expressions.arrow import compute_columns

    texts = {name: computed[name] for name in selection.columns if name in computed}
    made = compute_columns(texts, table)
    unchanged = {name: table.column(name) for name in selection.columns if name not in computed}
    arrays = made | unchanged
    return pa.table({name: arrays[name] for name in selection.columns})


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
