"""Build the operator that a plan asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gpu_windows.operators.base import Operator, StatefulOperator
from gpu_windows.operators.by_row.interval_join import ReferenceJoinOperator
from gpu_windows.operators.by_row.operator import ReferenceOperator
from gpu_windows.operators.by_row.over import ReferenceOverOperator
from gpu_windows.operators.by_row.version_join import ReferenceVersionJoinOperator
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.joins.operator import IntervalJoinOperator
from gpu_windows.operators.joins.version_operator import VersionJoinOperator
from gpu_windows.operators.matching.operator import MatchOperator
from gpu_windows.operators.opened import with_opened
from gpu_windows.operators.over.operator import BoundedOverOperator
from gpu_windows.operators.over.stream_operator import OverOperator
from gpu_windows.operators.panes.deferred import DeferringOperator
from gpu_windows.operators.panes.deferred_sessions import DeferredSessionsOperator
from gpu_windows.operators.panes.operator import BufferOperator
from gpu_windows.operators.process.base import FunctionOperator
from gpu_windows.operators.process.broadcast import BroadcastOperator
from gpu_windows.operators.process.operator import ProcessOperator
from gpu_windows.operators.process.pairs import PairsOperator
from gpu_windows.operators.process.vector_operator import VectorProcessOperator
from gpu_windows.operators.slices.counts import CountsOperator
from gpu_windows.operators.slices.operator import SlicesOperator
from gpu_windows.operators.slices.sessions import SessionsOperator
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.top.operator import BoundedTopOperator, TopOperator
from gpu_windows.options import Device
from gpu_windows.planning.plan import (
    IntervalJoinPlan,
    MatchPlan,
    OverPlan,
    Plan,
    ProcessPlan,
    Strategy,
    TopPlan,
    VersionJoinPlan,
    WindowPlan,
)
from gpu_windows.query.process import ProcessQuery


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
        Default: the query's option.
    threads : int
        Threads of the CPU kernels.

    Raises
    ------
    DeviceUnavailableError
        If "cuda" is asked for where it cannot be used.
    """
    plan = with_opened(plan)
    process = plan.query.pair_process
    kernels = partial(Kernels, device or plan.query.options.device, threads)
    if process is None:
        return _built(plan, kernels, trace=trace, in_order=in_order)
    joins = replace(plan, query=plan.query.of_pairs)
    pairs = _built(joins, kernels, trace=trace, in_order=in_order)
    return PairsOperator(plan, process, pairs, trace=trace)


def _built(plan: Plan, kernels: Callable[[], Kernels], *, trace: bool, in_order: bool) -> Operator:
    """Build the operator of a plan whose functions are open."""
    if isinstance(plan, IntervalJoinPlan):
        if plan.strategy is Strategy.ROW_AT_A_TIME:
            return ReferenceJoinOperator(plan, trace=trace)
        return IntervalJoinOperator(plan, kernels(), trace=trace, in_order=in_order)
    if isinstance(plan, VersionJoinPlan):
        if plan.strategy is Strategy.ROW_AT_A_TIME:
            return ReferenceVersionJoinOperator(plan, trace=trace)
        return VersionJoinOperator(plan, kernels(), trace=trace, in_order=in_order)
    if isinstance(plan, OverPlan):
        if plan.strategy is Strategy.ROW_AT_A_TIME:
            return ReferenceOverOperator(plan, trace=trace)
        over = BoundedOverOperator if plan.bounded else OverOperator
        return over(plan, kernels(), trace=trace, in_order=in_order)
    if isinstance(plan, TopPlan):
        return (BoundedTopOperator if plan.bounded else TopOperator)(plan, trace=trace)
    if isinstance(plan, MatchPlan):
        compiled = plan.strategy is not Strategy.ROW_AT_A_TIME
        return MatchOperator(plan, trace=trace, in_order=in_order, compiled=compiled)
    if isinstance(plan, ProcessPlan):
        return _process_operator(plan.query)(plan, trace=trace)
    assert isinstance(plan, WindowPlan), f"no operator for {type(plan).__name__}"
    if plan.strategy is Strategy.ROW_AT_A_TIME:
        return ReferenceOperator(plan, trace=trace)
    return _WINDOWS[plan.strategy](plan, kernels(), trace=trace, in_order=in_order)


def _process_operator(query: ProcessQuery) -> Callable[..., FunctionOperator]:
    """Return what runs a process function."""
    if query.broadcasts:
        return BroadcastOperator
    return VectorProcessOperator if query.process.in_batches else ProcessOperator


def stateful_operator(
    plan: Plan, *, in_order: bool = True, threads: int = 1
) -> StatefulOperator[Any]:
    """Build an operator that can be given a log; see `build_operator`."""
    operator = build_operator(plan, in_order=in_order, threads=threads)
    if not isinstance(operator, StatefulOperator):
        raise NotImplementedError(f"{type(operator).__name__} keeps its state in memory")
    return operator


def restored_operator(
    plan: Plan, log: StateLog, *, in_order: bool = True, threads: int = 1
) -> StatefulOperator[Any]:
    """Build an operator that resumes from what a log holds.

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
        If the log holds anything else.
    """
    operator = stateful_operator(plan, in_order=in_order, threads=threads)
    operator.restore(log)
    return operator


def _buffer(plan: WindowPlan, kernels: Kernels, **options: bool) -> Operator:
    """Build an operator of the buffer strategy."""
    kind: Callable[..., Operator] = BufferOperator
    if plan.query.defers_rows:
        kind = DeferredSessionsOperator if plan.query.merges else DeferringOperator
    return kind(plan, kernels, **options)


#: The operators of windows that run on kernels.
_WINDOWS: Mapping[Strategy, Callable[..., Operator]] = {
    Strategy.SLICES: SlicesOperator,
    Strategy.SESSIONS: SessionsOperator,
    Strategy.COUNTS: CountsOperator,
    Strategy.BUFFER: _buffer,
}
