"""The plan of a query over windows: its strategy, its partials, and who makes them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from gpu_windows.aggregates.partials import ROWS, Combine, Lift, Partial
from gpu_windows.column_types.logical import is_ordered
from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_checks import (
    check_changes,
    check_gaps,
    check_grouping,
    check_look_back,
    check_ranking,
)
from gpu_windows.planning.plan import (
    CPU_ONLY,
    SLOW_CROSSING,
    Execution,
    PartialsBy,
    QueryPlan,
    Strategy,
    build_plan,
    check_partials_option,
)
from gpu_windows.planning.validation import check_calendar
from gpu_windows.rules import Grid, sliding_grid
from gpu_windows.rules.window_operator.layout import MAX_NODES
from gpu_windows.vocabulary.evictors import CountEvictor
from gpu_windows.vocabulary.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger
from gpu_windows.vocabulary.watermarks import stage_watermarks
from gpu_windows.vocabulary.windows import (
    CalendarWindows,
    EventTimeSessionWindows,
    MultiLengthEventTimeWindows,
    SlicedAssigner,
    WindowAssigner,
)

#: How windows are evaluated.
WindowPlan: TypeAlias = QueryPlan[WindowQuery]

_PREAGGREGATED = (
    "rows in time become partials before the shuffle of write_stream, where that is smaller; "
    "late rows are shipped whole"
)
_ONE_SHARD = "all rows have the same windows: partials of all tasks are combined in one shard"
_NO_SHARED_KEY = "no key is in all grouping sets: partials of all tasks are combined in one shard"
_ALL_ROWS_IN_ONE_SHARD = (
    "all rows have the same windows, so all of them go to one shard: one task sees them"
)
_SESSIONS = (
    "sessions: rows become partial sessions, which are merged where they touch; the input is "
    "bounded, so no row is late"
)
_COUNTS = (
    "counts: the rows of a key are numbered, and count windows are windows over these numbers, "
    "combined from slices: one update a row"
)


def plan_windows(query: WindowQuery, execution: Execution) -> WindowPlan:
    """Plan windows.

    Raises
    ------
    QueryError
        If parts of the query do not fit together.
    InvalidWindowError
        If the size of windows is not a multiple of their slide where that matters.
    ColumnTypeError
        If windows of a calendar have a zone where event times have none, or the other way round.
    UnsupportedAggregateError
        If an aggregate over the last part of a window needs all its rows.
    UnsupportedQueryError
        If they do not go with how it is executed, or grouping sets or changes with the function.
    """
    _check_windows(query, execution)
    bounded, spark = execution.bounded, execution.spark
    strategy, grid, why = _choose_strategy(query, bounded=bounded)
    if strategy in CPU_ONLY and query.options.device == "cuda":
        rule = f"device='cuda' is not possible: no kernel of a device runs these windows ({why})"
        raise UnsupportedQueryError(rule)
    if strategy is not Strategy.SLICES:
        check_partials_option(query, why, execution)
        if query.grouping is not None:
            rule = f"grouping sets are combined from slices, which these windows do not have: {why}"
            raise UnsupportedQueryError(rule, value=query.function.describe())
    partials = () if strategy is Strategy.ROW_AT_A_TIME else find_partials(query)
    by, reasons = PartialsBy.KERNELS, [why]
    if strategy is Strategy.BUFFER:
        reasons.append(_describe_contents(query))
    if spark and bounded and grid is not None and strategy is Strategy.SLICES:
        by, reason = choose_partials_by(query, partials, grid, execution)
        reasons.append(reason)
    plan = replace(
        build_plan(query, strategy, reasons, execution, crosses=by is PartialsBy.KERNELS),
        grid=grid,
        partials=partials,
        partials_by=by,
        makes_partials=_makes_partials(query, strategy, bounded=bounded),
    )
    if execution.is_spark_stream:
        _check_unbounded(query)
        plan = replace(plan, reasons=(*plan.reasons, *_describe_shuffle(plan)))
    return plan


def _check_windows(query: WindowQuery, execution: Execution) -> None:
    """Check that parts of a query go with each other and with its execution."""
    assigner = query.assigner
    if isinstance(assigner, CalendarWindows):
        check_calendar(assigner, query.schema.field(query.time))
    if query.ranking is not None:
        check_ranking(query, query.ranking)
    several = isinstance(assigner, MultiLengthEventTimeWindows)
    recent = (each.aggregate.recent for each in query.function.incremental_aggregates)
    if several or query.changed_only or any(length is not None for length in recent):
        check_look_back(query)
    if query.grouping is not None:
        check_grouping(query)
    if query.changes:
        check_changes(query)
    if query.gaps is not None:
        check_gaps(query, query.gaps, execution)
    if execution.bounded:
        _check_bounded(query)


def _check_bounded(query: WindowQuery) -> None:
    """Refuse processing time, and triggers that would fire for ever, on a bounded input."""
    if query.uses_processing_time:
        rule = "processing time has no meaning on a bounded input: its timers would never fire"
        part = query.assigner if query.assigner.in_processing_time else query.trigger
        raise UnsupportedQueryError(rule, value=part.describe())
    if query.fires_without_end:
        rule = "a continuous trigger on a global window would fire without end when the input ends"
        raise UnsupportedQueryError(rule, value=query.trigger.describe())


def _check_unbounded(query: WindowQuery) -> None:
    """Refuse triggers that would never fire on a stream in Spark."""
    if query.trigger.needs_watermarks and not query.watermarks.moves:
        rule = "without watermarks a trigger of event time never fires on a stream"
        raise UnsupportedQueryError(rule, value=query.trigger.describe())


def _makes_partials(query: WindowQuery, strategy: Strategy, *, bounded: bool) -> bool:
    """Whether rows become partials before a shuffle: slices, or bounded sessions.

    On streams, late rows do not. With processing time, which may go back, nobody knows before the
    shuffle which rows are late; and results of an earlier stage are few.
    """
    watermarks = query.watermarks
    if not bounded and (watermarks.in_processing_time or stage_watermarks(watermarks)):
        return False
    return strategy in (Strategy.SLICES, Strategy.SESSIONS)


def _describe_contents(query: WindowQuery) -> str:
    """Describe what is stored of the rows of a window until it fires."""
    if query.why_rows is None:
        return "a window keeps partials, not its rows"
    return f"a window keeps its rows: {query.why_rows}"


def _describe_shuffle(plan: WindowPlan) -> list[str]:
    """Describe what a stream shuffles, and whether one shard has it all."""
    reasons = [_PREAGGREGATED] if plan.makes_partials else []
    if not plan.query.has_key:
        reasons.append(_ONE_SHARD if plan.makes_partials else _ALL_ROWS_IN_ONE_SHARD)
    elif not plan.query.shard_keys:
        reasons.append(_NO_SHARED_KEY)
    return reasons


def _choose_strategy(query: WindowQuery, *, bounded: bool) -> tuple[Strategy, Grid | None, str]:
    """Return the strategy, its slices of time or of row numbers, and the reason."""
    reason = _why_row_at_a_time(query)
    if reason is not None:
        return Strategy.ROW_AT_A_TIME, None, f"row at a time, in Python: {reason}"
    counts = _count_grid(query)
    reason = query.function.why_rows
    if reason is None and counts is None:
        reason = _why_single_rows(query, bounded=bounded)
    if reason is not None:
        waits = ", run at its end, until which its rows wait" if query.buffers_until_end else ""
        why = f"buffer: a compiled state machine for each window{waits}, because {reason}"
        return Strategy.BUFFER, None, why
    if counts is not None:
        return Strategy.COUNTS, counts, _COUNTS
    if query.merges:
        return Strategy.SESSIONS, None, _SESSIONS
    assert isinstance(query.assigner, SlicedAssigner), "other windows are not columnar"
    grid = query.assigner.grid()
    return Strategy.SLICES, grid, _describe_slices(grid, bounded=bounded)


def _count_grid(query: WindowQuery) -> Grid | None:
    """Return the slices of row numbers if these are count windows, else None."""
    if not query.is_global or query.rows_in_time_order:
        return None
    trigger, evictor = query.trigger, query.evictor
    if isinstance(trigger, PurgingTrigger) and isinstance(trigger.inner, CountTrigger):
        size = slide = trigger.inner.limit
        if evictor is not None:
            return None
    elif isinstance(trigger, CountTrigger) and isinstance(evictor, CountEvictor):
        size, slide = evictor.limit, trigger.limit
        if evictor.evict_after_function or size == 0:
            return None
    else:
        return None
    return sliding_grid(size, slide, -size % slide)  # windows end after every ``slide`` rows


def _why_row_at_a_time(query: WindowQuery) -> str | None:
    """Return the reason why kernels cannot run the query, or None."""
    if query.options.engine == "reference":
        return "the reference engine was asked for"
    if query.function.why_in_python is not None:
        return query.function.why_in_python
    if query.changes and not query.function.has_one_result:
        return "changes depend on whether the function returns a row"
    if query.has_user_parts:
        return "the assigner, the trigger or the evictor is user code"
    nodes = sum(1 for _ in query.trigger.walk())
    if nodes > MAX_NODES:
        return f"the trigger is made of {nodes} triggers, kernels take up to {MAX_NODES}"
    return None


def _why_single_rows(query: WindowQuery, *, bounded: bool) -> str | None:
    """Return the first reason, other than the function's, to evaluate single rows, or None."""
    reason = _why_not_columnar(query.assigner, bounded=bounded) or query.why_rows
    if reason is not None:
        return reason
    trigger = query.trigger
    purges = isinstance(trigger, PurgingTrigger) and isinstance(trigger.inner, EventTimeTrigger)
    if not (isinstance(trigger, EventTimeTrigger) or (purges and bounded)):
        return f"the trigger ({trigger.describe()}) looks at single rows"
    if query.allowed_lateness > 0 and not bounded:
        return "with allowed lateness a late row fires by itself"
    return None


