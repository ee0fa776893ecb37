"""Columns that number the firings of a window, and those of results as changes of a table."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from gpu_windows.functions.top_changes import Change

#: The firing columns: which firing of its key and window a result is, from 0, and whether it is
#: "early", "on_time" or "late".
FIRING = (
    pa.field("firing", pa.int64(), nullable=False),
    pa.field("timing", pa.string(), nullable=False),
)
#: The column with the kind of change of a result: `gpu_windows.functions.top_changes.Change`.
CHANGE = pa.field("change", pa.string(), nullable=False)
#: Its values: for the first result of a window, for a later one, and for a row that is deleted.
INSERT, UPDATE_AFTER, DELETE = (
    each.name.lower() for each in (Change.INSERT, Change.UPDATE_AFTER, Change.DELETE)
)

#: Error message for upsert of results of windows that may merge after they have fired.
NEEDS_CHANGES = (
    "upsert of windows that merge after they have fired needs the column change, which deletes the "
    "rows of the merged ones: ask for it by with_firing_columns(changes=True)"
)
#: Error message for a query over changes.
NO_TIME_OF_CHANGES = (
    "a later stage needs final results, and changes are replaced and deleted: let windows fire "
    "once, at their end, without with_firing_columns(changes=True)"
)
#: Error message for a query over results of windows without bounds.
NO_TIME_OF_GLOBAL = (
    "results of count windows and global windows have no time, as these have no end: use a process "
    "function, or windows of event time"
)


def as_changes(fields: Iterable[pa.Field]) -> tuple[pa.Field, ...]:
    """Return result columns with those of changes; a deleted row has no values."""
    return (*(field.with_nullable(True) for field in fields), *FIRING, CHANGE)
