"""Unites the rows of two scans, in tasks, with the columns of both."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.runners.arrow_rows import schema_of_sides
from gpu_windows.runners.outputs import InputSide
from gpu_windows.runners.row_changes import ProjectRows, RowChange


def sides_in_tasks(
    keys: Sequence[pa.Field], left: InputSide, right: InputSide
) -> list[RowChange | str]:
    """Return the change for the rows of each side, or why tasks cannot make it.

    See `gpu_windows.runners.outputs.Source.tag_sides`.
    """
    if left.is_broadcast or right.is_broadcast or left.carrier or right.carrier:
        reason = "rows that are broadcast, or carry watermarks, are read by Spark"
        return [reason, reason]
    schema = schema_of_sides(keys, left, right)
    names = [field.name for field in keys]
    return [_project(schema, names, side, is_left=side is left) for side in (left, right)]


def _project(
    schema: pa.Schema, keys: Sequence[str], side: InputSide, *, is_left: bool
) -> RowChange:
    own = {name: str(column) for name, column in zip(keys, side.keys, strict=True)}
    columns = {**own, TIME: side.time, **side.columns}
    return ProjectRows(schema, columns, {SIDE: pa.scalar(is_left)})
