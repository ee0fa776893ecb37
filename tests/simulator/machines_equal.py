"""The buffer strategy on CUDA kernels, run by Numba's simulator, against CPU kernels."""

from __future__ import annotations

from hypothesis import given, reject
from hypothesis import strategies as st

from gpu_windows.operators.build import build_operator
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.plan import Strategy
from gpu_windows.planning.planner import plan
from gpu_windows.vocabulary.windows import EventTimeSessionWindows
from tests.examples import examples
from tests.operators.panes.queries import Step, assigners, inputs, queries, run

MERGING = EventTimeSessionWindows  # those of processing time, too


@examples(100)
@given(queries(), inputs(most=12))
def test_machines(made: WindowQuery, steps: list[Step]) -> None:
    check(made, steps)


@examples(60)
@given(queries(assigners().filter(lambda a: not isinstance(a, MERGING))), inputs(most=12))
def test_machines_of_panes(made: WindowQuery, steps: list[Step]) -> None:
    check(made, steps)


@examples(60)
@given(
    queries(st.sampled_from([EventTimeSessionWindows(10), EventTimeSessionWindows(0, "gap")])),
    inputs(most=12),
)
def test_machines_of_sessions(made: WindowQuery, steps: list[Step]) -> None:
    check(made, steps)


def check(made: WindowQuery, steps: list[Step]) -> None:
    planned = plan(made, bounded=False)
    if planned.strategy is not Strategy.BUFFER:
        reject()
    on_cpu = run(build_operator(planned, trace=True, device="cpu"), steps)
    on_cuda = run(build_operator(planned, trace=True, device="cuda"), steps)
    assert [*on_cuda] == [*on_cpu]
