"""The strategy of a query over windows."""

from __future__ import annotations

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Strategy
from gpu_windows.rules import Grid, sliding_grid
from gpu_windows.rules.window_operator.layout import MOST_NODES
from gpu_windows.vocabulary.evictors import CountEvictor
from gpu_windows.vocabulary.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger
from gpu_windows.vocabulary.windows import EventTimeSessionWindows, SlicedAssigner, WindowAssigner


def strategy_of(query: WindowQuery, *, bounded: bool) -> tuple[Strategy, Grid | None, str]:
    """Return the strategy, how it cuts time or counts, and why."""
    against = _why_row_at_a_time(query)
    if against is not None:
        return Strategy.ROW_AT_A_TIME, None, f"row at a time, in Python: {against}"
    counts = _count_grid(query)
    against = query.function.why_rows
    if against is None and counts is None:
        against = _why_single_rows(query, bounded=bounded)
    if against is not None:
        waits = ", run at its end, until which its rows wait" if query.buffers_until_end else ""
        why = f"buffer: a compiled state machine for each window{waits}, because {against}"
        return Strategy.BUFFER, None, why
    if counts is not None:
        return Strategy.COUNTS, counts, _COUNTS
    if query.merges:
        return Strategy.SESSIONS, None, _SESSIONS
    grid = _grid(query)
    return Strategy.SLICES, grid, _describe_slices(grid, bounded=bounded)


def check_bounded(query: WindowQuery) -> None:
    """Refuse what has no meaning, or no end, where the input ends."""
    if query.uses_processing_time:
        rule = "processing time has no meaning on a bounded input: its timers would never fire"
        part = query.assigner if query.assigner.in_processing_time else query.trigger
        raise UnsupportedQueryError(rule, value=part.describe())
    if query.fires_without_end:
        rule = "a continuous trigger on a global window would fire without end when the input ends"
        raise UnsupportedQueryError(rule, value=query.trigger.describe())


def check_unbounded(query: WindowQuery) -> None:
    """Refuse what would never give anything on a stream in Spark."""
    if query.trigger.needs_watermarks and not query.watermarks.moves:
        rule = "without watermarks a trigger of event time never fires on a stream"
        raise UnsupportedQueryError(rule, value=query.trigger.describe())


_SESSIONS = (
    "sessions: rows become partial sessions, which are merged where they touch; the input is "
    "bounded, so no row is late"
)

_COUNTS = (
    "counts: the rows of a key are numbered, and count windows are windows over these numbers, "
    "combined from slices: one update a row"
)


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
    """Return what kernels cannot run, or None."""
    if query.options.engine == "reference":
        return "the reference engine was asked for"
    if query.function.why_in_python is not None:
        return query.function.why_in_python
    if query.changes and not query.function.gives_one:
        return "whether the function gives a row decides what changes"
    if query.has_user_parts:
        return "the assigner, the trigger or the evictor is user code"
    nodes = sum(1 for _ in query.trigger.walk())
    if nodes > MOST_NODES:
        return f"the trigger is made of {nodes} triggers, kernels take up to {MOST_NODES}"
    return None


def _why_single_rows(query: WindowQuery, *, bounded: bool) -> str | None:
    """Return the first rule besides the function's that needs the single row, or None."""
    against = _why_not_columnar(query.assigner, bounded=bounded)
    if against is not None:
        return against
    if query.evictor is not None:
        return f"the evictor ({query.evictor.describe()}) needs the rows"
    picks = [*query.function.ordered_parts]
    if query.merges and picks:
        return f"{', '.join(picks)}: of sessions that a row joins, Flink puts one's rows first"
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


def _grid(query: WindowQuery) -> Grid:
    if not isinstance(query.assigner, SlicedAssigner):
        raise UnsupportedQueryError("only windows made of slices have a grid")
    return query.assigner.grid()


def _describe_slices(grid: Grid, *, bounded: bool) -> str:
    if grid.span == 1:
        shape = "a window is one slice"
    elif grid.steps > 0:
        shape = f"up to {grid.steps} slices a window"
    else:
        shape = f"{grid.span} slices a window, {grid.per_slide} a slide"
    end = "; the input is bounded, so no row is late" if bounded else ""
    return f"slices: one update a row, then windows are combined from slices ({shape}{end})"
