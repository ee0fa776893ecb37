"""The planner: chooses a strategy for a query, or refuses it with the reason."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_windows.aggregates.definitions import (
    ROWS,
    BoundAggregate,
    Combine,
    Lift,
    Partial,
    is_ordered,
)
from gpu_windows.errors import ColumnTypeError, UnsupportedQueryError
from gpu_windows.evictors import CountEvictor
from gpu_windows.functions.interval_join import JoinInTime
from gpu_windows.functions.window import Aggregates, Collect, Vectorised
from gpu_windows.options import show_ticks
from gpu_windows.planning.plan import ARRIVAL, PartialsBy, Plan, Strategy
from gpu_windows.query.validation import is_text
from gpu_windows.query.window import NO_TIME, Query
from gpu_windows.rules import Grid, sliding_grid
from gpu_windows.rules.window_operator.layout import MOST_NODES
from gpu_windows.triggers import (
    CountTrigger,
    EventTimeTrigger,
    PurgingTrigger,
)
from gpu_windows.windows import EventTimeSessionWindows, SlicedAssigner, WindowAssigner


def plan(
    query: Query, *, bounded: bool, spark: bool = False, crosses_quickly: bool = False
) -> Plan:
    """Plan a query.

    Parameters
    ----------
    query : Query
    bounded : bool
        Whether the whole input comes before the watermark moves, so that no row is late.
    spark : bool
        Whether it runs on Spark, where a shuffle loses the order of arrival.
    crosses_quickly : bool
        Whether Spark's settings are those with which rows cross to Python quickly.

    Raises
    ------
    UnsupportedQueryError
        With the reason.
    """
    if bounded:
        _check_bounded(query)
    elif query.options.partials == "spark":
        raise UnsupportedQueryError("partials='spark' is not possible: streams are not batches")
    strategy, grid, why = _strategy(query, bounded=bounded, keeps_state=spark and not bounded)
    if spark and query.options.partials == "spark" and strategy is not Strategy.SLICES:
        raise UnsupportedQueryError(
            f"partials='spark' is not possible, for they are of slices: {why}"
        )
    partials = () if strategy is Strategy.ROW_AT_A_TIME else _partials(query)
    by, reasons = PartialsBy.KERNELS, [why]
    if spark and bounded and grid is not None and strategy is Strategy.SLICES:
        by, reason = _partials_by(query, partials, grid, crosses_quickly=crosses_quickly)
        reasons.append(reason)
    if spark and by is PartialsBy.KERNELS and not crosses_quickly:
        reasons.append(_SLOWLY)
    order: tuple[str, ...] = (ARRIVAL,)
    warnings: tuple[str, ...] = ()
    if spark:
        order = _order(query, bounded=bounded)
        warnings = _warnings(query, order, bounded=bounded)
    return Plan(query, strategy, grid, partials, by, order, tuple(reasons), warnings, bounded)


def _strategy(
    query: Query, *, bounded: bool, keeps_state: bool
) -> tuple[Strategy, Grid | None, str]:
    """Return the strategy, how it cuts time or counts, and why.

    ``keeps_state``: whether the state is put away after each call: that of counts cannot be yet.
    """
    if query.joins_in_time and query.options.engine != "reference":
        return Strategy.INTERVAL_JOIN, None, _INTERVAL_JOIN
    against = _why_row_at_a_time(query)
    if against is not None:
        return Strategy.ROW_AT_A_TIME, None, f"row at a time, in Python: {against}"
    counts = None if keeps_state else _count_grid(query)
    against = _why_rows(query)
    if against is None and counts is None:
        against = _why_single_rows(query, bounded=bounded)
    if against is not None:
        why = f"buffer: a compiled state machine for each window, because {against}"
        return Strategy.BUFFER, None, why
    if counts is not None:
        return Strategy.COUNTS, counts, _COUNTS
    if query.merges:
        return Strategy.SESSIONS, None, _SESSIONS
    grid = _grid(query)
    return Strategy.SLICES, grid, _describe_slices(grid, bounded=bounded)


def _check_bounded(query: Query) -> None:
    """Refuse what has no meaning, or no end, where the input ends."""
    if query.needs_clock:
        rule = "processing time has no meaning on a bounded input: its timers would never fire"
        part = query.assigner if query.assigner.of_clock else query.trigger
        raise UnsupportedQueryError(rule, value=part.describe())
    if query.fires_without_end:
        rule = "a continuous trigger on a global window would fire without end when the input ends"
        raise UnsupportedQueryError(rule, value=query.trigger.describe())


_SLOWLY = "rows cross to Python slowly with these settings of Spark, see gpu_windows.configure"

_SESSIONS = (
    "sessions: rows become partial sessions, which are merged where they touch; the input is "
    "bounded, so no row is late"
)


_INTERVAL_JOIN = (
    "interval join: the rows of both sides sorted by key and time, the partners of a row found as "
    "a range; pairs are made in chunks"
)

_COUNTS = (
    "counts: the rows of a key are numbered, and count windows are windows over these numbers, "
    "combined from slices: one update a row"
)


def _count_grid(query: Query) -> Grid | None:
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


def _why_row_at_a_time(query: Query) -> str | None:
    """Return what kernels cannot run, or None."""
    if query.options.engine == "reference":
        return "the reference engine was asked for"
    function = query.function
    if isinstance(function, Aggregates) and function.of_users:
        names = ", ".join(bound.describe() for bound in function.of_users)
        return f"{names}: user code"
    if not isinstance(function, Aggregates | Collect | Vectorised):
        return f"{type(function).__name__.lower()}: user code"
    if query.has_user_parts:
        return "the assigner, the trigger or the evictor is user code"
    nodes = sum(1 for _ in query.trigger.walk())
    if nodes > MOST_NODES:
        return f"the trigger is made of {nodes} triggers, kernels take up to {MOST_NODES}"
    return None


def _why_rows(query: Query) -> str | None:
    """Return why the function needs the rows of a window, or None."""
    if not isinstance(query.function, Aggregates):
        return f"{type(query.function).__name__.lower()} needs the rows, not partial aggregates"
    if query.function.needs_rows:
        names = ", ".join(bound.describe() for bound in query.function.needs_rows)
        return f"{names} needs all values of a window"
    return None


def _why_single_rows(query: Query, *, bounded: bool) -> str | None:
    """Return the first rule besides the function's that needs the single row, or None."""
    against = _why_not_columnar(query.assigner, bounded=bounded)
    if against is not None:
        return against
    if query.evictor is not None:
        return f"the evictor ({query.evictor.describe()}) needs the rows"
    picks = [b.describe() for b in _order_dependent(query)]
    if query.merges and picks:
        return f"{', '.join(picks)}: of sessions that a row joins, Flink puts one's rows first"
    trigger = query.trigger
    purges = isinstance(trigger, PurgingTrigger) and isinstance(trigger.inner, EventTimeTrigger)
    if not (isinstance(trigger, EventTimeTrigger) or (purges and bounded)):
        return f"the trigger ({trigger.describe()}) looks at single rows"
    if query.allowed_lateness > 0 and not bounded:
        return "with allowed lateness a late row fires by itself"
    return None


