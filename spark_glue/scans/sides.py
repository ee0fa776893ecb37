"""The rows of two scans with the columns of both, as tasks make them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.runners.outputs import Side
from gpu_windows.runners.row_changes import ProjectRows, RowChange


def sides_in_tasks(keys: Sequence[str], left: Side, right: Side) -> list[RowChange | str]:
    """Return what makes columns of both of each side's rows, or why tasks cannot.

    See `gpu_windows.runners.outputs.Source.tagged`.
    """
    named = [
        *zip((*keys, TIME), (*left.keys, left.time), (left,) * (len(keys) + 1), strict=True),
        *((n, column, side) for side in (left, right) for n, column in side.columns.items()),
    ]
    if left.is_broadcast or right.is_broadcast or left.carrier or right.carrier:
        reason = "rows that are broadcast, or carry watermarks, are read by Spark"
        return [reason, reason]
    fields = (side.source.schema.field(column).with_name(n) for n, column, side in named)
    schema = pa.schema([pa.field(SIDE, pa.bool_()), *(f.with_nullable(True) for f in fields)])
    return [_project(schema, keys, side, is_left=side is left) for side in (left, right)]


def _project(schema: pa.Schema, keys: Sequence[str], side: Side, *, is_left: bool) -> RowChange:
    own = {name: str(column) for name, column in zip(keys, side.keys, strict=True)}
    columns = {**own, TIME: side.time, **side.columns}
    return ProjectRows(schema, columns, {SIDE: pa.scalar(is_left)})
