"""Checks of queries over windows that rank keys, group, give changes or look back."""

from __future__ import annotations

import pyarrow as pa

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.errors import (
    InvalidWindowError,
    QueryError,
    UnsupportedAggregateError,
    UnsupportedQueryError,
)
from gpu_windows.functions.join import WindowJoin
from gpu_windows.functions.top import Ranking, Top
from gpu_windows.functions.window import Aggregates
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.validation import check_calendar, check_distinct, check_reserved
from gpu_windows.vocabulary.options import show_ticks
from gpu_windows.vocabulary.windows import (
    CalendarWindows,
    MultiLengthEventTimeWindows,
    SlicedAssigner,
)


def check_windows(query: WindowQuery) -> None:
    """Check a query over windows, wherever it is executed.

    Raises
    ------
    QueryError
        If a part does not go with these windows.
    InvalidWindowError
        If the size of windows is not a multiple of their slide where that matters.
    ColumnTypeError
        If windows of a calendar have a zone where event times have none, or the other way round.
    UnsupportedQueryError
        If grouping sets or changes do not go with the function.
    UnsupportedAggregateError
        If an aggregate over the last part of a window needs all its rows.
    """
    if isinstance(query.assigner, CalendarWindows):
        check_calendar(query.assigner, query.schema.field(query.time))
    if query.ranking is not None:
        _check_ranking(query, query.ranking)
    several = isinstance(query.assigner, MultiLengthEventTimeWindows)
    if several or query.changed_only or _recent_aggregates(query):
        _check_look_back(query)
    if query.grouping is not None:
        _check_grouping(query)
    if query.changes:
        _check_changes(query)


def _recent_aggregates(query: WindowQuery) -> tuple[BoundAggregate, ...]:
    """Return the aggregates over the last part of a window."""
    return tuple(b for b in query.function.incremental_aggregates if b.aggregate.recent is not None)


def check_bounded(query: WindowQuery) -> None:
    """Refuse processing time, and triggers that would fire for ever, on a bounded input."""
    if query.uses_processing_time:
        rule = "processing time has no meaning on a bounded input: its timers would never fire"
        part = query.assigner if query.assigner.in_processing_time else query.trigger
        raise UnsupportedQueryError(rule, value=part.describe())
    if query.fires_without_end:
        rule = "a continuous trigger on a global window would fire without end when the input ends"
        raise UnsupportedQueryError(rule, value=query.trigger.describe())


def check_unbounded(query: WindowQuery) -> None:
    """Refuse triggers that would never fire on a stream in Spark."""
    if query.trigger.needs_watermarks and not query.watermarks.moves:
        rule = "without watermarks a trigger of event time never fires on a stream"
        raise UnsupportedQueryError(rule, value=query.trigger.describe())


def _check_ranking(query: WindowQuery, ranking: Ranking) -> None:
    """Check a query that keeps the first keys of every window.

    Raises
    ------
    QueryError
        Unless all keys have the same windows, which fire once, and each gives one result.
    """
    if not query.function.has_one_result:
        rule = "top_keys is for one result of each key: by aggregate, collect_lists or reduce"
        raise QueryError(rule, value=query.function.describe())
    if not query.has_key:
        rule = "top_keys is for windows of keys; of all rows there is one result"
        raise QueryError(rule, value="window_all")
    if not (query.fires_once and isinstance(query.assigner, SlicedAssigner)):
        rule = "top_keys is for windows that all keys share and that fire once, at their end"
        value = f"{query.assigner.describe()}; {query.trigger.describe()}"
        raise QueryError(rule, value=value)
    if query.allowed_lateness:
        rule = "top_keys is for windows without allowed lateness: they would fire again"
        raise QueryError(rule, value=show_ticks(query.allowed_lateness))
    fields = [field.with_name(query.display_name(field.name)) for field in query.result_fields]
    ranking.check(pa.schema([*query.display_key_fields, *fields]))
    names = (*query.display_keys, *query.window_columns, *(field.name for field in fields))
    check_distinct((*names, ranking.number), query.clash_message)
    check_reserved([ranking.number])