def _order_dependent(query: Query) -> Iterator[BoundAggregate]:
    """Yield the built-in aggregates whose result depends on the order of rows."""
    if isinstance(query.function, Aggregates):
        yield from (b for b in query.function.built_in if b.definition.order_dependent)


def _why_not_columnar(assigner: WindowAssigner, *, bounded: bool) -> str | None:
    """Return why the rows of these windows cannot be grouped as columns, or None."""
    if assigner.of_clock:
        return "windows of the clock"
    if isinstance(assigner, SlicedAssigner):
        return None
    if not isinstance(assigner, EventTimeSessionWindows):
        return "the assigner's windows are neither slices nor sessions"
    if not bounded:
        return "whether a row is late for its session depends on the rows before it"
    return None


def _grid(query: Query) -> Grid:
    if not isinstance(query.assigner, SlicedAssigner):
        raise UnsupportedQueryError("only windows made of slices have a grid")
    return query.assigner.grid()


def _partials(query: Query) -> tuple[Partial, ...]:
    if not isinstance(query.function, Aggregates):
        return (ROWS,)
    wanted = [partial for bound in query.function.built_in for partial in bound.partials]
    return tuple(dict.fromkeys([ROWS, *wanted]))


def _describe_slices(grid: Grid, *, bounded: bool) -> str:
    if grid.span == 1:
        shape = "a window is one slice"
    elif grid.steps > 0:
        shape = f"up to {grid.steps} slices a window"
    else:
        shape = f"{grid.span} slices a window, {grid.per_slide} a slide"
    end = "; the input is bounded, so no row is late" if bounded else ""
    return f"slices: one update a row, then windows are combined from slices ({shape}{end})"


