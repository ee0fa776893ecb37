"""Checks of queries over windows that rank keys, group, give changes, look back or fill gaps."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

from gpu_windows.aggregates.definitions import BoundAggregate
from gpu_windows.errors import (
    ColumnNotFoundError,
    ColumnTypeError,
    InvalidWindowError,
    QueryError,
    UnsupportedAggregateError,
    UnsupportedQueryError,
)
from gpu_windows.functions.join import WindowJoin
from gpu_windows.functions.top import Ranking, Top
from gpu_windows.functions.window import Aggregates
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Execution
from gpu_windows.planning.validation import check_distinct, check_reserved
from gpu_windows.vocabulary.gap_filling import MAX_GAP_WINDOWS, GapFilling
from gpu_windows.vocabulary.options import show_ticks
from gpu_windows.vocabulary.windows import (
    MultiLengthEventTimeWindows,
    SlicedAssigner,
)


def _recent_aggregates(query: WindowQuery) -> tuple[BoundAggregate, ...]:
    """Return the aggregates over the last part of a window."""
    return tuple(b for b in query.function.incremental_aggregates if b.aggregate.recent is not None)


def check_ranking(query: WindowQuery, ranking: Ranking) -> None:
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


def check_look_back(query: WindowQuery) -> None:
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


def check_grouping(query: WindowQuery) -> None:
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


def check_changes(query: WindowQuery) -> None:
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


def check_gaps(query: WindowQuery, gaps: GapFilling, execution: Execution) -> None:
    """Check a query with gap filling.

    Raises
    ------
    UnsupportedQueryError
        Unless all keys have the same windows of event time, which fire once, with one row of
        aggregates; or if a bound is missing.
    QueryError
        If a bound is out of range.
    ColumnNotFoundError, ColumnTypeError
        If a result is not there, or cannot be interpolated.
    """
    _check_filled_windows(query)
    _check_filled_results(query, gaps)
    _check_gap_bounds(query, gaps, bounded=execution.bounded)


def _check_filled_windows(query: WindowQuery) -> None:
    assigner = query.assigner
    if not (isinstance(assigner, SlicedAssigner) and query.fires_once):
        rule = (
            "window_gapfill is for windows of event time that all keys share (tumbling, sliding, "
            "cumulative), and that fire once, at their end"
        )
        value = f"{assigner.describe()}; {query.trigger.describe()}"
        raise UnsupportedQueryError(rule, value=value)
    if query.allowed_lateness:
        rule = (
            "window_gapfill cannot have allowed lateness, because a late row would change windows "
            "that were filled: let the watermark wait longer, for_bounded_out_of_orderness"
        )
        raise UnsupportedQueryError(rule, value=show_ticks(query.allowed_lateness))
    if not isinstance(query.function, Aggregates):
        rule = "window_gapfill is for aggregate(...), whose results over no rows are known"
        raise UnsupportedQueryError(rule, value=query.function.describe())
    others = {
        "changed_keys": query.changed_only,
        "top_keys": query.ranking is not None,
        "grouping_sets": query.grouping is not None,
    }
    for name, is_used in others.items():
        if is_used:
            raise UnsupportedQueryError(
                f"window_gapfill cannot be combined with {name}", value=name
            )


def _check_filled_results(query: WindowQuery, gaps: GapFilling) -> None:
    assert isinstance(query.assigner, SlicedAssigner), "other windows are refused"
    fields = {field.name: field for field in query.function.output_fields(query.schema)}
    for name in gaps.carried_results:
        if name not in fields:
            rule = f"window_gapfill fills results, which are {', '.join(fields)}"
            raise ColumnNotFoundError(rule, value=name, column=name)
        if gaps.carried_results.count(name) > 1:
            rule = "a result is either carried forward or interpolated, and named once"
            raise QueryError(rule, value=name, column=name)
    if gaps.interpolate and query.units.length > 1 and query.assigner.grid().steps > 0:
        rule = "cumulative windows of a calendar are not interpolated: carry values forward"
        raise UnsupportedQueryError(rule, value=query.assigner.describe())
    for name in gaps.interpolate:
        dtype = fields[name].type
        if not (types.is_floating(dtype) or types.is_timestamp(dtype)):
            rule = (
                "floating-point numbers and timestamps are interpolated, other values would be "
                "rounded or have nothing in between: carry it forward, or aggregate a column that "
                "is cast to DOUBLE"
            )
            raise ColumnTypeError(rule, value=str(dtype), column=name)


def _check_gap_bounds(query: WindowQuery, gaps: GapFilling, *, bounded: bool) -> None:
    assert isinstance(query.assigner, SlicedAssigner), "other windows are refused"
    slide, given = query.assigner.longest_slide, gaps.given
    if gaps.until is not None and gaps.until > MAX_GAP_WINDOWS * slide:
        rule = f"until covers up to {MAX_GAP_WINDOWS:,} windows"
        raise QueryError(rule, value=show_ticks(gaps.until))
    if given is None:
        if not bounded and gaps.until is None:
            rule = (
                "on a stream window_gapfill needs to know when a key that has no more rows ends: "
                "say until='1 day', or keys=[...] with a start"
            )
            raise UnsupportedQueryError(rule, value="until=None")
        return
    low, high = query.assigner.usable_ticks
    for name, tick in (("start", given.start), ("end", given.end)):
        if tick is not None and not low <= tick <= high:
            raise QueryError(f"{name} must be a time that windows can have", value=tick)
    if given.end is not None and given.end - given.start > MAX_GAP_WINDOWS * slide:
        rule = f"from start to end there are up to {MAX_GAP_WINDOWS:,} windows"
        raise QueryError(rule, value=show_ticks(given.end - given.start))
    if bounded and given.end is None:
        rule = "given keys are filled up to an end, which a bounded input needs: say end=..."
        raise UnsupportedQueryError(rule, value="end=None")
    if not bounded and gaps.waits:
        rule = (
            "on a stream given keys cannot be interpolated, as their next rows may never come: "
            "carry values forward, or leave out keys and say until='1 day'"
        )
        raise UnsupportedQueryError(rule, value=", ".join(gaps.interpolate))
