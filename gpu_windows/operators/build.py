"""Build the operator of a plan; its module is imported when it is first built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gpu_windows.operators.base import Operator, StatefulOperator
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.open_functions import open_functions_of
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.interval_join import IntervalJoinPlan, IntervalJoinQuery
from gpu_windows.planning.kinds.match import MatchPlan, MatchQuery
from gpu_windows.planning.kinds.over import OverPlan, OverQuery
from gpu_windows.planning.kinds.process import ProcessPlan, ProcessQuery
from gpu_windows.planning.kinds.select import SelectPlan, SelectQuery
from gpu_windows.planning.kinds.temporal_join import TemporalJoinPlan, TemporalJoinQuery
from gpu_windows.planning.kinds.top import TopPlan, TopQuery
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.planning.plan import Plan, Strategy, is_plan_of
from gpu_windows.vocabulary.options import Device


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
    plan = open_functions_of(plan)
    process = plan.query.pair_process
    where = (device or plan.query.options.device) if plan.calls_kernels else "cpu"
    kernels = partial(Kernels, where, threads)
    if process is None:
        return _build(plan, kernels, trace=trace, in_order=in_order)
    joins = replace(plan, query=plan.query.without_process)
    pairs = _build(joins, kernels, trace=trace, in_order=in_order)

    from gpu_windows.operators.process.pairs import PairsOperator

    return PairsOperator(plan, process, pairs, trace=trace)


def _build(plan: Plan, kernels: Callable[[], Kernels], *, trace: bool, in_order: bool) -> Operator:
    """Build the operator of a plan whose functions are open."""
    by_row = plan.strategy is Strategy.ROW_AT_A_TIME
    if is_plan_of(plan, TopQuery):
        return _top(plan, trace=trace)
    if is_plan_of(plan, MatchQuery):
        return _match(plan, trace=trace, in_order=in_order, compiled=not by_row)
    if is_plan_of(plan, SelectQuery):
        return _select(plan, trace=trace)
    if is_plan_of(plan, ProcessQuery):
        return _process(plan, trace=trace)
    if is_plan_of(plan, OverQuery):
        return _over(plan, kernels(), trace=trace, in_order=in_order)
    if is_plan_of(plan, IntervalJoinQuery):
        return _interval_join(plan, kernels(), trace=trace, in_order=in_order)
    if is_plan_of(plan, TemporalJoinQuery):
        return _temporal_join(plan, kernels(), trace=trace, in_order=in_order)
    assert is_plan_of(plan, WindowQuery), f"no operator for {type(plan).__name__}"
    if plan.query.gaps is None:
        return _windows(plan, kernels, trace=trace, in_order=in_order)

    from gpu_windows.operators.gaps.operator import GapsOperator

    windows = _windows(plan, kernels, trace=trace, in_order=in_order)
    return GapsOperator(plan, windows, trace=trace, in_order=in_order)


def _windows(
    plan: WindowPlan, kernels: Callable[[], Kernels], *, trace: bool, in_order: bool
) -> Operator:
    """Build the operator of windows with rows."""
    if plan.strategy is Strategy.ROW_AT_A_TIME:
        return _by_row(plan, trace=trace)
    return _WINDOWS[plan.strategy](plan, kernels(), trace=trace, in_order=in_order)


def _by_row(plan: WindowPlan, *, trace: bool) -> Operator:
    """Build the operator of windows in plain Python."""
    from gpu_windows.operators.row_at_a_time.operator import ReferenceOperator

    return ReferenceOperator(plan, trace=trace)


def _interval_join(plan: IntervalJoinPlan, kernels: Kernels, **options: bool) -> Operator:
    """Build the operator of a join in time."""
    from gpu_windows.operators.joins.operator import IntervalJoinOperator

    return IntervalJoinOperator(plan, kernels, **options)


def _temporal_join(plan: TemporalJoinPlan, kernels: Kernels, **options: bool) -> Operator:
    """Build the operator of a join with versions."""
    from gpu_windows.operators.joins.temporal_join import TemporalJoinOperator

    return TemporalJoinOperator(plan, kernels, **options)


def _over(plan: OverPlan, kernels: Kernels, *, trace: bool, in_order: bool) -> Operator:
    """Build the operator of frames."""
    if plan.bounded:
        from gpu_windows.operators.over.operator import BoundedOverOperator

        return BoundedOverOperator(plan, kernels, trace=trace, in_order=in_order)

    from gpu_windows.operators.over.stream_operator import OverOperator

    return OverOperator(plan, kernels, trace=trace)


def _top(plan: TopPlan, *, trace: bool) -> Operator:
    """Build the operator of the first rows of keys."""
    from gpu_windows.operators.top.operator import BoundedTopOperator, TopOperator

    return (BoundedTopOperator if plan.bounded else TopOperator)(plan, trace=trace)


def _match(plan: MatchPlan, **options: bool) -> Operator:
    """Build the operator of patterns."""
    from gpu_windows.operators.matching.operator import MatchOperator

    return MatchOperator(plan, **options)


def _select(plan: SelectPlan, *, trace: bool) -> Operator:
    """Build the operator of a selection of rows."""
    from gpu_windows.operators.select import SelectOperator

    return SelectOperator(plan, trace=trace)


def _process(plan: ProcessPlan, *, trace: bool) -> Operator:
    """Build the operator of a process function."""
    if plan.query.broadcasts:
        from gpu_windows.operators.process.broadcast import BroadcastOperator

        return BroadcastOperator(plan, trace=trace)
    if plan.query.process.in_batches:
        from gpu_windows.operators.process.vector_operator import VectorProcessOperator

        return VectorProcessOperator(plan, trace=trace)

    from gpu_windows.operators.process.operator import ProcessOperator

    return ProcessOperator(plan, trace=trace)


def stateful_operator(
    plan: Plan, *, in_order: bool = True, threads: int = 1
) -> StatefulOperator[Any]:
    """Build an operator that can save its state to a log; see `build_operator`."""
    operator = build_operator(plan, in_order=in_order, threads=threads)
    if not isinstance(operator, StatefulOperator):
        raise NotImplementedError(f"{type(operator).__name__} keeps its state in memory")
    return operator


def restore_operator(
    plan: Plan, log: StateLog, *, in_order: bool = True, threads: int = 1
) -> StatefulOperator[Any]:
    """Build an operator that resumes from the state in a log.

    Parameters
    ----------
    plan : Plan
        Of an input without an end.
    log : StateLog
        Empty, or as an operator of this plan has saved.
    in_order, threads
        See `build_operator`.

    Raises
    ------
    StateError
        If the log has the state of another operator.
    """
    operator = stateful_operator(plan, in_order=in_order, threads=threads)
    operator.restore(log)
    return operator


def _slices(plan: WindowPlan, kernels: Kernels, **options: bool) -> Operator:
    """Build the operator of windows out of slices."""
    from gpu_windows.operators.slices.operator import SlicesOperator

    return SlicesOperator(plan, kernels, **options)


def _sessions(plan: WindowPlan, kernels: Kernels, **options: bool) -> Operator:
    """Build the operator of sessions out of partials."""
    from gpu_windows.operators.slices.sessions import SessionsOperator

    return SessionsOperator(plan, kernels, **options)


def _counts(plan: WindowPlan, kernels: Kernels, **options: bool) -> Operator:
    """Build the operator of count windows."""
    from gpu_windows.operators.slices.counts import CountsOperator

    return CountsOperator(plan, kernels, **options)


def _buffer(plan: WindowPlan, kernels: Kernels, **options: bool) -> Operator:
    """Build an operator of the buffer strategy."""
    if not plan.query.buffers_until_end:
        from gpu_windows.operators.panes.operator import BufferOperator

        return BufferOperator(plan, kernels, **options)
    if plan.query.merges:
        from gpu_windows.operators.panes.fire_at_end_sessions import FireAtEndSessionsOperator

        return FireAtEndSessionsOperator(plan, kernels, **options)

    from gpu_windows.operators.panes.fire_at_end import FireAtEndOperator

    return FireAtEndOperator(plan, kernels, **options)


#: The operators of windows that run on kernels.
_WINDOWS: Mapping[Strategy, Callable[..., Operator]] = {
    Strategy.SLICES: _slices,
    Strategy.SESSIONS: _sessions,
    Strategy.COUNTS: _counts,
    Strategy.BUFFER: _buffer,
}