def _partials_by(
    query: Query, partials: tuple[Partial, ...], grid: Grid, *, crosses_quickly: bool
) -> tuple[PartialsBy, str]:
    against = _why_not_spark(query, partials)
    asked = query.options.partials
    if asked == "kernels":
        return PartialsBy.KERNELS, "partials by our kernels: asked for"
    if against is not None:
        if asked == "spark":
            raise UnsupportedQueryError(f"partials='spark' is not possible: {against}")
        return PartialsBy.KERNELS, f"partials by our kernels: {against}"
    if asked == "spark":
        return PartialsBy.SPARK, "partials by Spark's own aggregation: asked for"
    if grid.span == 1:
        reason = "a slice is a window, so nothing crosses to Python"
    elif crosses_quickly:
        return PartialsBy.KERNELS, "partials by our kernels: rows cross quickly"
    else:
        reason = f"{_SLOWLY}, so only partials cross"
    return PartialsBy.SPARK, f"partials by Spark's own aggregation: {reason}"


def _why_not_spark(query: Query, partials: tuple[Partial, ...]) -> str | None:
    """Return why Spark's own aggregation cannot make these partials, or None."""
    if query.options.device == "cuda":
        return "device='cuda' was asked for"
    for partial in partials:
        if partial.combine is Combine.PICK:
            return "first, last, arg_min and arg_max pick rows in order of arrival"
        if partial.combine.is_sketch:
            return "the DataSketches library makes sketches"
        if partial.column is not None and partial.lift is not Lift.ONE:
            kind = query.schema.field(partial.column).type
            if not is_ordered(kind) or str(kind).startswith("decimal"):
                return f"column {partial.column!r} is {kind}"
    return None


def _order(query: Query, *, bounded: bool) -> tuple[str, ...]:
    """Return the columns that give the order of arrival on Spark, where a shuffle loses it."""
    function = query.function
    if isinstance(function, JoinInTime) and not function.order_dependent(bounded=bounded):
        return ()
    for name in query.order_by:
        if not _is_sortable(query, name):
            rule = "order_by takes numbers, times, strings and binary"
            raise ColumnTypeError(rule, value=str(query.schema.field(name).type), column=name)
    if query.order_by:
        return query.order_by
    used = [name for name in query.used_columns if _is_sortable(query, name)]
    if used and not query.has_time:
        return tuple(used)
    return tuple(dict.fromkeys([query.time, *used]))


def _is_sortable(query: Query, name: str) -> bool:
    kind = query.schema.field(name).type
    return is_ordered(kind) or is_text(kind)


def _warnings(query: Query, order: tuple[str, ...], *, bounded: bool) -> tuple[str, ...]:
    parts = query.order_dependent(bounded=bounded)
    if not parts or query.order_by or not order:
        return ()
    depend = "depends" if len(parts) == 1 else "depend"
    if order == (NO_TIME,):
        order = ("no column",)
    return (
        f"{', '.join(parts)} {depend} on the order of arrival, which a shuffle loses: rows are "
        f"taken in order of {', '.join(order)}; name the columns of the true order with order_by",
    )


def described(planned: Plan) -> dict[str, str]:
    """Return what is computed, part by part."""
    query = planned.query
    function = query.function
    if isinstance(function, JoinInTime):
        return {
            "join": function.describe(),
            "time": f"{query.time}, watermark {query.watermarks.describe()}",
            "key": ", ".join(query.keys),
        }
    if isinstance(function, Aggregates):
        shown = ", ".join(f"{b.name} = {b.describe()}" for b in function.bound)
    else:
        name = type(function).__name__.lower()
        if isinstance(function, Vectorised):
            name = function.function.describe()
        shown = f"{name}({', '.join(query.function_columns)})"
    time = f"{query.time}, watermark {query.watermarks.describe()}"
    parts = {
        "window": query.assigner.describe(),
        "time": time if query.has_time else "none",
        "key": ", ".join(query.shown_keys) or "none: all rows together",
        "trigger": query.trigger.describe(),
        "function": shown,
    }
    if query.evictor is not None:
        parts["evictor"] = query.evictor.describe()
    if query.allowed_lateness:
        parts["lateness"] = show_ticks(query.allowed_lateness)
    return parts


def explain(planned: Plan) -> str:
    """Describe a plan: what is computed, how, on which device and why."""
    query = planned.query
    lines = [
        *(f"{name:<10}{text}" for name, text in described(planned).items()),
        f"strategy  {planned.strategy.value}",
        *(f"          - {reason}" for reason in planned.reasons),
        f"device    {query.options.device}, chosen where the work is done",
        *(f"warning   {warning}" for warning in planned.warnings),
    ]
    return "\n".join(lines)
