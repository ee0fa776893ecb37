"""Columns of our own, among those of users and of results, and how messages call some columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from gpu_windows.functions.top_changes import Change
from gpu_windows.functions.two_inputs import COPY, DELETED, MARKS

#: Name of the column that says why a row was rejected or late.
REASON = "rejection_reason"

#: How messages call the column that carries watermarks.
CARRIER = "the column of watermarks"

#: Columns of our own, which users do not see: the time of rows that have none is null, the key of
#: rows that have none is one for all, or spreads them over shards where that does not matter.
NO_TIME, NO_KEY, SPREAD = "__no_time", "__no_key", "__spread"
#: All columns of our own that rows may have where they come back.
OWN = (NO_TIME, NO_KEY, SPREAD, COPY, DELETED, *MARKS)

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


#: Names of the columns with the event time of results that have no time column of their own: of
#: results of windows, and of others.
WINDOW_TIME, RESULT_TIME = "window_time", "result_time"


@dataclass(frozen=True)
class ResultTimes:
    """Which columns have the event time of results.

    Parameters
    ----------
    name : str
        The column with the event time.
    end : str, optional
        The column with the end of a window, if the time is the last tick before it (Flink:
        ``window.maxTimestamp()``).
    sides : tuple of str
        The columns with the times of both rows of a pair, if the time is the greater one.
    behind : int
        How long after their event time results may come, in ticks; holds the watermark back.
    """

    name: str
    end: str | None = None
    sides: tuple[str, ...] = ()
    behind: int = 0
