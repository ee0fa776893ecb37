"""Build the operator of a plan; its module is imported when it is first built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from gpu_windows.operators.base import Operator, StatefulOperator
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.open_functions import with_open_functions
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.match import MatchPlan, MatchQuery
from gpu_windows.planning.kinds.over import OverPlan, OverQuery
from gpu_windows.planning.kinds.pairs import (
    IntervalJoinPlan,
    IntervalJoinQuery,
    TemporalJoinPlan,
    TemporalJoinQuery,
)
from gpu_windows.planning.kinds.process import ProcessPlan, ProcessQuery
from gpu_windows.planning.kinds.select import SelectPlan, SelectQuery
from gpu_windows.planning.kinds.top import TopPlan, TopQuery
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import Plan, Strategy
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.options import Device

#: Makes the kernels of an operator that has some: that chooses a device.
MakeKernels: TypeAlias = Callable[[], Kernels]


def build_operator(
    plan: Plan,
    *,
    trace: bool = False,
    in_order: bool = True,
    device: Device | None = None,
    threads: int = 1,
) -> Operator:
    """Build an operator, on the machine that will run it.

    Parameters
    ----------
    plan : Plan
    trace : bool
        Whether results carry the columns ``TRACE`` of `gpu_windows.operators.results`.
    in_order : bool
        Whether results must come in order of firing.
    device : {"auto", "cpu", "cuda"}, optional
        Default: the query's option. Ignored where no kernel of a device runs the plan.
    threads : int
        Threads of the CPU kernels.

    Raises
    ------
    DeviceUnavailableError
        If "cuda" is asked for where it cannot be used.
    """
    if plan.query.rich_parts:
        plan = with_open_functions(plan)
    process = plan.query.pair_process
    where = (device or plan.query.options.device) if plan.calls_kernels else "cpu"
    kernels = partial(Kernels, where, threads)
    build = _KINDS[type(plan.query)]
    if process is None:
        return build(plan, kernels, trace=trace, in_order=in_order)
    joins = replace(plan, query=plan.query.without_process)
    pairs = build(joins, kernels, trace=trace, in_order=in_order)

    from gpu_windows.operators.process.pairs import PairsOperator

    return PairsOperator(plan, process, pairs, trace=trace)


def stateful_operator(
    plan: Plan, *, in_order: bool = True, threads: int = 1
) -> StatefulOperator[Any]:
    """Build an operator that can save its state to a log; see `build_operator`."""
    operator = build_operator(plan, in_order=in_order, threads=threads)
    if not isinstance(operator, StatefulOperator):
        raise NotImplementedError(f"{type(operator).__name__} keeps its state in memory")
    return operator


def restore_operator(plan: Plan, log: StateLog, *, in_order: bool = True) -> StatefulOperator[Any]:
    """Build an operator that resumes from the state in a log.

    Parameters
    ----------
    plan : Plan
        Of an input without an end.
    log : StateLog
        Empty, or as an operator of this plan has saved.
    in_order : bool
        See `build_operator`.

    Raises
    ------
    StateError
        If the log has the state of another operator.
    """
    operator = stateful_operator(plan, in_order=in_order)
    operator.restore(log)
    return operator


def _windows(plan: WindowPlan, kernels: MakeKernels, **options: bool) -> Operator:
    """Build the operator of windows, and of those without rows that are filled."""
    windows = _WINDOWS[plan.strategy](plan, kernels, **options)
    if plan.query.gaps is None:
        return windows

    from gpu_windows.operators.gaps.operator import GapsOperator

    return GapsOperator(plan, windows, **options)


def _slices(plan: WindowPlan, kernels: MakeKernels, **options: bool) -> Operator:
    """Build the operator of windows out of slices."""
    from gpu_windows.operators.slices.operator import SlicesOperator

    return SlicesOperator(plan, kernels(), **options)


def _sessions(plan: WindowPlan, kernels: MakeKernels, **options: bool) -> Operator:
    """Build the operator of sessions out of partials."""
    from gpu_windows.operators.slices.sessions import SessionsOperator

    return SessionsOperator(plan, kernels(), **options)


def _counts(plan: WindowPlan, kernels: MakeKernels, *, trace: bool, **_options: bool) -> Operator:
    """Build the operator of count windows, whose results always come in order of firing."""
    from gpu_windows.operators.slices.counts import CountsOperator

    return CountsOperator(plan, kernels(), trace=trace)


def _buffer(plan: WindowPlan, kernels: MakeKernels, **options: bool) -> Operator:
    """Build an operator of the buffer strategy."""
    if not plan.query.buffers_until_end:
        from gpu_windows.operators.panes.operator import BufferOperator

        return BufferOperator(plan, kernels(), **options)
    if plan.query.merges:
        from gpu_windows.operators.panes.fire_at_end_sessions import FireAtEndSessionsOperator

        return FireAtEndSessionsOperator(plan, kernels(), **options)

    from gpu_windows.operators.panes.fire_at_end import FireAtEndOperator

    return FireAtEndOperator(plan, kernels(), **options)


def _by_row(plan: WindowPlan, _: MakeKernels, *, trace: bool, **_options: bool) -> Operator:
    """Build the operator of windows in plain Python."""
    from gpu_windows.operators.row_at_a_time.operator import ReferenceOperator

    return ReferenceOperator(plan, trace=trace)


def _interval_join(plan: IntervalJoinPlan, kernels: MakeKernels, **options: bool) -> Operator:
    """Build the operator of a join in time."""
    from gpu_windows.operators.joins.operator import IntervalJoinOperator

    return IntervalJoinOperator(plan, kernels(), **options)


def _temporal_join(plan: TemporalJoinPlan, kernels: MakeKernels, **options: bool) -> Operator:
    """Build the operator of a join with versions."""
    from gpu_windows.operators.joins.temporal_join import TemporalJoinOperator

    return TemporalJoinOperator(plan, kernels(), **options)


def _over(plan: OverPlan, kernels: MakeKernels, *, trace: bool, in_order: bool) -> Operator:
    """Build the operator of frames."""
    if plan.bounded:
        from gpu_windows.operators.over.operator import BoundedOverOperator

        return BoundedOverOperator(plan, kernels(), trace=trace, in_order=in_order)

    from gpu_windows.operators.over.stream_operator import OverOperator

    return OverOperator(plan, kernels(), trace=trace)


def _top(plan: TopPlan, _: MakeKernels, *, trace: bool, **_options: bool) -> Operator:
    """Build the operator of the first rows of keys."""
    from gpu_windows.operators.top.operator import BoundedTopOperator, TopOperator

    return (BoundedTopOperator if plan.bounded else TopOperator)(plan, trace=trace)


def _match(plan: MatchPlan, _: MakeKernels, **options: bool) -> Operator:
    """Build the operator of patterns."""
    from gpu_windows.operators.matching.operator import MatchOperator

    return MatchOperator(plan, compiled=plan.strategy is Strategy.MATCH, **options)


def _select(plan: SelectPlan, _: MakeKernels, *, trace: bool, **_options: bool) -> Operator:
    """Build the operator of a selection of rows."""
    from gpu_windows.operators.select import SelectOperator

    return SelectOperator(plan, trace=trace)


def _process(plan: ProcessPlan, _: MakeKernels, *, trace: bool, **_options: bool) -> Operator:
    """Build the operator of a process function."""
    if plan.query.broadcasts:
        from gpu_windows.operators.process.broadcast import BroadcastOperator

        return BroadcastOperator(plan, trace=trace)
    if plan.query.process.in_batches:
        from gpu_windows.operators.process.vector_operator import VectorProcessOperator

        return VectorProcessOperator(plan, trace=trace)

    from gpu_windows.operators.process.operator import ProcessOperator

    return ProcessOperator(plan, trace=trace)


#: The builder of each kind of query; a kind that is missing here is a KeyError.
_KINDS: Mapping[type[Query], Callable[..., Operator]] = {
    WindowQuery: _windows,
    IntervalJoinQuery: _interval_join,
    TemporalJoinQuery: _temporal_join,
    ProcessQuery: _process,
    OverQuery: _over,
    TopQuery: _top,
    MatchQuery: _match,
    SelectQuery: _select,
}
#: The builder of each strategy of windows.
_WINDOWS: Mapping[Strategy, Callable[..., Operator]] = {
    Strategy.SLICES: _slices,
    Strategy.SESSIONS: _sessions,
    Strategy.COUNTS: _counts,
    Strategy.BUFFER: _buffer,
    Strategy.ROW_AT_A_TIME: _by_row,
}
