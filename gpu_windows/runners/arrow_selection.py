"""Selections and SQL expressions over Arrow tables; expressions import the extra ``sql``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from gpu_windows.planning.validation import require_column
from gpu_windows.runners.arrangement import Arrangement
from gpu_windows.runners.arrow_arrangement import arrange
from gpu_windows.runners.selection import Selection


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
