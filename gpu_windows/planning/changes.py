"""Results of windows as changes of a table with one row a key and window."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from gpu_windows.errors import QueryError, UnsupportedQueryError
from gpu_windows.functions.join import WindowJoin
from gpu_windows.functions.top import Top
from gpu_windows.functions.top_changes import Change

if TYPE_CHECKING:
    from gpu_windows.planning.kinds.window import WindowQuery

#: The firing columns: which firing of its key and window a result is, from 0, and whether it is
#: "early", "on_time" or "late".
FIRING = (
    pa.field("firing", pa.int64(), nullable=False),
    pa.field("timing", pa.string(), nullable=False),
)
#: The column that tells which `gpu_windows.functions.top_changes.Change` a result is.
CHANGE = pa.field("change", pa.string(), nullable=False)
#: What it says of the first result of a window, of a later one, and of a row that goes.
INSERT, UPDATE_AFTER, DELETE = (
    each.name.lower() for each in (Change.INSERT, Change.UPDATE_AFTER, Change.DELETE)
)

#: Error text where results of windows that merge are to replace each other, and cannot.
NEEDS_CHANGES = (
    "upsert of windows that merge after they have fired needs the column change, which takes the "
    "rows of the merged ones back: ask for it by with_firing_columns(changes=True)"
)
#: Error text where another query is to go on from changes.
NO_TIME_OF_CHANGES = (
    "a query goes on from results that stay, and changes are replaced and taken back: let windows "
    "fire once, at their end, without with_firing_columns(changes=True)"
)


def as_changes(fields: Iterable[pa.Field]) -> tuple[pa.Field, ...]:
    """Return result columns with what tells changes; a row that goes has no values."""
    return (*(field.with_nullable(True) for field in fields), *FIRING, CHANGE)


def check_changes(query: WindowQuery) -> None:
    """Check a query whose results are changes of a table.

    Raises
    ------
    QueryError
        If windows have results of several keys or groupings, which fire once anyway.
    UnsupportedQueryError
        If the function gives several results of a window.
    """
    for part, name in ((query.ranking, "top_keys"), (query.grouping, "grouping sets")):
        if part is not None:
            rule = f"windows of {name} fire once, so nothing changes: leave changes=True out"
            raise QueryError(rule, value="with_firing_columns(changes=True)")
    if not query.firing_columns:
        raise QueryError("changes go with the firing columns", value="firing_columns=False")
    if isinstance(query.function, Top | WindowJoin):
        rule = "changes are of windows with one result: this function returns several"
        raise UnsupportedQueryError(rule, value=query.function.describe())


def check_stay(query: WindowQuery) -> None:
    """Refuse results that another query cannot go on from, for they have no time or do not stay.

    Raises
    ------
    UnsupportedQueryError
    """
    if query.changes:
        raise UnsupportedQueryError(NO_TIME_OF_CHANGES, value=CHANGE.name)
    if query.is_global:
        rule = (
            "results of count windows and global windows have no time, for these have no end: "
            "let a process function give them, or windows of event time"
        )
        raise UnsupportedQueryError(rule, value=query.assigner.describe())
