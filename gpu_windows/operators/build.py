"""Build the operator that a plan asks for."""

from __future__ import annotations

from gpu_windows.operators.base import Operator
from gpu_windows.operators.by_row.interval_join import ReferenceJoinOperator
from gpu_windows.operators.by_row.operator import ReferenceOperator
from gpu_windows.operators.device import Kernels
from gpu_windows.operators.joins.operator import IntervalJoinOperator
from gpu_windows.operators.panes.operator import BufferOperator
from gpu_windows.operators.slices.counts import CountsOperator
from gpu_windows.operators.slices.operator import SlicesOperator
from gpu_windows.operators.slices.sessions import SessionsOperator
from gpu_windows.options import Device
from gpu_windows.planning.plan import Plan, Strategy


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
        Whether results carry the columns ``TRACE`` of `gpu_windows.operators.base`.
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
    if plan.strategy is Strategy.ROW_AT_A_TIME and plan.query.joins_in_time:
        return ReferenceJoinOperator(plan, trace=trace)
    if plan.strategy is Strategy.ROW_AT_A_TIME:
        return ReferenceOperator(plan, trace=trace)
    kernels = Kernels(device or plan.query.options.device, threads)
    if plan.strategy is Strategy.INTERVAL_JOIN:
        return IntervalJoinOperator(plan, kernels, trace=trace, in_order=in_order)
    if plan.strategy is Strategy.COUNTS:
        return CountsOperator(plan, kernels, trace=trace)
    if plan.strategy is Strategy.BUFFER:
        return BufferOperator(plan, kernels, trace=trace, in_order=in_order)
    kind = SessionsOperator if plan.strategy is Strategy.SESSIONS else SlicesOperator
    return kind(plan, kernels, trace=trace, in_order=in_order)