def _check_look_back(query: WindowQuery) -> None:
    """Check a query that asks how long before the end of its window a row is.

    Raises
    ------
    QueryError
        Unless windows are sliding, with the same slices for all lengths, and fire once, and the
        function is made of aggregates.
    InvalidWindowError
        If the part of a window is not a multiple of the slide, or longer than the window.
    UnsupportedAggregateError
        If an aggregate needs all values of a window.
    """
    assigner = query.assigner
    if not isinstance(assigner, SlicedAssigner) or assigner.grid().steps or not query.fires_once:
        rule = "lengths within a window, and changed keys, are for sliding windows that fire once"
        raise QueryError(rule, value=f"{assigner.describe()}; {query.trigger.describe()}")
    if query.allowed_lateness:
        rule = "lengths within a window, and changed keys, cannot have allowed lateness"
        raise QueryError(rule, value=show_ticks(query.allowed_lateness))
    if query.evictor is not None:
        rule = "lengths within a window, and changed keys, cannot have an evictor"
        raise QueryError(rule, value=query.evictor.describe())
    if not isinstance(query.function, Aggregates):
        rule = "lengths within a window, and changed keys, are for aggregates"
        raise QueryError(rule, value=query.function.describe())
    if needy := query.function.needs_rows:
        rule = (
            "lengths within a window, and changed keys, are not for lists, quantiles, distinct() "
            "or count_distinct, which need rows: use a query for each length"
        )
        raise UnsupportedAggregateError(rule, value=needy[0].describe())
    _check_lengths(query, assigner)


def _check_lengths(query: WindowQuery, assigner: SlicedAssigner) -> None:
    grid = assigner.grid()
    if grid.remainder or grid.slide > grid.size:
        rule = "lengths within a window, and changed keys: the size must be a multiple of the slide"
        raise InvalidWindowError(rule, value=assigner.describe())
    for bound in _recent_aggregates(query):
        recent = bound.aggregate.recent or 0
        if query.units.length > 1:
            rule = "within is for windows of one length, which those of a calendar are not"
            raise InvalidWindowError(rule, value=f"{bound.name}: {show_ticks(recent)}")
        if recent > grid.size or recent % grid.slide:
            rule = (
                f"within takes a multiple of the slide ({show_ticks(grid.slide)}) "
                f"of at most the size ({show_ticks(grid.size)})"
            )
            if grid.slide == grid.size:
                rule += ": windows that tumble have no shorter parts, those that slide do"
            raise InvalidWindowError(rule, value=f"{bound.name}: {show_ticks(recent)}")
    several = isinstance(assigner, MultiLengthEventTimeWindows)
    if several and len(_recent_aggregates(query)) < len(query.function.built_in):
        rule = "windows of several lengths are for window(...).aggregate, of built-in aggregates"
        raise QueryError(rule, value=query.function.describe())


def _check_grouping(query: WindowQuery) -> None:
    """Check a query with grouping sets.

    Raises
    ------
    QueryError
        If there are no keys, or results are ranked.
    UnsupportedQueryError
        Unless windows are made of slices, which are combined again for each grouping.
    """
    assigner = query.assigner
    if query.ranking is not None:
        rule = "top_keys cannot be combined with grouping sets"
        raise QueryError(rule, value=query.ranking.describe())
    if not (isinstance(assigner, SlicedAssigner) and query.fires_once):
        rule = "grouping sets are for windows that all keys share and that fire once, at their end"
        raise UnsupportedQueryError(
            rule, value=f"{assigner.describe()}; {query.trigger.describe()}"
        )
    if query.allowed_lateness or query.evictor is not None:
        rule = "grouping sets cannot have allowed lateness or evictors"
        value = "lateness" if query.evictor is None else query.evictor.describe()
        raise UnsupportedQueryError(rule, value=value)
    if not isinstance(query.function, Aggregates) or query.function.needs_rows:
        rule = (
            "grouping sets are for aggregates made of partials, which each grouping combines: not "
            "for lists, quantiles, distinct() or functions"
        )
        raise UnsupportedQueryError(rule, value=query.function.describe())
    if query.options.engine == "reference":
        rule = "grouping sets are combined from slices, which the reference engine does not have"
        raise UnsupportedQueryError(rule, value="engine='reference'")


def _check_changes(query: WindowQuery) -> None:
    """Check a query whose results are changes of a table with a row for each key and window.

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