def _why_not_columnar(assigner: WindowAssigner, *, bounded: bool) -> str | None:
    """Return why the rows of these windows cannot be grouped as columns, or None."""
    if assigner.in_processing_time:
        return "windows of processing time"
    if isinstance(assigner, SlicedAssigner):
        return None
    if not isinstance(assigner, EventTimeSessionWindows):
        return "the assigner's windows are neither slices nor sessions"
    if not bounded:
        return "whether a row is late for its session depends on the rows before it"
    return None


def _describe_slices(grid: Grid, *, bounded: bool) -> str:
    if grid.span == 1:
        shape = "a window is one slice"
    elif grid.steps > 0:
        shape = f"up to {grid.steps} slices a window"
    else:
        shape = f"{grid.span} slices a window, {grid.per_slide} a slide"
    end = "; the input is bounded, so no row is late" if bounded else ""
    return f"slices: one update a row, then windows are combined from slices ({shape}{end})"


def find_partials(query: WindowQuery) -> tuple[Partial, ...]:
    """Return the distinct partials of a query, `ROWS` first."""
    return tuple(dict.fromkeys([ROWS, *query.function.partials]))


def choose_partials_by(
    query: WindowQuery, partials: tuple[Partial, ...], grid: Grid, execution: Execution
) -> tuple[PartialsBy, str]:
    """Return who makes the partials of slices on Spark batch, and the reason."""
    not_spark = _why_not_spark(query, partials)
    asked = query.options.partials
    if asked == "kernels":
        return PartialsBy.KERNELS, "partials by our kernels: asked for"
    if not_spark is not None:
        if asked == "spark":
            raise UnsupportedQueryError(f"partials='spark' is not possible: {not_spark}")
        return PartialsBy.KERNELS, f"partials by our kernels: {not_spark}"
    if asked == "spark":
        return PartialsBy.SPARK, "partials by Spark's own aggregation: asked for"
    if execution.reads_in_task:
        return PartialsBy.KERNELS, "partials by our kernels, where the rows are read"
    if finishes_in_spark(query, grid):
        reason = "a slice is a window, so nothing crosses to Python"
    elif execution.crosses_quickly:
        return PartialsBy.KERNELS, "partials by our kernels: rows cross quickly"
    else:
        reason = f"{SLOW_CROSSING}, so only partials cross"
    return PartialsBy.SPARK, f"partials by Spark's own aggregation: {reason}"


def finishes_in_spark(query: WindowQuery, grid: Grid) -> bool:
    """Whether a query whose partials Spark makes needs no operator: it finds no days' ticks."""
    is_plain = query.grouping is None and query.gaps is None
    return grid.span == 1 and is_plain and query.units.length == 1


def _why_not_spark(query: WindowQuery, partials: tuple[Partial, ...]) -> str | None:
    """Return why Spark's own aggregation cannot make these partials, or None."""
    if query.options.device == "cuda":
        return "device='cuda' was asked for"
    for partial in partials:
        if partial.combine is Combine.PICK and partial.by == partial.column:
            return f"column {partial.column!r} is {query.schema.field(str(partial.column)).type}"
        if partial.combine is Combine.PICK:
            return "first, last, arg_min and arg_max pick rows in order of arrival"
        if partial.combine is Combine.MOMENTS:
            return "Spark's variance loses the digits that values have in common"
        if partial.combine.is_sketch:
            return "the DataSketches library makes sketches"
        if partial.column is not None and partial.lift is not Lift.ONE:
            dtype = query.schema.field(partial.column).type
            if not is_ordered(dtype) or str(dtype).startswith("decimal"):
                return f"column {partial.column!r} is {dtype}"
    return None
