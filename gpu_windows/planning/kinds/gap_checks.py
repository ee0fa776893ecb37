"""Checks of queries that fill windows in which a key has no rows."""

from __future__ import annotations

from pyarrow import types

from gpu_windows.errors import (
    ColumnNotFoundError,
    ColumnTypeError,
    QueryError,
    UnsupportedQueryError,
)
from gpu_windows.functions.window import Aggregates
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Execution
from gpu_windows.vocabulary.gap_filling import MAX_GAP_WINDOWS, GapFilling
from gpu_windows.vocabulary.options import show_ticks
from gpu_windows.vocabulary.windows import SlicedAssigner


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
    _check_windows(query)
    _check_results(query, gaps)
    _check_bounds(query, gaps, bounded=execution.bounded)


def _check_windows(query: WindowQuery) -> None:
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


def _check_results(query: WindowQuery, gaps: GapFilling) -> None:
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


def _check_bounds(query: WindowQuery, gaps: GapFilling, *, bounded: bool) -> None:
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
