"""What can be asked of the last part of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_windows.errors import InvalidWindowError, QueryError, UnsupportedAggregateError
from gpu_windows.functions.built_in import Aggregates
from gpu_windows.vocabulary.options import show_ticks
from gpu_windows.vocabulary.windows import MultiLengthEventTimeWindows, SlicedAssigner

if TYPE_CHECKING:
    from gpu_windows.planning.kinds.window import WindowQuery


def check_look_back(query: WindowQuery) -> None:
    """Check a query that asks how long before the end of its window a row is.

    Raises
    ------
    QueryError
        If windows are none of those whose slices are the same for all lengths, or fire more than
        once; if the function is no aggregate.
    InvalidWindowError
        If the part of a window is no multiple of the slide, or longer than the window.
    UnsupportedAggregateError
        If an aggregate needs all values of a window.
    """
    assigner = query.assigner
    if not isinstance(assigner, SlicedAssigner) or assigner.grid().steps or not query.fires_once:
        rule = "lengths within a window, and changed keys, are for sliding windows that fire once"
        raise QueryError(rule, value=f"{assigner.describe()}; {query.trigger.describe()}")
    if query.allowed_lateness:
        rule = "lengths within a window, and changed keys, go without allowed lateness"
        raise QueryError(rule, value=show_ticks(query.allowed_lateness))
    if query.evictor is not None:
        rule = "lengths within a window, and changed keys, go without an evictor"
        raise QueryError(rule, value=query.evictor.describe())
    if not isinstance(query.function, Aggregates):
        rule = "lengths within a window, and changed keys, are for aggregates"
        raise QueryError(rule, value=query.function.describe())
    if needy := query.function.needs_rows:
        rule = (
            "lengths within a window, and changed keys, are not for lists, quantiles, distinct() "
            "or count_distinct, which keep rows: give those a query for each length"
        )
        raise UnsupportedAggregateError(rule, value=needy[0].describe())
    _check_lengths(query, assigner)


def _check_lengths(query: WindowQuery, assigner: SlicedAssigner) -> None:
    grid = assigner.grid()
    if grid.remainder or grid.slide > grid.size:
        rule = "lengths within a window, and changed keys: the size must be a multiple of the slide"
        raise InvalidWindowError(rule, value=assigner.describe())
    for bound in query.recents:
        recent = bound.aggregate.recent or 0
        if recent > grid.size or recent % grid.slide:
            rule = (
                f"within takes a multiple of the slide ({show_ticks(grid.slide)}) "
                f"of at most the size ({show_ticks(grid.size)})"
            )
            if grid.slide == grid.size:
                rule += ": windows that tumble have no shorter parts, those that slide do"
            raise InvalidWindowError(rule, value=f"{bound.name}: {show_ticks(recent)}")
    several = isinstance(assigner, MultiLengthEventTimeWindows)
    if several and len(query.recents) < len(query.function.built_in):
        rule = "windows of several lengths are for window(...).aggregate, of built-in aggregates"
        raise QueryError(rule, value=query.function.describe())
