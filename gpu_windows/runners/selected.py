"""Expressions in SQL over Arrow tables; the extra ``sql`` is imported once there is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from gpu_windows.planning.validation import require_column
from gpu_windows.runners.choosing import Selection


def filtered(table: pa.Table, condition: str) -> pa.Table:
    """Return the rows for which a condition is true; see `evaluate_condition`."""
    from gpu_windows.expressions.arrow import evaluate_condition

    return table.filter(evaluate_condition(condition, table))


def extended(table: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """Return a table with more columns, or others of the same names."""
    from gpu_windows.expressions.arrow import compute

    made = {name: compute(text, table) for name, text in columns.items()}
    return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **made})


def selected(table: pa.Table, selections: Iterable[Selection]) -> pa.Table:
    """Return what selections make of results."""
    for each in selections:
        table = _selected(table, each)
    return table


def _selected(table: pa.Table, selection: Selection) -> pa.Table:
    if selection.where is not None:
        table = filtered(table, selection.where)
    if not selection.columns:
        return table
    for name in selection.as_they_are:
        require_column(table.schema, name)
    computed = selection.expressions
    if not computed:
        return table.select([*selection.columns])
    from gpu_windows.expressions.arrow import compute

    arrays = {
        name: compute(computed[name], table) if name in computed else table.column(name)
        for name in selection.columns
    }
    return pa.table(arrays)
